"""Models as the tools need them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import helper

from pytest_ortbench.convert import graph

from .conversions import mlp


def _names(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    return [node.name for node in nodes]


def test_nodes_are_put_behind_what_they_read() -> None:
    model = onnx.load_from_string(mlp(depth=3))
    nodes = list(model.graph.node)
    shuffled = helper.make_graph(nodes[::-1], "g", model.graph.input, model.graph.output)
    graph.order_nodes(shuffled)
    assert _names(shuffled.node) == _names(nodes)
