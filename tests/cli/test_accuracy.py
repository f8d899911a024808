"""``ortbench accuracy``: real conversions, and what is said of their nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.cli.application import application
from pytest_ortbench.cli.terminal import ExitCode
from pytest_ortbench.core.errors import UsageError

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two products; the second one's weight holds what float16 can't."""
    monkeypatch.setenv("ORTBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((32, 32)).astype(np.float32)
    wide[0] = 1e6
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w0"], ["h"], name="fine"),
            helper.make_node("MatMul", ["h", "w1"], ["y"], name="clamped"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 32])],
        [
            numpy_helper.from_array(rng.standard_normal((32, 32)).astype(np.float32), "w0"),
            numpy_helper.from_array(wide, "w1"),
        ],
    )
    opsets = [helper.make_opsetid("", 13)]
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    return path


def call(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(application, ["accuracy", *arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.stdout, result.stderr


def test_weights_that_are_no_numbers_are_said(model: Path) -> None:
    proto = onnx.load(str(model))
    broken = numpy_helper.to_array(proto.graph.initializer[1]).copy()
    broken[3, 4] = np.nan
    proto.graph.initializer[1].CopyFrom(numpy_helper.from_array(broken, "w1"))
    onnx.save(proto, "nan.onnx")
    code, _, error = call("nan.onnx", "--precision=int8-dynamic")
    assert code == ExitCode.NOTHING
    for part in ("int8-dynamic ", "NaN", "'w1'"):
        assert part in error
    assert "AssertionError" not in error
    # What does not fail on them says it of the reference.
    code, text, _ = call("nan.onnx", "--precision=native")
    assert code == ExitCode.FINE
    assert "NaN, first at 'clamped' (in 1 of 2 nodes)" in text


def test_a_graph_that_draws_random_numbers_does_not_blame_the_precision() -> None:
    graph = helper.make_graph(
        [
            helper.make_node("RandomNormalLike", ["x"], ["n"], name="noise"),
            helper.make_node("Add", ["x", "n"], ["y"], name="add"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 32])],
    )
    opsets = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "noisy.onnx")
    _, text, _ = call("noisy.onnx", "--precision=fp16")
    assert "(RandomNormalLike)" in text


def test_nodes_in_branches_are_said_not_to_be_compared(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    branches = [
        helper.make_graph(
            [
                helper.make_node("MatMul", ["x", f"w{side}"], [f"h{side}"], name=f"mm{side}"),
                helper.make_node("Relu", [f"h{side}"], [f"o{side}"], name=f"relu{side}"),
            ],
            f"branch{side}",
            [],
            [helper.make_tensor_value_info(f"o{side}", TensorProto.FLOAT, ["N", 32])],
            [numpy_helper.from_array(weight * (side + 1), f"w{side}")],
        )
        for side in range(2)
    ]
    graph = helper.make_graph(
        [
            helper.make_node("ReduceSum", ["x"], ["sum"], name="sum", keepdims=0),
            helper.make_node("Greater", ["sum", "zero"], ["positive"], name="greater"),
            helper.make_node(
                "If",
                ["positive"],
                ["y"],
                name="if",
                then_branch=branches[0],
                else_branch=branches[1],
            ),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 32])],
        [numpy_helper.from_array(np.array(0, np.float32), "zero")],
    )
    opsets = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "branches.onnx")
    code, text, _ = call("branches.onnx", "--precision=int8-dynamic")
    assert code == ExitCode.FINE
    assert any(line.startswith("4 nodes ") for line in text.splitlines())
    assert (
        next(line for line in text.splitlines() if line.strip().startswith("if ")).split()[1]
        == "If"
    )


def test_the_worst_node_comes_first() -> None:
    code, text, _ = call("net.onnx", "--precision=fp16", "--top=1")
    assert code == ExitCode.FINE
    lines = text.splitlines()
    assert lines[0].split()[:3] == ["net", "in", "fp16"]
    # A product with 65504 is beyond what float16 can hold.
    assert lines[3].split() == ["clamped", "MatMul", "96"]
    assert lines[4].split()[:2] == ["and", "1"]


def test_sizes_can_be_set() -> None:
    code, text, _ = call("net.onnx", "--precision=fp16", "--top=1", "--dims=N:4")
    assert code == ExitCode.FINE
    # Four rows of 32 values in each of three input sets.
    assert text.splitlines()[3].split()[-1] == "320"
    with pytest.raises(UsageError, match="seq"):
        call("net.onnx", "--precision=fp16", "--dims=seq:4")


def test_what_can_t_be_made_is_said() -> None:
    (Path.cwd() / "pyproject.toml").write_text(
        '[tool.ortbench.precisions.heads]\nbase = "fp16"\nnodes_to_exclude = ["none"]\n'
    )
    code, text, said = call("net.onnx", "--precision=heads")
    assert (code, text) == (ExitCode.NOTHING, "")
    assert "'none'" in said


def test_a_variant_that_the_model_has_not_is_said() -> None:
    (Path.cwd() / "pyproject.toml").write_text(
        '[tool.ortbench.models.other]\nfile = "other.onnx"\nvariants.qat = "qat.onnx"\n'
    )
    code, _, said = call("net.onnx", "--precision=qat")
    assert code == ExitCode.NOTHING
    assert ("net.onnx" in said, "'qat'" in said) == (True, True)


def test_a_node_without_a_pair_of_numbers_is_not_exact(tmp_path: Path) -> None:
    """A reference that gives NaN only, and a variant that gives the same."""
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"], name="fine"),
            helper.make_node("Mul", ["h", "nothing"], ["z"], name="zero"),
            helper.make_node("Div", ["z", "z"], ["y"], name="nan"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
        [
            numpy_helper.from_array(np.eye(4, dtype=np.float32), "w"),
            numpy_helper.from_array(np.float32(0), "nothing"),
        ],
    )
    opsets = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "zeros.onnx")
    code, out, _ = call("zeros.onnx", "--precision=fp16")
    assert code == ExitCode.FINE
    rows = {line.split()[0]: line.split()[2:] for line in out.splitlines() if len(line.split()) > 3}
    assert rows["nan"][:4] == ["NaN", "on", "both", "sides"]
    assert "dB" in rows["fine"] or "exact" in rows["fine"]
