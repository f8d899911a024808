"""What an input holds that masks something, by what the graph does with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.models.graphs import BOOL, FLOAT, INT64, constant, model, node, read, value

pytestmark = pytest.mark.live  # an Equal has shapes inferred, in a process

_SOFTMAX = node("Softmax", ["scores"], ["y"])


def _graph(kind: int, *nodes: onnx.NodeProto, **numbers: Any) -> onnx.ModelProto:
    """A softmax over scores of ``x`` that ``m`` has a part in."""
    weights = [constant(name, number, "float32") for name, number in numbers.items()]
    weights.append(constant("two", 2))
    weights.append(constant("axes", [1]))
    return model(
        [*nodes, _SOFTMAX],
        [value("x", ["N", 4, "T"]), value("m", ["N", "T"], kind)],
        [value("y", ["N", 4, "T"])],
        weights,
    )


_ADDED = node("Add", ["x", "low"], ["scores"])
_WIDE = node("Unsqueeze", ["m", "axes"], ["u"])
_FLOATS = node("Cast", ["u"], ["f"], to=FLOAT)
_TRUTH = node("Cast", ["u"], ["b"], to=BOOL)

GRAPHS = {
    "one less the mask, times a number far below zero": (
        _graph(INT64, _WIDE, _FLOATS, node("Sub", ["one", "f"], ["d"]),
               node("Mul", ["d", "far"], ["low"]), _ADDED, one=1, far=-10000), "ones"),
    "the mask less one, times a large number": (
        _graph(INT64, _WIDE, _FLOATS, node("Sub", ["f", "one"], ["d"]),
               node("Mul", ["far", "d"], ["low"]), _ADDED, one=[1], far=1e9), "ones"),
    "true is left out": (
        _graph(INT64, _WIDE, _FLOATS, node("Mul", ["f", "far"], ["low"]), _ADDED, far=-3e38),
        "zeros"),
    "chosen where true": (
        _graph(BOOL, _WIDE, node("Where", ["u", "x", "far"], ["scores"]), far=-3e38), "ones"),
    "left out where true": (
        _graph(BOOL, _WIDE, node("Where", ["u", "far", "x"], ["scores"]), far=-3e38), "zeros"),
    "left out where not true": (
        _graph(BOOL, node("Not", ["m"], ["n"]), node("Where", ["n", "far", "none"], ["w"]),
               node("Unsqueeze", ["w", "axes"], ["low"]), _ADDED, far=-3e38, none=0), "ones"),
    "left out where zero": (
        _graph(INT64, _WIDE, _FLOATS, node("Equal", ["f", "none"], ["e"]),
               node("Where", ["e", "far", "x"], ["scores"]), far=-1e9, none=0), "ones"),
    "numbers as truth": (
        _graph(INT64, _WIDE, _TRUTH, node("Where", ["b", "x", "far"], ["scores"]), far=-1e9),
        "ones"),
    "a choice of equals": (
        _graph(BOOL, _WIDE, node("Where", ["u", "x", "none"], ["scores"]), none=0), "integers"),
    "a small shift": (
        _graph(INT64, _WIDE, _FLOATS, node("Mul", ["f", "far"], ["low"]), _ADDED, far=-3),
        "integers"),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_a_mask_leaves_everything_in(name: str, tmp_path: Path) -> None:
    proto, kind = GRAPHS[name]
    mask = read(proto, tmp_path).inputs[1]
    assert mask.hint is not None
    assert mask.hint.kind == kind


def test_tokens_that_are_masked_where_zero_are_no_mask(tmp_path: Path) -> None:
    proto = model(
        [
            node("Gather", ["table", "ids"], ["x"]),
            node("Equal", ["ids", "zero"], ["pad"]),
            node("Where", ["pad", "far", "none"], ["low"]),
            node("Add", ["x", "low"], ["scores"]),
            _SOFTMAX,
        ],
        [value("ids", ["N", "T"], INT64)],
        [value("y", None)],
        [constant("table", [1.0, 2.0, 3.0], "float32"), constant("zero", 0),
         constant("far", -1e9, "float32"), constant("none", 0, "float32")],
    )  # fmt: skip
    (ids,) = read(proto, tmp_path).inputs
    assert ids.hint is not None
    assert (ids.hint.kind, ids.hint.high) == ("integers", 2)
