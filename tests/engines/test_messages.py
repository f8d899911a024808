"""What engines are told of inputs, and what is read out of their messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.engines.mnn import worker as mnn
from pytest_ortbench.engines.seam import EngineRefusal, EngineTask, EngineTensor, require_types
from pytest_ortbench.engines.tract.worker import fact_of, refusal_of

_UNKNOWN = """Translating node #1 "y" Unimplemented(Det) ToTypedTranslator

Caused by:
    Operator can not be made a TypedOp.

Stack backtrace:
   0: <anyhow::Error>::msg::<&str>
"""
_NUMBERED = """Evaluating node 3

Caused by:
    0: in the kernel
    1: sizes differ: 1 and 2
"""


@pytest.mark.parametrize(
    ("shape", "fact"), [((), "f32"), ((1,), "1,f32"), ((1, 3, 8, 8), "1,3,8,8,f32")]
)
def test_an_input_is_told_by_its_sizes_and_type(shape: tuple[int, ...], fact: str) -> None:
    assert fact_of(EngineTensor(name="x", type="tensor(float)", shape=shape)) == fact


def test_a_type_that_an_engine_has_not_is_refused_with_its_tensor() -> None:
    task = EngineTask(
        path=Path("net.onnx"),
        inputs=(EngineTensor(name="x", type="tensor(float)", shape=(1,)),),
        outputs=(EngineTensor(name="words", type="seq(tensor(string))"),),
        threads=1,
    )
    require_types(task, "MNN", {"tensor(float)", "seq(tensor(string))"})
    with pytest.raises(EngineRefusal) as caught:
        require_types(task, "MNN", {"tensor(float)"})
    assert caught.value.kind == "unsupported"
    assert str(caught.value) == "MNN has no seq(tensor(string)), the type of 'words'"


def test_a_lacking_operator_is_named_and_the_stack_is_not_quoted() -> None:
    line = refusal_of(_UNKNOWN)
    assert "operator Det" in line
    assert "Operator can not be made a TypedOp" in line
    assert "anyhow" not in line
    assert "\n" not in line


def test_causes_are_joined_without_their_numbers() -> None:
    assert refusal_of(_NUMBERED) == (
        "tract says: Evaluating node 3: in the kernel: sizes differ: 1 and 2"
    )


_UNCONVERTED = """The device supports: i8sdot:0, fp16:0
[13:31:16] :46: ONNX Model ir version: 8
Start to Optimize the MNN Net...
[13:31:16] :220: These Op Not Support: ONNX::FusedMatMul ONNX::Foo
Converted Failed!
"""


@pytest.mark.parametrize(
    ("log", "status", "line"),
    [
        (
            _UNCONVERTED,
            0,
            "MNN lacks the operator FusedMatMul, Foo; it says: These Op Not Support: "
            "ONNX::FusedMatMul ONNX::Foo",
        ),
        ("Start to Optimize\n", -11, "MNN's converter ended by signal 11"),
        ("[13:31:16] :9: no such file\n", 1, "MNN says: no such file"),
        ("", 1, "MNN says: nothing"),
    ],
)
def test_mnn_says_why_it_converted_nothing(log: str, status: int, line: str) -> None:
    assert mnn.conversion_refusal(log, status) == line
