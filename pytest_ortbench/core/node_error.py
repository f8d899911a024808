"""Where a variant goes wrong: the error of each node's output against the reference's."""

from __future__ import annotations

from dataclasses import dataclass


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
    """

    node: str
    op_type: str
    output: str
    sqnr_db: float | None
    max_abs: float
    nonfinite: int = 0
    reference_nan: int = 0
    compared: int = 0


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
