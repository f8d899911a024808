"""Sizes and counts before and after, in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from pytest_ortbench.core.extent import Extent
from pytest_ortbench.core.model import Variant
from pytest_ortbench.models.extent import extent_of
from pytest_ortbench.report.extent import extent_words

pytestmark = pytest.mark.live


def variant(size: int, **counts: object) -> Variant:
    extent = Extent(**counts) if counts else None  # type: ignore[arg-type]  # as each test says
    return Variant(precision="p", path="m.onnx", digest="", size_bytes=size, extent=extent)


BEFORE = variant(14_200_000, nodes=152, parameters=3_540_000, macs=301_000_000)


@pytest.mark.parametrize(
    ("after", "before", "words"),
    [
        (
            BEFORE,
            None,
            "14.2 MB, 152 nodes, 3.54 M parameters, 301 M multiply-accumulates",
        ),
        (
            variant(900, nodes=1, parameters=9, uncounted=1),
            None,
            "900 B, 1 node, 9 parameters, multiply-accumulates unknown "
            "(1 node of operators or shapes that are not known)",
        ),
        (
            variant(3_640_000, nodes=417, parameters=3_490_000, macs=301_000_000),
            BEFORE,
            "14.2 MB → 3.64 MB, 152 → 417 nodes, 3.54 M → 3.49 M parameters, "
            "301 M multiply-accumulates",
        ),
        (
            variant(14_000_000, nodes=65, parameters=3_540_000, uncounted=53),
            BEFORE,
            "14.2 MB → 14.0 MB, 152 → 65 nodes, 3.54 M parameters, multiply-accumulates unknown "
            "(53 nodes of operators or shapes that are not known)",
        ),
        (
            variant(14_200_000, nodes=152, parameters=3_540_000, macs=136_000, uncounted=59),
            BEFORE,
            "14.2 MB, 152 nodes, 3.54 M parameters, multiply-accumulates unknown "
            "(59 nodes of operators or shapes that are not known)",
        ),
        (
            variant(20, nodes=2, parameters=3, macs=5, uncounted=1),
            variant(20, nodes=3, parameters=3, macs=6, uncounted=1),
            "20.0 B, 3 → 2 nodes, 3 parameters, at least 6 → 5 multiply-accumulates",
        ),
        (
            variant(10, nodes=2, parameters=3, macs=5, uncounted=1),
            None,
            "10.0 B, 2 nodes, 3 parameters, at least 5 multiply-accumulates",
        ),
        (variant(10, reason="it is in another format"), None, "10.0 B, multiply-accumulates "
         "unknown (it is in another format)"),
        (variant(10), BEFORE, ""),
    ],
)  # fmt: skip
def test_before_and_after(after: Variant, before: Variant | None, words: str) -> None:
    assert extent_words(after, before) == words


def matrix(path: Path, *, op: str = "MatMul", domain: str = "") -> Path:
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "w"], ["y"], name="mm", domain=domain)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 5])],
        [numpy_helper.from_array(np.zeros((8, 5), np.float32), "w")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)]
    save(helper.make_model(graph, ir_version=8, opset_imports=opsets), str(path))
    return path


def test_a_file_is_counted_at_the_sizes_of_its_case(tmp_path: Path) -> None:
    path = matrix(tmp_path / "m.onnx")
    assert extent_of(path, {"x": (3, 8)}) == Extent(nodes=1, parameters=40, macs=3 * 8 * 5)
    assert extent_of(path, {"x": (6, 8)}).macs == 240


def test_what_can_t_be_counted_has_a_reason(tmp_path: Path) -> None:
    foreign = extent_of(matrix(tmp_path / "m.onnx", op="Mine", domain="my.ops"), {"x": (3, 8)})
    assert (foreign.nodes, foreign.parameters, foreign.macs) == (1, 40, None)
    assert foreign.uncounted == 1
    (tmp_path / "text.onnx").write_text("no model")
    assert extent_of(tmp_path / "text.onnx", {}).reason.startswith("the file can't be read: ")
    assert extent_of(tmp_path / "absent.onnx", {}).nodes is None


def test_a_very_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_ortbench.models.extent._LARGEST_BYTES", 10)
    found = extent_of(matrix(tmp_path / "m.onnx"), {"x": (3, 8)})
    assert found == Extent(reason="the file of 0.0 GB is not read to be counted")
