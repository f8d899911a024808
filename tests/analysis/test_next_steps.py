"""What a run suggests next: each kind has its evidence, and none comes without it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import pytest

from pytest_ortbench.analysis.next_step import NextStep
from pytest_ortbench.analysis.next_steps import next_steps
from pytest_ortbench.analysis.other_precisions import precision_to_try
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.thread_counts import slower_threads
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Sampling, SessionConfig
from pytest_ortbench.core.outcome import BudgetShare, CaseResult, Flag
from tests.results_factory import (
    draw_durations,
    make_accuracy,
    make_case,
    make_measurement,
    make_model,
    make_result,
    make_run,
    make_samples,
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
    model = replace(make_model(), weight_types={"float": 3_500_000}, op_types={"MatMul": 9})
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


class _Side(TypedDict, total=False):
    """What one of two cases is measured with."""

    provider: str
    precision: str
    knobs: Mapping[str, str]


def _starved(
    provider: str = "cpu",
    *,
    median_ns: int = 3_000_000,
    threads: int = 2,
    got: float = 0.4,
    precision: str = "native",
    knobs: Mapping[str, str] | None = None,
) -> CaseResult:
    """A case whose processes got so many of their two CPUs."""
    drawn = [draw_durations(median_ns=median_ns, seed=seed) for seed in range(3)]
    measurements = [
        make_measurement(
            samples=make_samples(durations, cpu_share=got), worker=index, threads=threads
        )
        for index, durations in enumerate(drawn)
    ]
    case = make_case(provider=provider, precision=precision, knobs=knobs)
    result = make_result(case=case)
    result = replace(result, measurements=tuple(measurements))
    return replace(result, flags=flags_of(result))


def test_a_process_without_its_cpus_asks_for_an_idle_machine_and_not_for_more_of_it() -> None:
    steps = _steps(_starved())
    assert next(iter(steps)) == "idle"
    assert steps["idle"].options == {}
    assert {"workers", "time"}.isdisjoint(steps)
    # One that is cold for want of CPUs is not helped by more seconds either.
    cold = _starved(median_ns=400_000_000)
    assert "idle" in _steps(cold)
    assert "time" not in _steps(cold)


@pytest.mark.parametrize(
    ("chosen", "sides", "options"),
    [
        (
            {"--ort-providers", "--ort-time"},
            ({"provider": "cpu"}, {"provider": "openvino:CPU"}),
            {"--ort-providers": "cpu", "--ort-against": "provider:openvino:CPU"},
        ),
        (
            {"--ort-threads", "--ort-precisions"},
            (
                {"precision": "fp32", "knobs": {"threads": "2"}},
                {"precision": "fp32", "knobs": {"threads": "1"}},
            ),
            {
                "--ort-precisions": "fp32",
                "--ort-threads": "2",
                "--ort-against": "option:intra_op_num_threads=1",
            },
        ),
        (
            {"--ort-precisions"},
            ({"precision": "fp32"}, {"precision": "int8-dynamic"}),
            {"--ort-precisions": "fp32", "--ort-against": "precision:int8-dynamic"},
        ),
    ],
)
def test_two_cases_that_load_blurs_are_compared_in_turns(
    chosen: set[str], sides: tuple[_Side, ...], options: dict[str, str]
) -> None:
    first, second = (
        _starved(median_ns=median_ns, **side)
        for median_ns, side in zip((3_000_000, 3_900_000), sides, strict=True)
    )
    steps = _steps(first, second, chosen=chosen)
    assert steps["turns"].options == options
    assert {"workers", "time", "idle"}.isdisjoint(steps)
    assert "turns" not in _steps(first, second, chosen={*chosen, "--ort-against"})


def test_a_case_that_is_not_judged_yet_is_compared_in_turns_and_a_wrong_one_is_not() -> None:
    other = _starved("openvino:CPU", median_ns=3_900_000)
    cold = replace(other, flags=(*other.flags, Flag(name="UNJUDGED")))
    assert "turns" in _steps(_starved(), cold)
    wrong = replace(other, flags=(*other.flags, Flag(name="INACCURATE")))
    assert "turns" not in _steps(_starved(), wrong)


def test_cases_that_differ_in_two_ways_or_that_nothing_disturbed_are_not_compared_in_turns() -> (
    None
):
    far = _starved("openvino:CPU", precision="fp32", median_ns=3_900_000)
    assert "turns" not in _steps(_starved(), far)
    assert "turns" not in _steps(_quiet(), replace(_quiet(), case=make_case(provider="cuda")))


def test_threads_of_a_disturbed_row_are_compared_in_turns() -> None:
    starved = _starved()
    measured = tuple(
        replace(part, threads_source="physical cores") for part in starved.measurements
    )
    starved = replace(starved, measurements=measured)
    assert _steps(starved)["threads"].options == {"--ort-against": "option:intra_op_num_threads=1"}


def _of_one_worker(
    workers: int, budget: BudgetShare | None = None, provider: str = "cpu"
) -> CaseResult:
    """One process measured a case of which so many were asked for."""
    case = make_case(provider=provider, sampling=Sampling(workers=workers, time_s=6, timeout_s=40))
    result = make_result(case=case, spread=0.001, workers=1)
    result = replace(result, budget=budget)
    return replace(result, flags=flags_of(result))


def test_one_worker_asks_for_as_many_as_show_a_spread() -> None:
    share = BudgetShare(given_s=42.5, workers=1, timed_s=1.67)
    for results, options in (
        # A budget decides on workers, and stands beside no number of them.
        ([_of_one_worker(3, share)], {"--ort-workers": "3", "--ort-budget": "none"}),
        ([_of_one_worker(5)], {"--ort-workers": "5", "--ort-timeout": "200"}),
        ([_of_one_worker(1), _quiet()], {"--ort-workers": "3", "--ort-time": "18"}),
    ):
        assert _steps(*results, chosen={"--ort-budget"})["workers"].options == options
    # Who asked for one of one case has what he asked for.
    assert "workers" not in _steps(_of_one_worker(1))


def test_a_warm_up_that_was_cut_off_asks_for_more_seconds_each() -> None:
    cold = make_measurement([5_000_000] * 2)
    cold = replace(cold, warm_up=replace(cold.warm_up, steady=False))
    result = replace(_quiet(), measurements=(cold,) * 3)
    steps = _steps(result)
    assert steps["time"].options == {"--ort-time": f"{4 * result.case.sampling.time_s:g}"}
    assert "workers" not in steps


def test_wrong_answers_ask_for_the_node_and_not_for_more_of_their_number() -> None:
    model = replace(make_model(), path="/work/net.onnx", place="net.onnx")
    wrong = make_result(
        case=make_case(model=model, precision="int8-static", inputs_file="/data/photos.npz"),
        accuracy=make_accuracy(sqnr_db=3.0),
    )
    wrong = replace(wrong, measurements=_wide().measurements)
    wrong = replace(wrong, flags=flags_of(wrong))
    steps = _steps(wrong)
    assert steps["accuracy"].wrong == wrong.case
    assert "workers" not in steps
    assert "accuracy" not in _steps(_quiet())


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


@pytest.mark.parametrize(
    ("provider", "nodes", "inputs", "precision"),
    [
        ("cpu", {"MatMul": 9, "Conv": 1}, "", "int8-dynamic"),
        # Dynamic ranges make convolutions slower, and static ones need real inputs.
        ("cpu", {"Conv": 9, "Gemm": 1}, "", ""),
        ("cpu", {"Conv": 9, "Gemm": 1}, "/data/photos.npz", "int8-static"),
        ("cpu", {"TreeEnsemble": 1}, "", ""),
        # Half precision is computed in float32 on CPUs, by OpenVINO's usual device, too.
        ("openvino", {"MatMul": 9}, "", "int8-dynamic"),
        ("openvino:CPU", {"Conv": 9}, "", ""),
        ("openvino:GPU", {"Conv": 9}, "", "fp16"),
        ("cuda", {"Conv": 9}, "", "fp16"),
    ],
)
def test_no_precision_is_suggested_that_is_known_to_gain_nothing(
    provider: str, nodes: dict[str, int], inputs: str, precision: str
) -> None:
    model = replace(_quiet().case.model, op_types=nodes)
    case = make_case(model=model, provider=provider, inputs_file=inputs)
    assert precision_to_try(case) == precision
    options = {
        step.options["--ort-precisions"]
        for kind, step in _steps(replace(_quiet(), case=case)).items()
        if kind == "precision"
    }
    assert options == ({f"fp32,{precision}"} if precision else set())


def test_a_precision_that_suits_one_provider_alone_is_not_suggested() -> None:
    model = replace(_quiet().case.model, op_types={"MatMul": 9})
    both = [
        replace(_quiet(), case=make_case(model=model, provider=name)) for name in ("cpu", "cuda")
    ]
    assert "precision" not in _steps(*both)


def test_fp32_weights_ask_for_another_precision() -> None:
    assert _steps(_quiet())["precision"].options == {"--ort-precisions": "fp32,int8-dynamic"}
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
    assert remark.blurred_by == ()


def test_threads_that_lacked_cpus_are_remarked_with_that_doubt() -> None:
    one, two = _with_threads(1, 30_000_000), _with_threads(2, 86_000_000)
    two = replace(two, flags=(Flag(name="CPU-SHARE"), Flag(name="MEMORY-BUSY")))
    (remark,) = slower_threads((result, summarise(result)) for result in (one, two))
    assert remark.blurred_by == ("CPU-SHARE",)


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
