"""Launches with real workers, one each: a whole gate takes half a minute."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.case import Case, Provider, Runtime, SessionConfig
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.model import Variant
from pytest_ortbench.gate.measuring.answers import Exchange
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.measuring.paired import measure_launch
from pytest_ortbench.gate.numbers.answers import judge_answers
from pytest_ortbench.gate.numbers.contrasts import contrasts_of
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.passes.task.numbers import judge_task
from pytest_ortbench.passes.task.run.scoring import score_sides
from pytest_ortbench.planning.feeds import resolve_inputs

pytestmark = [pytest.mark.live, pytest.mark.timed]


def case_of(folder: Path, name: str = "product", factor: float = 1.0) -> Case:
    """A product of matrices of about a tenth of a millisecond, on one thread."""
    weight = np.float32(factor) * np.linspace(-1, 1, 256 * 256, dtype=np.float32).reshape(256, 256)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [32, 256])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [32, 256])],
        [numpy_helper.from_array(weight, "w")],
    )
    path = folder / f"{name}.onnx"
    opsets = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=opsets), str(path))
    model = read_model(path, name=name, source="file")
    return Case(
        model=model,
        variant=Variant(
            precision="native",
            path=model.path,
            digest=model.digest,
            size_bytes=model.size_bytes,
        ),
        provider=Provider(alias="cpu", name="CPUExecutionProvider"),
        runtime=Runtime(command=(sys.executable,)),
        session=SessionConfig(intra_op_num_threads=1),
        inputs=resolve_inputs(model, batch=32, dims={}),
    )


def test_work_that_is_really_added_shows_in_both_contrasts(tmp_path: Path):
    plain = case_of(tmp_path)
    # So many sines take many times as long as the product, whatever else runs here.
    slower = dataclasses.replace(plain, added_work=100_000)
    launcher = ProcessLauncher()
    exchange = Exchange(pair=Pair(baseline=plain, contender=slower), path=tmp_path / "outputs.npz")
    try:
        launched = measure_launch(
            Pair(baseline=plain, contender=slower),
            launcher,
            seed=1,
            index=0,
            deadline=time.monotonic() + 120,
            references=(
                launcher.reference(plain, tmp_path),
                launcher.reference(slower, tmp_path),
            ),
            exchange=exchange,
        )
    finally:
        launcher.close()
    contrasts = contrasts_of(launched.launch)
    assert contrasts.floor > math.log(1.5)
    assert contrasts.typical > math.log(1.5)
    assert launched.launch.baseline_peak_bytes > 0
    assert launched.launch.contender_peak_bytes > 0
    for side in (launched.baseline, launched.contender):
        assert side.threads == 1
        assert side.placement.executed == {"CPUExecutionProvider": 1}
        assert side.accuracy.outputs[0].finite
    answers = exchange.answers(launched.baseline.accuracy, launched.contender.accuracy, {})
    (output,) = answers.compared.outputs
    assert output.exact
    assert output.compared == 8 * 32 * 256
    assert answers.baseline_outputs == answers.contender_outputs == {"y": "tensor(float)"}
    assert judge_answers(answers).judgement.is_good


def test_answers_a_hundred_times_as_large_are_found_in_one_launch(tmp_path: Path):
    pair = Pair(baseline=case_of(tmp_path), contender=case_of(tmp_path, name="wrong", factor=100.0))
    launcher = ProcessLauncher()
    exchange = Exchange(pair=pair, path=tmp_path / "outputs.npz")
    try:
        measure_launch(
            pair,
            launcher,
            seed=2,
            index=0,
            deadline=time.monotonic() + 120,
            exchange=exchange,
        )
    finally:
        launcher.close()
    answers = exchange.answers(None, None, {})
    assert answers.compared.outputs[0].sqnr_db == pytest.approx(-39.9, abs=0.1)
    assert judge_answers(answers).judgement.is_bad


def test_labelled_data_is_scored_on_both_sides(tmp_path: Path):
    inputs = np.random.default_rng(0).standard_normal((384, 256)).astype(np.float32)
    plain, wrong = case_of(tmp_path), case_of(tmp_path, name="wrong", factor=-1.0)
    weight = numpy_helper.to_array(onnx.load(plain.model.path).graph.initializer[0])
    path = tmp_path / "labelled.npz"
    np.savez(path, x=inputs, labels=(inputs @ weight).argmax(axis=1))
    dataset = Dataset(path=str(path))
    sides = [dataclasses.replace(case, dataset=dataset, batch=32) for case in (plain, wrong)]
    launcher = ProcessLauncher()
    try:
        same = score_sides(sides[0], sides[0], launcher, tmp_path)
        lost = score_sides(sides[0], sides[1], launcher, tmp_path)
        none = score_sides(plain, sides[0], launcher, tmp_path)
    finally:
        launcher.close()
    assert (same.samples, same.score_sum, same.reference_sum) == (384, 384.0, 384.0)
    assert (lost.score_sum, lost.reference_sum, lost.worse) == (0.0, 384.0, 384)
    assert judge_task(same).is_good
    assert judge_task(lost).is_bad
    assert none is None
