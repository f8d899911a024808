"""What a run suggests next: each kind has its evidence, and none comes without it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.analysis.next_steps import NextStep, next_steps
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.thread_counts import slower_threads
from pytest_ortbench.core.case import SessionConfig
from pytest_ortbench.core.outcome import CaseResult
from tests.results_factory import (
    draw_durations,
    make_case,
    make_measurement,
    make_model,
    make_result,
    make_run,
)


def _steps(
    *results: CaseResult,
    chosen: Collection[str] = (),
    is_stored: bool = True,
    too_slow: Collection[CaseResult] = (),
) -> dict[str, NextStep]:
    run = make_run(results)
    steps = next_steps(
        run,
        [summarise(result) for result in run.cases],
        chosen=chosen,
        is_stored=is_stored,
        is_profiled_again=is_stored,
        too_slow=[result.case.key for result in too_slow],
    )
    return {step.kind: step for step in steps}


def _quiet(**changes: object) -> CaseResult:
    """A case about which nothing is open but what else could be tried."""
    model = replace(make_model(), weight_types={"float": 3_500_000})
    return make_result(case=replace(make_case(model=model), **changes), spread=0.001)


def _wide() -> CaseResult:
    measurements = [
        make_measurement(draw_durations(median_ns=median_ns, seed=index), worker=index)
        for index, median_ns in enumerate((1_000_000, 2_000_000, 4_000_000))
    ]
    return replace(_quiet(), measurements=tuple(measurements))


def test_a_wide_interval_asks_for_more_processes_and_as_many_seconds_each() -> None:
    assert _steps(_wide())["workers"].options == {"--ort-workers": "6", "--ort-time": "10"}
    assert "workers" not in _steps(_quiet())
    assert "workers" not in _steps(_wide(), chosen={"--ort-budget"})


def test_default_threads_ask_for_one_beside_them() -> None:
    measured = replace(make_measurement(threads=4), threads_source="physical cores")
    result = replace(_quiet(), measurements=(measured,) * 3)
    assert _steps(result)["threads"].options == {"--ort-threads": "1,4"}
    chosen = replace(measured, threads_source="option")
    assert "threads" not in _steps(replace(result, measurements=(chosen,) * 3))
    single = replace(measured, threads=1)
    assert "threads" not in _steps(replace(result, measurements=(single,) * 3))
    assert "threads" not in _steps(result, chosen={"--ort-threads"})


def test_a_case_beyond_a_limit_on_its_speed_asks_for_its_profile_first() -> None:
    slow = make_result(case=make_case(), median_ns=80_000_000)
    quick = make_result(case=make_case(model="tiny"), median_ns=20_000)
    steps = _steps(quick, slow, _wide(), too_slow=[quick])
    assert next(iter(steps)) == "profile"
    assert steps["profile"].case_id == quick.case.case_id
    assert "profile" not in _steps(quick, too_slow=[quick], is_stored=False)


def test_a_case_that_takes_long_asks_for_its_profile() -> None:
    slow = make_result(case=make_case(), median_ns=80_000_000)
    quick = make_result(case=make_case(model="tiny"), median_ns=20_000)
    assert _steps(quick, slow)["profile"].case_id == slow.case.case_id
    assert "profile" not in _steps(quick)
    assert "profile" not in _steps(slow, is_stored=False)
    with_inputs = replace(slow, case=make_case(inputs_file="inputs.npz"))
    assert "profile" not in _steps(with_inputs)


def test_fp32_weights_ask_for_another_precision() -> None:
    assert _steps(_quiet())["precision"].options == {"--ort-precisions": "fp32,int8-dynamic"}
    on_gpu = replace(make_case(provider="cuda"), model=_quiet().case.model)
    assert "fp16" in _steps(replace(_quiet(), case=on_gpu))["precision"].options["--ort-precisions"]
    half = replace(make_model(), weight_types={"float16": 3_500_000})
    assert "precision" not in _steps(_quiet(model=half))
    small = replace(make_model(), weight_types={"float": 300})
    assert "precision" not in _steps(_quiet(model=small))
    assert "precision" not in _steps(_quiet(), chosen={"--ort-precisions"})


def test_narrow_intervals_ask_for_a_gate_against_this_run() -> None:
    assert _steps(_quiet())["gate"].options == {"--ort-baseline": make_run().run_id}
    assert "gate" not in _steps(_wide())
    assert "gate" not in _steps(_quiet(), make_result(case=make_case(), status="crash"))
    assert "gate" not in _steps(_quiet(), chosen={"--ort-against"})
    assert "gate" not in _steps(_quiet(), is_stored=False)


@pytest.mark.parametrize("name", ["net.npz", "inputs.npz", "test_data_set_0"])
def test_inputs_that_lie_beside_the_model_are_named(tmp_path: Path, name: str) -> None:
    model = replace(make_model(), path=str(tmp_path / "net.onnx"), place="net.onnx")
    result = _quiet(model=model)
    assert "inputs" not in _steps(result)
    (tmp_path / name).mkdir()
    assert _steps(result)["inputs"].options == {"--ort-inputs": str(tmp_path / name)}
    assert "inputs" not in _steps(result, chosen={"--ort-inputs"})


def test_there_are_three_at_most_and_none_where_nothing_was_measured() -> None:
    measured = replace(make_measurement(threads=4), threads_source="physical cores")
    results = [_wide(), replace(_quiet(), measurements=(measured,) * 3)]
    results.append(make_result(case=make_case(), median_ns=80_000_000))
    assert list(_steps(*results)) == ["workers", "threads", "profile"]
    assert _steps(make_result(case=make_case(), status="crash")) == {}


def _with_threads(threads: int, median_ns: int, *, source: str = "option") -> CaseResult:
    case = make_case(
        knobs={"threads": str(threads)} if source == "option" else {},
        session=SessionConfig(intra_op_num_threads=threads),
    )
    result = make_result(case=case, median_ns=median_ns)
    measurements = tuple(
        replace(part, threads=threads, threads_source=source) for part in result.measurements
    )
    return replace(result, measurements=measurements)


def _remarks(*results: CaseResult) -> list[tuple[int, int, bool]]:
    remarks = slower_threads((result, summarise(result)) for result in results)
    return [(remark.fewer, remark.more, remark.is_default) for remark in remarks]


def test_more_threads_that_are_slower_are_remarked() -> None:
    one, two = _with_threads(1, 30_000_000), _with_threads(2, 56_000_000)
    assert _remarks(one, two) == [(1, 2, False)]
    default = _with_threads(2, 56_000_000, source="physical cores")
    assert _remarks(one, default) == [(1, 2, True)]
    (remark,) = slower_threads((result, summarise(result)) for result in (one, two))
    assert remark.factor == pytest.approx(56 / 30, rel=0.02)
    assert 1 < remark.low < remark.factor < remark.high


def test_the_best_of_fewer_threads_is_named() -> None:
    rows = [_with_threads(1, 40_000_000), _with_threads(2, 20_000_000)]
    assert _remarks(*rows, _with_threads(4, 60_000_000)) == [(2, 4, False)]


def test_threads_without_evidence_are_not_remarked() -> None:
    one, two = _with_threads(1, 30_000_000), _with_threads(2, 30_100_000)
    assert _remarks(one, two) == []
    assert _remarks(one) == []
    assert _remarks(_with_threads(1, 56_000_000), _with_threads(2, 30_000_000)) == []
    other = make_result(case=make_case(model="other"), median_ns=90_000_000)
    assert _remarks(one, other) == []
