"""A variant that a runtime can't read is not told as a fault of the model that it was made of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.launch.diagnose import Evidence, diagnose
from pytest_ortbench.schema.protocol import Refusal
from tests.launch import native_messages as said
from tests.results_factory import make_case, make_model

OWN_FILE = replace(make_case(), model=replace(make_model(), ir_version=8, opsets={"ai.onnx": 17}))
MADE = replace(
    OWN_FILE,
    variant=replace(
        make_case().variant,
        precision="int8-static",
        recipe={"base": "int8-static", "tools": "onnxruntime 1.32.0, onnx 1.23.2"},
    ),
)
NBITS = said.CUSTOM_OP.replace("my.ops:Foo", "com.microsoft:MatMulNBits")


def judged(text: str, case: Case) -> Failure:
    refusal = Refusal(phase="session", error="Fail", text=text, version="1.15.1")
    return diagnose(Evidence(refusal=refusal, provider=case.provider, case=case))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (said.IR_99, "has IR version 99, but ONNX Runtime 1.15.1 supports up to 14"),
        (
            said.OPSET_99,
            "has operator set 99 of ai.onnx, but ONNX Runtime 1.15.1 supports up to 28",
        ),
        (said.ML_OPSET_99, "has operator set 99 of ai.onnx.ml"),
        (
            NBITS,
            "has the operator com.microsoft::MatMulNBits, which ONNX Runtime 1.15.1 does not know",
        ),
        (said.UNKNOWN_OP, "has the operator Blah, which ONNX Runtime 1.15.1 does not know"),
        ("[ONNXRuntimeError] : 1 : FAIL : Unrecognized attribute: a", "does not load in ONNX "),
    ],
)
def test_what_the_conversion_brought_is_told_of_the_variant(text: str, words: str) -> None:
    failure = judged(text, MADE)
    assert (failure.kind, failure.phase) == ("unsupported", "session")
    assert failure.message.startswith("the int8-static variant, made with onnxruntime 1.32.0, ")
    assert words in failure.message
    assert "int8-static" not in judged(text, OWN_FILE).message


def test_what_the_model_has_itself_is_told_of_the_model() -> None:
    model = replace(
        MADE.model,
        ir_version=99,
        opsets={"ai.onnx": 99, "ai.onnx.ml": 99},
        op_types={"Blah": 1, "com.microsoft::MatMulNBits": 2},
    )
    for text in (said.IR_99, said.OPSET_99, said.ML_OPSET_99, NBITS, said.UNKNOWN_OP):
        assert "variant" not in judged(text, replace(MADE, model=model)).message


def test_no_library_is_asked_for_that_brings_operators_of_onnx_runtime_itself() -> None:
    failure = judged(NBITS, OWN_FILE)
    assert failure.kind == "unsupported"
    assert "--ort-custom-ops" not in failure.hint
