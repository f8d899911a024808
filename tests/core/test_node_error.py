"""Where an error begins: at the node that loses most of what it reads."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.accuracy import SliceAccuracy
from pytest_ortbench.core.node_error import NodeError, NodeErrors, beginning_of


def made(
    name: str,
    reads: str,
    sqnr_db: float | None,
    *,
    slices_db: float | None = None,
    nonfinite: int = 0,
) -> NodeError:
    slices = None
    if slices_db is not None:
        slices = SliceAccuracy(
            axis=1,
            first=4,
            last=21,
            count=18,
            size=22,
            sqnr_db=slices_db,
            largest=0.9,
            others_largest=600.0,
        )
    return NodeError(
        node=name,
        op_type="Conv",
        output=name,
        inputs=tuple(reads.split()),
        sqnr_db=sqnr_db,
        max_abs=0.1,
        nonfinite=nonfinite,
        compared=100,
        slices=slices,
    )


def errors(*nodes: NodeError) -> NodeErrors:
    return NodeErrors(nodes=nodes, unmatched=0, samples=1)


@pytest.mark.parametrize(
    ("nodes", "begins"),
    [
        # A detector: boxes and scores get one scale, which the ratio over both does not see.
        (
            [
                made("conv", "x", 35.0),
                made("boxes", "conv", 34.0),
                made("scores", "conv", 31.0),
                made("joined", "boxes scores", 38.0, slices_db=3.1),
            ],
            "joined",
        ),
        # Noise that grows step by step begins nowhere.
        ([made("a", "x", 57.0), made("b", "a", 52.0), made("c", "b", 48.0)], None),
        # What is bad from the first node on begins there, and not where the noise stays.
        ([made("a", "x", 8.0), made("b", "a", 7.0), made("c", "b", 6.0)], "a"),
        # A value that nobody compared counts as exact.
        ([made("a", "x", 45.0), made("b", "fused", 12.0)], "b"),
        ([made("a", "x", None), made("b", "a", None, nonfinite=3), made("c", "b", 20.0)], "b"),
        ([made("a", "x", None)], None),
        ([], None),
    ],
)
def test_the_error_begins_at_the_node_that_loses_most(
    nodes: list[NodeError], begins: str | None
) -> None:
    found = beginning_of(errors(*nodes))
    assert (None if found is None else found.node.node) == begins


def test_the_levels_are_those_of_what_is_read_and_made() -> None:
    nodes = [made("a", "x", 31.0), made("b", "a", 40.0, slices_db=3.1)]
    found = beginning_of(errors(*nodes))
    assert found is not None
    assert (found.read_db, found.node.kept_db, found.lost_db) == (31.0, 3.1, 31.0 - 3.1)
    assert [node.kept_db for node in nodes] == [31.0, 3.1]
