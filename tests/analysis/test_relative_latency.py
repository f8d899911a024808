"""The latency against a yardstick: its value, its interval, and when there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.analysis.relative_latency import (
    FEWEST_RUNS,
    LOWS,
    STARVING_FLAGS,
    USUAL_WEIGHTS,
    Mismatch,
    NoRelativeLatency,
    RelativeLatency,
    memory_weight,
    mismatch,
    relative_latency,
    weighed,
)
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.core.yardstick import ABSENCES, Yardstick, YardstickTurns
from pytest_ortbench.schema.document import decode_run, encode_run
from tests.results_factory import (
    make_result,
    make_run,
    make_turns,
    make_turns_in_state,
    make_yardstick,
)

TWO = make_yardstick("parallel", threads=2)


def estimated(turns: Sequence[YardstickTurns], flags: Sequence[Flag] = ()) -> RelativeLatency:
    estimate = relative_latency(make_result(turns=turns, workers=len(turns), flags=flags))
    assert isinstance(estimate, RelativeLatency)
    return estimate


def three(
    median_ns: int = 3_000_000,
    *,
    slower: Sequence[float] = (1.0,),
    yardstick: Yardstick | None = None,
    cpus: float = 1.0,
    best_ns: int | None = 490_000,
    handover_ns: Sequence[int | None] = (),
    best_handover_ns: int | None = None,
) -> list[YardstickTurns]:
    """Turns of three workers, as ``make_turns`` makes them."""
    return [
        make_turns(
            median_ns,
            seed=seed,
            slower=slower,
            yardstick=yardstick,
            cpus=cpus,
            best_ns=best_ns,
            handover_ns=handover_ns,
            best_handover_ns=best_handover_ns,
        )
        for seed in range(3)
    ]


def test_a_machine_that_slows_both_sides_down_changes_no_ratio() -> None:
    quiet = estimated(three())
    busy = estimated(three(slower=(1.0, 1.9, 1.3, 2.4)))
    blocks = estimated(three(slower=(1.3, 1.9, 1.6, 2.4), yardstick=TWO, cpus=1.9))
    assert quiet.value == pytest.approx(6.0, rel=0.01)
    assert busy.value == pytest.approx(6.0, rel=0.01)
    assert blocks.value == pytest.approx(6.0, rel=0.01)
    assert quiet.low < 6.0 < quiet.high
    assert blocks.low < 6.0 < blocks.high


def test_a_slower_model_is_slower_by_as_much() -> None:
    ratio = estimated(three(3_300_000)).value / estimated(three(slower=(1.0, 2.0))).value
    assert ratio == pytest.approx(1.1, rel=0.01)


@pytest.mark.parametrize(("threads", "cpus"), [(1, 1.0), (1, 1.6), (2, 1.9), (2, 1.0)])
def test_ratios_are_of_lows(threads: int, cpus: float) -> None:
    yardstick = make_yardstick("parallel" if threads > 1 else "serial", threads=threads)
    assert estimated(three(yardstick=yardstick, cpus=cpus)).estimator == LOWS


def test_a_ratio_is_not_moved_by_the_blocks_that_were_disturbed() -> None:
    """Nine tenths of the model's blocks met other work, and none of the yardstick's."""
    plain = make_turns(spread=0.0)
    disturbed = replace(
        plain,
        model_low_ns=tuple(
            low * (1 if index % 10 == 0 else 2) for index, low in enumerate(plain.model_low_ns)
        ),
    )
    assert estimated([disturbed] * 3).value == pytest.approx(6.0, rel=1e-5)


def test_what_an_older_version_made_of_the_blocks_does_not_compare() -> None:
    ratio = estimated(three())
    difference = mismatch(replace(ratio, estimator="floors"), ratio)
    assert difference == Mismatch(field="estimator", before="floors", after=LOWS)


def test_workers_that_differ_widen_the_interval() -> None:
    far = [make_turns(ns, spread=0.0) for ns in (3_000_000, 3_100_000, 3_200_000)]
    estimate = estimated(far)
    assert estimate.ratios == pytest.approx((6.0, 6.2, 6.4))
    assert estimate.value == pytest.approx(6.2)
    # Student's t of three logarithms: 4.303 * 0.0323 / sqrt(3) = 8.0 %.
    assert estimate.low == pytest.approx(6.2 / 1.0835, rel=0.002)
    assert estimate.high == pytest.approx(6.2 * 1.0835, rel=0.002)


def test_one_worker_has_the_width_that_processes_are_often_apart() -> None:
    estimate = estimated([make_turns(spread=0.0)])
    assert (estimate.low, estimate.high) == pytest.approx((5.7, 6.3))


def without(turns: YardstickTurns | None) -> CaseResult:
    result = make_result(workers=3, turns=three())
    *first, last = result.measurements
    return replace(result, measurements=(*first, replace(last, yardstick=turns)))


@pytest.mark.parametrize("absence", sorted(ABSENCES))
def test_one_worker_without_a_yardstick_leaves_the_case_without(absence: str) -> None:
    estimate = relative_latency(without(YardstickTurns(absence=absence)))
    assert isinstance(estimate, NoRelativeLatency)
    assert estimate.cause == "absence"


@pytest.mark.parametrize(
    ("turns", "cause"),
    [
        (None, "absence"),
        (make_turns(yardstick=make_yardstick(version="0.3.29")), "yardsticks"),
        (make_turns(rounds=11), "rounds"),
    ],
    ids=["older document", "another yardstick", "too few rounds"],
)
def test_missing_evidence_is_no_estimate(turns: YardstickTurns | None, cause: str) -> None:
    result = without(turns)
    estimate = relative_latency(result)
    assert isinstance(estimate, NoRelativeLatency)
    assert estimate.cause == cause
    summary = summarise(result)
    for name in ("latency_relative", "latency_undisturbed"):
        assert name not in summary.quantities
        assert summary.missing[name] == estimate.reason


def beside(handover_ns: Sequence[int | None], best_ns: int | None = 350) -> list[YardstickTurns]:
    """Three workers on two CPUs, whose model takes twice as long in the first half of the rounds.

    A floor would hide rounds that are slow for another reason, but none that are fast.
    """
    turns = three(yardstick=TWO, cpus=1.9, handover_ns=handover_ns, best_handover_ns=best_ns)
    return [
        replace(
            worker,
            model_low_ns=tuple(
                took * (2 if 2 * index < worker.rounds else 1)
                for index, took in enumerate(worker.model_low_ns)
            ),
        )
        for worker in turns
    ]


def test_rounds_while_the_cpus_were_far_apart_are_left_out() -> None:
    near = estimated(beside([350, 900]))
    assert near.value == pytest.approx(12.0, rel=0.01)
    assert near.handover_s == pytest.approx(350e-9)
    # A little farther is not far, and what nobody knows is not either.
    for handover_ns in ([350, 500], [350, None], []):
        assert estimated(beside(handover_ns)).value == pytest.approx(6.0, rel=0.01)


def test_what_is_near_is_told_by_the_nearest_that_is_known() -> None:
    assert estimated(beside([350, 900], best_ns=None)).value == pytest.approx(12.0, rel=0.01)
    unknown = relative_latency(make_result(turns=beside([900], best_ns=None), workers=3))
    assert isinstance(unknown, RelativeLatency)
    known = relative_latency(make_result(turns=beside([900]), workers=3))
    assert isinstance(known, NoRelativeLatency)
    assert known.cause == "FAR-CPUS"


def in_state(state: int, **facts: Any) -> RelativeLatency:
    return estimated([make_turns_in_state(state, **facts)] * 3)


@pytest.mark.parametrize("passes", [0.0, 0.3, 1.0, 2.5])
def test_runs_in_two_states_of_a_machine_show_how_many_passes_a_model_takes(passes: float) -> None:
    runs = [in_state(state, passes=passes) for state in (0, 0, 1, 1, 0, 1)]
    weight = memory_weight(runs)
    assert weight == passes
    assert [weighed(run, weight).value for run in runs] == pytest.approx([6.0] * 6, rel=1e-4)


@pytest.mark.parametrize("yardstick", [None, TWO])
def test_a_ratio_is_to_as_many_passes_as_it_says(yardstick: Yardstick | None) -> None:
    run = in_state(1, passes=2.0, yardstick=yardstick)
    assert run.weight == (USUAL_WEIGHTS[1] if yardstick is None else USUAL_WEIGHTS[0])
    exact = weighed(run, 2.0)
    assert (exact.value, exact.weight) == (pytest.approx(6.0, rel=1e-4), 2.0)
    assert exact.low / exact.value == pytest.approx(run.low / run.value)
    # The milliseconds stay the same.
    assert run.best_s is not None
    assert exact.best_s is not None
    assert exact.best_s * exact.value == pytest.approx(run.best_s * run.value)


def test_a_step_in_the_code_is_not_taken_for_a_state_of_the_machine() -> None:
    states = (0, 1, 0, 1, 1, 0, 1, 0)
    runs = [
        in_state(state, passes=2.5, slower=1.1 if at >= 4 else 1.0)
        for at, state in enumerate(states)
    ]
    weight = memory_weight(runs)
    values = [weighed(run, weight).value for run in runs]
    assert values == pytest.approx([6.0] * 4 + [6.6] * 4, rel=0.01)


def test_runs_in_states_with_another_memory_do_not_compare() -> None:
    fast, slow = (in_state(state, passes=1.0) for state in (0, 1))
    assert (fast.memory_s, slow.memory_s) == pytest.approx((260e-6, 350e-6))
    difference = mismatch(fast, slow)
    assert difference == Mismatch(field="memory", before="260 µs", after="350 µs")
    assert mismatch(fast, replace(slow, memory_s=295e-6)) is None
    assert mismatch(fast, replace(slow, memory_s=None)) is None


def test_a_document_whose_product_takes_no_time_is_refused() -> None:
    """Nothing has a ratio to it."""
    turns = make_turns_in_state(0, passes=1.0)
    assert decode_run(
        encode_run(make_run([make_result(turns=[turns] * 3, workers=3)])), "run.json"
    ).cases
    still = replace(turns, memory_low_ns=turns.yardstick_low_ns)
    with pytest.raises(DocumentError, match="memory_low_ns"):
        decode_run(encode_run(make_run([make_result(turns=[still] * 3, workers=3)])), "run.json")


def test_few_runs_and_runs_in_one_state_say_nothing_of_passes() -> None:
    two_states = [in_state(state, passes=2.5) for state in (0, 1) * (FEWEST_RUNS // 2)]
    assert memory_weight(two_states[1:]) == two_states[1].weight
    assert memory_weight([two_states[0]] * FEWEST_RUNS) == two_states[0].weight
    older = replace(two_states[0], weight=None, by_weight=())
    assert memory_weight([older, *two_states]) is None
    assert weighed(older, None) == weighed(older, 2.0) == older


def test_runs_that_were_not_equally_near_do_not_compare() -> None:
    near, far = (estimated(beside([way, way], best_ns=None)) for way in (350, 900))
    difference = mismatch(near, far)
    assert difference == Mismatch(field="handover", before="350 ns", after="900 ns")
    assert mismatch(near, replace(near, handover_s=500e-9)) is None
    assert mismatch(near, replace(near, handover_s=None)) is None


@pytest.mark.parametrize("name", STARVING_FLAGS)
def test_without_the_cpus_that_it_would_use_no_ratio_holds(name: str) -> None:
    flagged = make_result(turns=three(), flags=[Flag(name=name)])
    estimate = relative_latency(flagged)
    assert isinstance(estimate, NoRelativeLatency)
    assert estimate.cause == name


def test_milliseconds_are_those_of_quiet_minutes() -> None:
    result = make_result(turns=three(slower=(1.0, 2.0)), median_ns=4_500_000)
    quantities = summarise(result).quantities
    assert quantities["latency_relative"].value == pytest.approx(6.0, rel=0.01)
    # 490 µs a unit in quiet minutes.
    assert quantities["latency_undisturbed"].value == pytest.approx(2.94e-3, rel=0.01)
    assert quantities["latency_undisturbed"].unit == "s"
    # The median stays what was seen.
    assert quantities["latency_p50"].value == pytest.approx(4.5e-3, rel=0.02)


def test_without_a_quiet_minute_there_are_no_milliseconds() -> None:
    summary = summarise(make_result(turns=three(best_ns=None)))
    assert "latency_relative" in summary.quantities
    assert summary.missing["latency_undisturbed"]


@pytest.mark.parametrize(
    ("after", "field"),
    [
        (three(yardstick=make_yardstick(version="0.3.29")), "yardstick"),
        (three(yardstick=make_yardstick(kernels="Haswell")), "yardstick"),
        (three(yardstick=make_yardstick("memory")), "yardstick"),
        (three(yardstick=make_yardstick("parallel", threads=2)), "yardstick"),
        (three(cpus=0.8), "model_cpus"),
    ],
    ids=["version", "kernels", "other work", "threads", "fewer CPUs"],
)
def test_what_does_not_compare_names_its_field(after: Sequence[YardstickTurns], field: str) -> None:
    difference = mismatch(estimated(three()), estimated(after))
    assert isinstance(difference, Mismatch)
    assert difference.field == field
    assert difference.before != difference.after


def test_unknown_use_of_cpus_compares_with_unknown_alone() -> None:
    known = estimated(three(yardstick=TWO, cpus=1.9))
    unknown = replace(known, yardstick_cpus=None)
    assert mismatch(unknown, unknown) is None
    difference = mismatch(known, unknown)
    assert difference == Mismatch(field="yardstick_cpus", before="1.90", after="unknown")
