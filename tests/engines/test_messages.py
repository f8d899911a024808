"""What engines are told of inputs, and what is read out of their messages."""

from __future__ import annotations

import pytest

from pytest_ortbench.engines.seam import EngineRefusal, EngineTensor
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


@pytest.mark.parametrize(
    "type_", ["tensor(string)", "tensor(bfloat16)", "seq(tensor(float))", "sparse_tensor(float)"]
)
def test_a_type_that_it_has_not_is_refused_with_the_input(type_: str) -> None:
    with pytest.raises(EngineRefusal) as caught:
        fact_of(EngineTensor(name="words", type=type_, shape=(1,)))
    assert caught.value.kind == "unsupported"
    assert "words" in str(caught.value)
    assert type_ in str(caught.value)


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
