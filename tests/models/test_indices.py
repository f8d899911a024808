"""Indices whose bound stands behind a choice of signs, or in what they are compared with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.models.graphs import FLOAT, INT32, INT64, constant, model, node, read, value, weight

_GATHER = node("Gather", ["table", "index"], ["y"])
_AS_FLOAT = node("Cast", ["x"], ["xf"], to=FLOAT)


def _graph(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    return model(
        nodes,
        [value("x", ["N", "T"], INT32)],
        [value("y", None)],
        [weight("table", 49, 4), constant("zero", 0, "int32"), constant("none", 0, "float32"),
         constant("size", 49, "int32"), constant("far", 5, "int32"),
         constant("places", [list(range(257))], "int32"), constant("last", [-1])],
    )  # fmt: skip


_WRAPPED = (node("Less", ["x", "zero"], ["low"]), node("Add", ["x", "size"], ["end"]))

GRAPHS = {
    "a choice by products": (
        _graph(_AS_FLOAT, node("Less", ["xf", "none"], ["low"]), node("Not", ["low"], ["high"]),
               node("Cast", ["high"], ["h"], to=INT32), node("Cast", ["low"], ["l"], to=INT32),
               node("Mul", ["x", "h"], ["kept"]), node("Add", ["x", "size"], ["end"]),
               node("Mul", ["l", "end"], ["moved"]), node("Add", ["moved", "kept"], ["index"]),
               _GATHER), 48),
    "a choice by Where": (_graph(*_WRAPPED, node("Where", ["low", "end", "x"], ["index"]), _GATHER),
                          48),
    "the other way round": (
        _graph(node("GreaterOrEqual", ["x", "zero"], ["high"]), _WRAPPED[1],
               node("Where", ["high", "x", "end"], ["index"]), _GATHER), 48),
    "compared with all of its values": (
        _graph(node("Unsqueeze", ["x", "last"], ["u"]), node("Equal", ["u", "places"], ["e"]),
               node("Cast", ["e"], ["y"], to=FLOAT)), 256),
    "a limit other than zero": (
        _graph(node("Less", ["x", "far"], ["low"]), node("Where", ["low", "x", "zero"], ["index"]),
               _GATHER), 48),
}  # fmt: skip


@pytest.mark.live
@pytest.mark.parametrize("name", GRAPHS)
def test_the_whole_range_is_drawn(name: str, tmp_path: Path) -> None:
    proto, high = GRAPHS[name]
    (info,) = read(proto, tmp_path).inputs
    assert info.hint is not None
    assert (info.hint.kind, info.hint.low, info.hint.high) == ("integers", 0, high)


@pytest.mark.live
def test_numbers_that_do_not_count_up_bound_nothing(tmp_path: Path) -> None:
    proto = model(
        [node("Equal", ["x", "codes"], ["e"]), node("Cast", ["e"], ["y"], to=FLOAT)],
        [value("x", ["N", 1], INT64)],
        [value("y", None)],
        [constant("codes", np.array([[3, 5, 9]]))],
    )
    (info,) = read(proto, tmp_path).inputs
    assert info.hint is not None
    assert info.hint.high == 9
