"""Rows with a search for the fastest kernels and without one: on stand-ins for TensorRT and CUDA,
and for real in QNN's compiler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Runtime, Sampling
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.planning.planner import Planner
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.report.tuning import tuned_pairs
from tests.providers.cases import mlp
from tests.providers.conftest import QNN

pytestmark = pytest.mark.live

#: Seconds that one search of a stand-in takes.
SEARCH_S = 0.5
TENSORRT, CUDA = "TensorrtExecutionProvider", "CUDAExecutionProvider"

Rows = Callable[[str, Runtime], dict[str, CaseResult]]


@pytest.fixture
def rows(launcher: ProcessLauncher, tmp_path: Path, here: Runtime) -> Rows:
    """Measure a model with the search and without, in two workers each."""

    def run(provider: str, runtime: Runtime) -> dict[str, CaseResult]:
        path = mlp(tmp_path / "m.onnx")
        planner = Planner(launcher, path.parent, runtimes=[runtime], notify=lambda _: None)
        request = PlanRequest(
            models=(str(path),),
            providers=(provider,),
            tuning=("off", "on"),
            sampling=Sampling(time_s=0.05, workers=2, timeout_s=120.0, yardstick="off"),
        )
        found: dict[str, CaseResult] = {}
        for planned in planner.plan(request).entries:
            assert planned.refusal is None
            found[planned.case.knobs["tuning"]] = measure(
                planned.case, launcher, tmp_path / "scratch", reference_runtime=here
            )
        return found

    return run


def search_of(found: dict[str, CaseResult]) -> float | None:
    """Seconds that the search took, as the table tells them."""
    [pair] = tuned_pairs([summarise(result) for result in found.values()])
    assert pair.latency is not None
    return pair.search_s


def test_cuda_searches_in_the_first_inference_of_each_process(
    rows: Rows, tmp_path: Path, on_stand_ins: Callable[..., Runtime]
) -> None:
    record = tmp_path / "searches"
    found = rows(
        "cuda", on_stand_ins(STAND_IN_SEARCHES=str(record), STAND_IN_SEARCH_S=str(SEARCH_S))
    )
    assert {name: result.status for name, result in found.items()} == {
        "off": "measured",
        "on": "measured",
    }
    on = found["on"]
    assert on.measurements[0].options_in_force["cudnn_conv_algo_search"] == "EXHAUSTIVE"
    assert [len(result.measurements) for result in found.values()] == [2, 2]
    # One in each measured session, and one in the profiled session of the first worker.
    assert record.read_text(encoding="utf-8").splitlines() == [f"{CUDA} m.onnx 0"] * 3
    for measurement in on.measurements:
        assert measurement.startup.first_inference_ns >= SEARCH_S * 1e9
        assert measurement.startup.cache == "none"
    searched = search_of(found)
    assert searched is not None
    assert searched > 0


def test_tensorrt_searches_while_the_first_process_builds_its_engine(
    rows: Rows, tmp_path: Path, on_stand_ins: Callable[..., Runtime]
) -> None:
    record = tmp_path / "searches"
    found = rows(
        "tensorrt", on_stand_ins(STAND_IN_SEARCHES=str(record), STAND_IN_SEARCH_S=str(SEARCH_S))
    )
    # One for the whole run: the other worker and the profiled session load the engine.
    assert record.read_text(encoding="utf-8").splitlines() == [f"{TENSORRT} m.onnx 0"]
    for position, level in (("off", "0"), ("on", "5")):
        built, loaded = found[position].measurements
        assert built.options_in_force["trt_builder_optimization_level"] == level
        assert (built.startup.cache, loaded.startup.cache) == ("cold", "warm")
    built, _ = found["on"].measurements
    assert built.startup.session_create_ns >= SEARCH_S * 1e9
    folders = {
        result.measurements[0].options_in_force["trt_timing_cache_path"]
        for result in found.values()
    }
    assert len(folders) == 2
    summary = summarise(found["on"])
    assert summary.quantities["session_create"].samples == 1
    assert summary.quantities["session_create_warm"].samples == 1
    searched = search_of(found)
    assert searched is not None
    assert searched > 0


@pytest.mark.heavy
@pytest.mark.needs("network")
def test_the_compiler_of_qnn_has_both_rows(
    rows: Rows, made_runtime: Callable[[str], Runtime]
) -> None:
    found = rows("qnn:htp", made_runtime(QNN))
    assert {name: result.status for name, result in found.items()} == {
        "off": "measured",
        "on": "measured",
    }
    assert search_of(found) is not None
