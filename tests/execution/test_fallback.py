"""What is advised where a provider computed no node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.execution.standard import _fallback
from tests.results_factory import make_case

CUDA = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"


@pytest.mark.parametrize(
    ("ops", "step"), [("ZipMap", "--ort-providers=cpu"), ("Conv", "--ort-precisions")]
)
def test_no_precision_helps_with_operators_of_machine_learning(ops: str, step: str) -> None:
    case = make_case(provider="cuda")
    case = replace(case, model=replace(case.model, op_types={"ai.onnx.ml::ZipMap": 1, "Conv": 1}))
    placement = Placement(provider=CUDA, executed={CPU: 1}, ops_elsewhere={ops: 1})
    failure = _fallback(case, placement)
    assert failure is not None
    assert step in failure.hint
