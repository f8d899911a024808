"""Where a variant goes wrong: the error of each node's output against the reference's, and the node
at which it begins."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.accuracy import SliceAccuracy

#: Signal to noise ratio of a value that is as good as exact: more can't be lost by rounding.
_EXACT_DB = 60.0
#: A node that loses less than this is no beginning: noise of all of them adds up.
_LOST_DB = 6.0
#: A value that keeps as much as this needs no mending.
_GOOD_DB = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeError:
    """One node of the reference, and how its output differs in the variant.

    Attributes:
        node: Name of the node, or of its output where it has none.
        op_type: Its operator type.
        output: Name of the compared value, the same in both graphs.
        sqnr_db: Signal to noise ratio over all samples; ``None`` where there is no noise at all.
        max_abs: Largest difference.
        nonfinite: NaN and infinite values where the reference has none.
        reference_nan: NaN of the reference itself; they are left out of the comparison.
        compared: Pairs of values that are finite on both sides.
        inputs: Names of the values that it reads, in the reference.
        slices: Channels of the value that are much smaller than its others, which the ratio over
            all of it does not see; ``None`` where there are none that differ.
    """

    node: str
    op_type: str
    output: str
    sqnr_db: float | None
    max_abs: float
    nonfinite: int = 0
    reference_nan: int = 0
    compared: int = 0
    inputs: tuple[str, ...] = ()
    slices: SliceAccuracy | None = None

    @property
    def kept_db(self) -> float | None:
        """What the value keeps: of the whole, or of its small slices, which the whole hides.

        ``None`` where nothing differs, or nothing was compared.
        """
        known = [self.sqnr_db, None if self.slices is None else self.slices.sqnr_db]
        return min((value for value in known if value is not None), default=None)

    @property
    def level_db(self) -> float:
        """The same as a level: the highest of what is as good as exact, the lowest of NaN."""
        kept_db = self.kept_db
        if self.nonfinite:
            return -_EXACT_DB
        return _EXACT_DB if kept_db is None else min(kept_db, _EXACT_DB)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeErrors:
    """All nodes whose output both graphs have, in the order of the reference.

    Attributes:
        nodes: One entry a node.
        unmatched: Number of nodes whose output only the reference has: the variant fused them.
        samples: Input sets that were compared.
        inner: Nodes of the reference inside branches of If and bodies of loops: nothing outside
            can read what they make, so they are not compared.
    """

    nodes: tuple[NodeError, ...]
    unmatched: int
    samples: int
    inner: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The node at which an error begins.

    Attributes:
        node: The node.
        read_db: What the worst value keeps that it reads.
    """

    node: NodeError
    read_db: float

    @property
    def lost_db(self) -> float:
        """What is lost between what it reads and what it makes."""
        return self.read_db - self.node.level_db


def beginning_of(errors: NodeErrors) -> Beginning | None:
    """Return where the error begins; ``None`` where no node stands out.

    That is the node between whose values, those that it reads and the one that it makes, most is
    lost. Of values that were not compared nothing is known, and they count as exact: inputs,
    weights, and what the variant has fused.

    Args:
        errors: All nodes that were compared.
    """
    known = {node.output: node.level_db for node in errors.nodes}
    found: list[Beginning] = []
    for node in errors.nodes:
        read_db = min((known.get(name, _EXACT_DB) for name in node.inputs), default=_EXACT_DB)
        beginning = Beginning(node=node, read_db=read_db)
        if node.level_db < _GOOD_DB and beginning.lost_db >= _LOST_DB:
            found.append(beginning)
    # Of two that lose as much the earlier one.
    return max(found, key=lambda beginning: beginning.lost_db, default=None)
