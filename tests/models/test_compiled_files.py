"""Files that hold parts which a provider compiled (EPContext): what is read of them."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.core.compilation import CompiledPart
from pytest_ortbench.core.errors import ModelError
from pytest_ortbench.models.graph import read_model

OPENVINO = "OpenVINOExecutionProvider"
BLOB = "m_OpenVINOExecutionProvider.bin"


def context_node(value: str = "x", result: str = "y", **attributes: object) -> onnx.NodeProto:
    """One compiled part, as providers write it."""
    given = {"source": OPENVINO, "ep_sdk_version": "2025.4", "main_context": 1, **attributes}
    return helper.make_node(
        "EPContext", [value], [result], name=f"part of {result}", domain="com.microsoft", **given
    )


def compiled_file(path: Path, *nodes: onnx.NodeProto) -> Path:
    """A file of such nodes, from ``x`` to ``y``."""
    shape = ["batch", 4]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


def test_it_is_known_whose_parts_a_file_holds(tmp_path: Path) -> None:
    path = compiled_file(
        tmp_path / "m.onnx",
        context_node("x", "a", embed_mode=1, ep_cache_context=b"\xff\x00"),
        context_node("a", "b", embed_mode=1, ep_cache_context=b"1"),
        context_node("b", "y", source="QNN", ep_sdk_version="", hardware_architecture="v73"),
    )
    assert read_model(path, name="m", source="file").compiled == (
        CompiledPart(provider=OPENVINO, library="2025.4", nodes=2),
        CompiledPart(provider="QNN", hardware="v73", nodes=1),
    )


def test_a_plain_file_holds_none(tmp_path: Path) -> None:
    path = compiled_file(tmp_path / "m.onnx", helper.make_node("Relu", ["x"], ["y"]))
    assert read_model(path, name="m", source="file").compiled == ()


def test_what_lies_beside_the_file_is_a_part_of_it(tmp_path: Path) -> None:
    node = context_node(embed_mode=0, ep_cache_context=BLOB)
    path = compiled_file(tmp_path / "m.onnx", node)
    (tmp_path / BLOB).write_bytes(b"first")
    first = read_model(path, name="m", source="file")
    assert first.external_files == (BLOB,)
    assert first.size_bytes == path.stat().st_size + 5
    (tmp_path / BLOB).write_bytes(b"other")
    assert read_model(path, name="m", source="file").digest != first.digest


def test_a_part_inside_of_the_file_names_no_other_one(tmp_path: Path) -> None:
    node = context_node(embed_mode=1, ep_cache_context="/etc/passwd")
    path = compiled_file(tmp_path / "m.onnx", node)
    assert read_model(path, name="m", source="file").external_files == ()


@pytest.mark.parametrize("location", ["../m.bin", "/etc/passwd", "gone.bin", "a/../../m.bin"])
def test_a_part_that_lies_elsewhere_or_nowhere_is_refused(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "m.bin").write_bytes(b"outside")
    node = context_node(embed_mode=0, ep_cache_context=location)
    path = compiled_file(folder / "m.onnx", node)
    with pytest.raises(ModelError) as caught:
        read_model(path, name="m", source="file")
    assert caught.value.place == str(path)


def test_a_part_of_no_bytes_is_refused(tmp_path: Path) -> None:
    path = compiled_file(tmp_path / "m.onnx", context_node(embed_mode=0, ep_cache_context=BLOB))
    (tmp_path / BLOB).touch()
    with pytest.raises(ModelError):
        read_model(path, name="m", source="file")


def test_a_part_that_another_one_shares_needs_no_file(tmp_path: Path) -> None:
    path = compiled_file(tmp_path / "m.onnx", context_node(main_context=0, embed_mode=0))
    assert read_model(path, name="m", source="file").external_files == ()
