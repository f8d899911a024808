"""Inputs that turn up once the plan is made: what they change, and what they do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.recipe import Recipe
from pytest_ortbench.planning.matrix import Planned, Target, build_plan, with_inputs
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.unreadable import UnreadableModel
from pytest_ortbench.planning.variants import OwnVariant

CPU = Provider(alias="cpu", name="CPUExecutionProvider")
CURRENT = Target(runtime=Runtime(), providers=(CPU,))
MODEL = Model(
    name="m",
    path="/models/m.onnx",
    source="file",
    digest="d" * 64,
    size_bytes=100,
    inputs=(TensorInfo(name="x", type="tensor(float)", shape=("N", 4)),),
    weight_types={"float": 10},
)


@pytest.fixture
def feeds(tmp_path: Path) -> Path:
    np.savez(tmp_path / "feeds.npz", x=np.ones((1, 4), np.float32))
    return tmp_path / "feeds.npz"


def _planned(model: Model, request: PlanRequest, target: Target = CURRENT) -> Planned:
    (planned,) = build_plan(request, [model], [target]).entries
    return planned


def test_a_precision_that_can_t_be_made_stays_refused(feeds: Path) -> None:
    # Its file is the source's: without the refusal the native file is timed as int8-dynamic.
    model = replace(MODEL, path="/models/m.ort")
    planned = _planned(model, PlanRequest(models=(), precisions=("int8-dynamic",)))
    assert planned.refusal is not None
    assert with_inputs(planned, feeds).refusal == planned.refusal


def test_a_variant_whose_file_is_broken_stays_refused(feeds: Path) -> None:
    own = {"m": [OwnVariant(name="qat", model=None, error="qat.onnx: is empty")]}
    plan = build_plan(PlanRequest(models=(), precisions=("qat",)), [MODEL], [CURRENT], own=own)
    fed = with_inputs(plan.entries[0], feeds)
    assert fed.refusal is not None
    assert fed.refusal.message.startswith("qat.onnx: ")


def test_a_graph_that_can_t_be_captured_stays_refused(feeds: Path) -> None:
    cuda = Provider(alias="cuda", name="CUDAExecutionProvider", options={"enable_cuda_graph": "1"})
    target = Target(runtime=Runtime(), providers=(cuda,))
    fed = with_inputs(_planned(MODEL, PlanRequest(models=()), target), feeds)
    assert fed.refusal is not None
    assert fed.refusal.phase == "session"


def test_a_runtime_that_can_t_be_had_stays_refused(feeds: Path) -> None:
    failure = Failure(kind="unavailable", phase="start", message="no such interpreter")
    target = Target(runtime=Runtime(), providers=(CPU,), refusal=failure)
    assert with_inputs(_planned(MODEL, PlanRequest(models=()), target), feeds).refusal == failure


def test_a_model_that_can_t_be_read_stays_refused(feeds: Path) -> None:
    broken = UnreadableModel(name="bad", path="/models/bad.onnx", message="bad.onnx: is empty")
    (planned,) = build_plan(PlanRequest(models=()), [broken], [CURRENT]).entries
    assert with_inputs(planned, feeds) == planned


def test_inputs_lift_the_refusal_of_inputs(feeds: Path) -> None:
    # Nothing can be drawn for an input whose number of axes is not known.
    (info,) = MODEL.inputs
    planned = _planned(replace(MODEL, inputs=(replace(info, shape=None),)), PlanRequest(models=()))
    assert planned.refusal is not None
    fed = with_inputs(planned, feeds)
    assert fed.refusal is None
    assert fed.case.inputs[0].path == str(feeds)


def test_a_half_precision_variant_gets_the_values_in_its_own_type(feeds: Path) -> None:
    recipe = Recipe(name="half", base="fp16", keep_io_types=False)
    request = PlanRequest(models=(), precisions=("half",))
    (planned,) = build_plan(request, [MODEL], [CURRENT], recipes={"half": recipe}).entries
    assert planned.case.inputs[0].type == "tensor(float16)"
    assert with_inputs(planned, feeds).case.inputs[0].type == "tensor(float16)"


def test_a_workload_keeps_its_sizes(tmp_path: Path) -> None:
    ids, past = np.ones((1, 128), np.int64), np.zeros((1, 2, 3, 4), np.float32)
    np.savez(tmp_path / "prompt.npz", input_ids=ids, past=past)
    decoder = replace(
        MODEL,
        inputs=(
            TensorInfo(name="input_ids", type="tensor(int64)", shape=("B", "S")),
            TensorInfo(name="past", type="tensor(float)", shape=("B", 2, "P", 4)),
        ),
        workloads={"decode": {"S": 1, "P": 127}, "prefill": {"S": 128, "P": 3}},
    )
    entries = build_plan(PlanRequest(models=()), [decoder], [CURRENT]).entries
    decode, prefill = (with_inputs(planned, tmp_path / "prompt.npz") for planned in entries)
    assert prefill.refusal is None
    assert [spec.shape for spec in prefill.case.inputs] == [(1, 128), (1, 2, 3, 4)]
    # A prompt is no decoding step, and must not be timed under its name.
    assert decode.refusal is not None
    assert " workload " in decode.refusal.message
    assert decode.case.inputs[0].shape == (1, 1)
