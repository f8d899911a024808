"""How long a text may be, by the tables that a graph takes the rows of its positions from."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import pytest

from pytest_ortbench.models.decoder_graph import decoder_graph
from tests.models.graphs import INT64, constant, model, node, value, weight

ROWS, WIDTH = 64, 8


def reading(nodes: Sequence[onnx.NodeProto], *stored: onnx.TensorProto) -> onnx.ModelProto:
    """A graph with tokens, a mask, a table of positions and a larger one of words."""
    return model(
        [*nodes, node("Gather", ["words", "ids"], ["word"]), node("Add", ["word", "at"], ["y"])],
        [value("ids", ("batch", "tokens"), INT64), value("mask", ("batch", "total"), INT64)],
        [value("y", ("batch", "tokens", WIDTH))],
        [
            weight("words", 200, WIDTH),
            weight("table", ROWS, WIDTH),
            weight("square", 1, 1, ROWS, ROWS),
            constant("zero", 0),
            constant("one", 1),
            constant("axis", [0]),
            constant("axis3", [3]),
            *stored,
        ],
    )


TOTAL = [node("Shape", ["mask"], ["sizes"]), node("Gather", ["sizes", "one"], ["total"])]
RANGE = [*TOTAL, node("Range", ["zero", "total", "one"], ["counted"])]
ENDS = [*TOTAL, node("Unsqueeze", ["total", "axis"], ["end"])]

LIMITED = {
    "range": [*RANGE, node("Gather", ["table", "counted"], ["at"])],
    "shifted": [
        *RANGE,
        node("Unsqueeze", ["counted", "axis"], ["row"]),
        node("Add", ["row", "one"], ["later"]),
        node("Gather", ["table", "later"], ["at"]),
    ],
    "mask": [
        node("CumSum", ["mask", "one"], ["counted"]),
        node("Sub", ["counted", "one"], ["places"]),
        node("Gather", ["table", "places"], ["at"]),
    ],
    "slice": [*ENDS, node("Slice", ["table", "axis", "end", "axis"], ["at"])],
}
UNLIMITED = {
    "words": [node("Gather", ["words", "ids"], ["at"])],
    "mask": [
        *ENDS,
        node("Slice", ["square", "axis", "end", "axis3"], ["part"]),
        node("ReduceMean", ["part"], ["at"], axes=[0, 1, 2, 3]),
    ],
    "stored": [
        node("Range", ["zero", "length", "one"], ["counted"]),
        node("Gather", ["table", "counted"], ["at"]),
    ],
    "distances": [
        *RANGE,
        node("Unsqueeze", ["counted", "axis"], ["row"]),
        node("Sub", ["row", "counted"], ["distance"]),
        node("Gather", ["table", "distance"], ["at"]),
    ],
    "columns": [*RANGE, node("Gather", ["table", "counted"], ["at"], axis=1)],
}


@pytest.mark.parametrize("name", LIMITED)
def test_a_table_of_positions_ends_the_context(name: str) -> None:
    seen = decoder_graph(reading(LIMITED[name]), ())
    assert seen.positions == ROWS
    assert "table" in seen.positions_from


@pytest.mark.parametrize("name", UNLIMITED)
def test_other_tables_do_not(name: str) -> None:
    assert decoder_graph(reading(UNLIMITED[name], constant("length", 3)), ()).positions == 0
