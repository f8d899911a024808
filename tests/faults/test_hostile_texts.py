"""What a model names can not reorder what pytest prints, and odd arrays fail with a reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper, save

from .runs import BARE, started

pytestmark = pytest.mark.live


def _measured(folder: Path, node: NodeProto, kind: int, *weights: TensorProto) -> tuple[str, dict]:
    """Return what a run on a model of one node prints, and its case."""
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", kind, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        list(weights),
    )
    opsets = [helper.make_opsetid("", 20)]
    if node.domain:
        opsets.append(helper.make_opsetid(node.domain, 1))
    save(helper.make_model(graph, ir_version=8, opset_imports=opsets), folder / "m.onnx")
    with started(folder, ["m.onnx", "-k", "latency", *BARE]) as run:
        printed = run.end()
    (case,) = run.results()
    return printed, case


def test_escapes_and_overrides_of_native_messages_are_spelt_out(tmp_path: Path) -> None:
    name = "No\x1b[31mOp\u202eevil"
    node = helper.make_node(name, ["x"], ["y"], name="n\x1b[2J", domain="d\x1b[31m")
    printed, case = _measured(tmp_path, node, TensorProto.FLOAT)
    assert case["status"] != "measured"
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert "evil" in printed


def test_an_output_with_more_axes_than_an_array_is_unsupported(tmp_path: Path) -> None:
    shape = numpy_helper.from_array(np.ones(65, np.int64), "s")
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    _, case = _measured(tmp_path, node, TensorProto.FLOAT, shape)
    assert case["status"] == "unsupported"


def test_an_operator_on_texts_that_is_fed_numbers_fails_for_that(tmp_path: Path) -> None:
    node = helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="LOWER")
    _, case = _measured(tmp_path, node, TensorProto.FLOAT)
    assert case["status"] != "measured"
    assert case["failure"]["phase"] == "session"
