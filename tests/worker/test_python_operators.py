"""Operators that are functions of Python."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.core.case import SessionConfig
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.worker.python_operators import library_for
from pytest_ortbench.worker.session import CustomOpsAbsent, session_options

DOUBLE = """
from onnxruntime_extensions import PyCustomOpDef, onnx_op

@onnx_op(op_type="Double", inputs=[PyCustomOpDef.dt_float], outputs=[PyCustomOpDef.dt_float])
def double(x):
    return x * 2
"""


def written(folder: Path, text: str, name: str = "ops.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_python_files_are_told_from_libraries() -> None:
    config = SessionConfig(custom_ops=("/a/libops.so", "/a/ops.py"))
    assert config.python_operators == ("/a/ops.py",)
    assert SessionConfig().python_operators == ()


def test_a_missing_package_is_named_with_its_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime_extensions", None)
    with pytest.raises(WorkerError) as caught:
        library_for(written(tmp_path, DOUBLE))
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("unavailable", "session")
    assert failure.hint.split()[-1] == "onnxruntime-extensions"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def double(x:", "ops.py:1"),
        ("import no_such_module_anywhere", "ops.py:1"),
        ("x = 1\n1 / 0", "ops.py:2"),
        ("def double(x):\n    return x * 2\n", "ops.py"),
    ],
)
def test_a_bad_file_fails_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    pytest.importorskip("onnxruntime_extensions")
    with pytest.raises(WorkerError) as caught:
        library_for(written(tmp_path, text))
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("error", "session")
    assert told in failure.message
    assert "\n" not in failure.message
    assert failure.hint


def test_a_file_that_is_not_there_is_refused_by_its_path(tmp_path: Path) -> None:
    absent = str(tmp_path / "ops.py")
    with pytest.raises(CustomOpsAbsent) as caught:
        session_options(SessionConfig(custom_ops=(absent,)), threads=1)
    assert str(caught.value) == absent


@pytest.mark.live
def test_sessions_call_a_function_of_python(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_extensions")
    graph = helper.make_graph(
        [helper.make_node("Double", ["x"], ["y"], domain="ai.onnx.contrib")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 3])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.contrib", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    files = (written(tmp_path, DOUBLE), written(tmp_path, DOUBLE.replace("ouble", "ual"), "two.py"))
    fed = np.arange(6, dtype=np.float32).reshape(2, 3)
    for _ in range(2):  # a worker makes several sessions
        options = session_options(SessionConfig(custom_ops=files), threads=1)
        session = onnxruntime.InferenceSession(
            tmp_path / "m.onnx", options, providers=["CPUExecutionProvider"]
        )
        assert np.array_equal(session.run(None, {"x": fed})[0], 2 * fed)
