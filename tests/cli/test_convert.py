from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

CODE = """
def build():
    return (lambda feeds: feeds["x"] * 2), None, {"onnx": "double.onnx"}

def raising():
    raise ValueError("the weights are gone")
"""


@pytest.fixture
def source(tool, tmp_path: Path) -> Path:
    """A file of sources in the folder that the tool is called in."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", info[:1], info[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, tmp_path / "double.onnx")
    file = tmp_path / "net.py"
    file.write_text(CODE)
    return file


@pytest.mark.live
def test_a_source_becomes_a_file_in_the_named_place(tool, source, tmp_path):
    ended = tool("convert", "net.py:build", "-o", "out/net.onnx")
    assert ended.code == 0
    written = tmp_path / "out" / "net.onnx"
    assert written.read_bytes() == (tmp_path / "double.onnx").read_bytes()
    assert "out/net.onnx" in ended.out
    assert "x: tensor(float) [n, 3]" in ended.out


@pytest.mark.live
def test_what_goes_wrong_in_the_function_is_one_line(tool, source, tmp_path):
    ended = tool("convert", "net.py:raising", "-o", "net.onnx")
    assert ended.code != 0
    assert all(part in ended.err for part in ("net.py:6: ", "ValueError: "))
    assert not (tmp_path / "net.onnx").exists()


@pytest.mark.parametrize(
    ("spec", "output", "place"),
    [
        ("nope.py:build", "net.onnx", "SOURCE"),
        ("double.onnx", "net.onnx", "SOURCE"),
        ("net.py", "net.onnx", "net.py"),
        ("net.py:build", "net.pb", "--output=net.pb"),
    ],
)
def test_what_is_no_source_is_refused(tool, source, tmp_path, spec, output, place):
    ended = tool("convert", spec, "-o", output)
    assert ended.code == 2 or spec == "net.py"
    assert ended.error.place == place
    assert "{" not in str(ended.error)
    assert not (tmp_path / output).exists()


def test_a_misspelt_file_is_told_its_neighbour(tool, source, tmp_path):
    ended = tool("convert", "nte.py:build", "-o", "net.onnx")
    assert ended.error.place == "SOURCE"
    assert "nte.py" in ended.error.message
    assert "'net.py'" in ended.error.hint


@pytest.mark.live
@pytest.mark.parametrize("option", ["--exporter", "--ort-exporter"])
def test_settings_of_an_exporter_reach_it(tool, source, tmp_path, option):
    """A callable has no exporter, so that it knows none of them."""
    ended = tool("convert", "net.py:build", "-o", "net.onnx", f"{option}=torchscript,opset=13")
    assert ended.code != 0
    assert "'exporter'" in ended.error.message
    assert not (tmp_path / "net.onnx").exists()
