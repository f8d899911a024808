"""The gate on workers whose times are known."""

from __future__ import annotations

import dataclasses
import random
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, InputSpec, Runtime, Sampling
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.core.model import TensorInfo, ValueHint
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.run import Machine
from pytest_ortbench.execution.default_retry import DefaultRetry
from pytest_ortbench.gate.measuring import gate as gate_module
from pytest_ortbench.gate.measuring.gate import Gate
from pytest_ortbench.gate.measuring.pair import Pair, input_difference
from pytest_ortbench.gate.measuring.paired import measure_launch
from pytest_ortbench.gate.measuring.until import Until
from pytest_ortbench.gate.numbers.metrics import MetricSide
from pytest_ortbench.gate.numbers.rules import parse_rules, rules_for
from pytest_ortbench.planning.feeds import resolve_inputs
from tests.execution.fakes import FakeLauncher, FakeWorker
from tests.passes.task.test_numbers import counted
from tests.results_factory import make_accuracy, make_case, make_placement, make_result

SHARED = Machine(host="h", stable={"virtualisation": "KVM", "cpu_quota": "none"})
DEDICATED = Machine(host="h", stable={"virtualisation": "none seen", "cpu_quota": "none"})
OLD, NEW = make_case(model="old"), make_case(model="new")
PAIR = Pair(baseline=OLD, contender=NEW)
RULES = rules_for("new/native/cpu/b1", ())


def times(ratio: float, *, scatter: float = 0.002, seed: int = 0, ms: float = 3.0):
    """Times of ``old`` and, ``ratio`` times as long, everything else; launches scatter."""
    draw = random.Random(seed)

    def time_of(case: Case, index: int) -> float:
        factor = 1.0 if case.model.name == "old" else ratio
        return ms * 1e6 * factor * (1 + draw.gauss(0, scatter))

    return time_of


def gate(launcher: FakeLauncher, *, machine: Machine = SHARED, cases: int = 1) -> Gate:
    """With a seed of its own, so that the fake times come in the same order in each test."""
    return Gate(launcher=launcher, machine=machine, cases=cases, scratch=Path("unused"), seed=0)


def judged(ratio: float, **options) -> GateResult:
    launcher = FakeLauncher(times(ratio, **options))
    return gate(launcher).judge(PAIR, RULES, baseline="model:old.onnx")


# One launch.


def test_a_launch_runs_one_side_at_a_time_with_equal_counts_and_seeded_order():
    # The fake asserts that whoever does not run is suspended.
    launcher = FakeLauncher(times(1.0))
    deadline = time.monotonic() + 60
    launched = measure_launch(PAIR, launcher, seed=7, index=0, deadline=deadline)
    one, other = launcher.opened
    assert one.closed
    assert other.closed
    # 12 ms are four inferences of 3 ms, in 40 rounds.
    assert launched.launch.iterations == 4
    assert len(launched.launch.baseline_min_ns) == 40
    assert one.runs == other.runs == launched.launch.warm_up_runs + 160
    assert launched.launch.warm_up_runs == 25
    again = FakeLauncher(times(1.0))
    same = measure_launch(PAIR, again, seed=7, index=0, deadline=deadline)
    assert [worker.case for worker in again.opened] == [worker.case for worker in launcher.opened]
    assert dataclasses.replace(same.launch, wall_s=0) == dataclasses.replace(
        launched.launch, wall_s=0
    )


def test_rounds_that_take_too_long_end_early_but_not_before_there_are_enough(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("pytest_ortbench.gate.measuring.paired.ROUNDS_S", -1.0)
    deadline = time.monotonic() + 60
    launcher = FakeLauncher(times(1.0))
    launched = measure_launch(PAIR, launcher, seed=7, index=0, deadline=deadline)
    assert len(launched.launch.baseline_min_ns) == 10
    slow = FakeLauncher(times(1.0, ms=2000.0))
    launched = measure_launch(PAIR, slow, seed=7, index=0, deadline=deadline)
    assert len(launched.launch.contender_min_ns) == 5


def test_a_slow_side_makes_up_for_two_seconds_of_warm_up_at_most():
    # The fake warms up with 20 runs and 25, of a second each.
    launched = measure_launch(
        PAIR,
        FakeLauncher(times(1.0, ms=950.0, scatter=0.0)),
        seed=7,
        index=0,
        deadline=time.monotonic() + 60,
    )
    assert launched.launch.warm_up_runs == 22


def test_who_was_opened_first_is_asked_for_its_memory_when_the_other_one_is_gone():
    launcher = FakeLauncher(times(1.0))
    gone: list[list[bool]] = []

    def peak_of(case: Case) -> int:
        gone.append([worker.closed for worker in launcher.opened])
        return 1

    launcher.peak_of = peak_of
    measure_launch(PAIR, launcher, seed=7, index=0, deadline=time.monotonic() + 60)
    assert gone == [[False, False], [False, True]]


def test_several_callers_are_judged_by_what_is_typical_in_blocks_that_keep_them_busy():
    sides = [dataclasses.replace(case, concurrency=4) for case in (OLD, NEW)]
    pair = Pair(baseline=sides[0], contender=sides[1])
    result = gate(FakeLauncher(times(1.1))).judge(pair, RULES, baseline="b")
    assert (result.verdict, result.decided_by) == ("slower", "typical")
    assert {launch.iterations for launch in result.launches} == {16}


@pytest.mark.parametrize(("ratio", "ms"), [(4.0, 3.0), (0.25, 12.0)])
def test_the_slower_side_sets_the_length_of_the_blocks_whichever_it_is(ratio: float, ms: float):
    launched = measure_launch(
        PAIR, FakeLauncher(times(ratio, ms=ms)), seed=7, index=0, deadline=time.monotonic() + 60
    )
    # 12 ms are one inference of 12 ms, not four.
    assert launched.launch.iterations == 1


def test_no_two_gates_go_in_the_same_order():
    seeds = set()
    for _ in range(2):
        fresh = Gate(
            launcher=FakeLauncher(times(1.0)), machine=SHARED, cases=1, scratch=Path("unused")
        )
        result = fresh.judge(PAIR, RULES, baseline="model:old.onnx")
        seeds |= {launch.seed for launch in result.launches}
    assert len(seeds) == 16


# Verdicts.


def test_equal_sides_are_the_same_after_eight_launches():
    result = judged(1.0)
    assert (result.verdict, result.failures, result.warnings) == ("same", (), ())
    assert len(result.launches) == 8
    assert result.contrasts[0].statistic == "floor"
    assert result.contrasts[0].effect == pytest.approx(0, abs=0.005)


def test_a_slower_contender_fails_with_ratio_interval_margin_and_launches():
    result = judged(1.07)
    assert result.verdict == "slower"
    assert (len(result.launches), len(result.confirmation)) == (8, 5)
    assert result.confirmed.verdict == "slower"
    assert result.contrasts[0].effect == pytest.approx(0.07, abs=0.005)
    assert result.contrasts[0].low > 0.06
    (failure,) = result.failures
    assert failure.startswith("slower than model:old.onnx: ")
    for part in ("×1.07", "[1.06", "margin 3.00 %", "8 launches", "confirmed by 5 more"):
        assert part in failure


def test_swapped_sides_are_faster():
    result = judged(1 / 1.07)
    assert (result.verdict, result.failures) == ("faster", ())


def test_the_confirmation_has_another_seed():
    result = judged(1.07)
    seeds = {launch.seed for launch in result.launches}
    assert len(seeds) == 8
    assert seeds.isdisjoint(launch.seed for launch in result.confirmation)


def test_a_regression_that_is_gone_when_measured_again_is_inconclusive():
    calls = []

    def time_of(case: Case, index: int) -> float:
        calls.append(case)
        early = len(calls) <= 16
        return 3e6 * (1.06 if early and case.model.name == "new" else 1.0)

    result = gate(FakeLauncher(time_of)).judge(PAIR, RULES, baseline="b")
    assert result.verdict == "inconclusive"
    assert (result.cause, len(result.confirmation), len(result.warnings)) == ("unconfirmed", 5, 1)
    assert result.failures == ()


def test_noise_beyond_the_margin_is_inconclusive_and_names_the_smallest_effect():
    result = judged(1.02, scatter=0.1)
    assert result.verdict == "inconclusive"
    assert len(result.launches) == 20
    assert len(result.warnings) == 1
    assert result.contrasts[0].detectable > 0.03


class Picky(FakeLauncher):
    """Models that take sequences of some lengths only."""

    shortest = 400

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        if case.inputs[0].shape[1] < self.shortest:
            raise WorkerError(Failure(kind="error", phase="first", message="too short"))
        return super().open(case, worker=worker, deadline=deadline)


@pytest.mark.parametrize(
    ("shortest", "verdict", "length"), [(400, "same", 512), (10**6, "incomparable", 0)]
)
def test_sides_that_refuse_a_default_size_are_compared_at_the_next_one(
    shortest: int, verdict: str, length: int
):
    launcher = Picky(times(1.0))
    launcher.shortest = shortest
    info = TensorInfo(name="x", type="tensor(float)", shape=("N", None))
    sides = []
    for case in (OLD, NEW):
        model = dataclasses.replace(case.model, inputs=(info,))
        fed = resolve_inputs(model, batch=None, dims={})
        sides.append(dataclasses.replace(case, model=model, inputs=fed))
    asked = gate(launcher)
    asked.retry = DefaultRetry(launcher=launcher)
    result = asked.judge(
        Pair(baseline=sides[0], contender=sides[1]), RULES, baseline="model:old.onnx"
    )
    assert result.verdict == verdict
    lengths = {worker.case.inputs[0].shape[1] for worker in launcher.opened}
    assert lengths == ({length} if length else set())


def test_a_margin_below_resolution_is_refused():
    rules = rules_for("x", parse_rules(["latency:0.01%"], place="--ort-gate"))
    result = gate(FakeLauncher(times(1.0, scatter=0.02))).judge(PAIR, rules, baseline="b")
    assert result.verdict == "inconclusive"
    assert result.cause == "margin"


def test_the_typical_contrast_decides_where_the_machine_is_dedicated():
    launcher = FakeLauncher(times(1.03))
    result = gate(launcher, machine=DEDICATED).judge(PAIR, RULES, baseline="b")
    assert (result.verdict, result.decided_by) == ("slower", "typical")
    assert result.contrasts[0].margin == 0.02


class Tailed(FakeLauncher):
    """All but the first inference of a block of ``new`` take a tenth longer."""

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        opened = super().open(case, worker=worker, deadline=deadline)
        if case.model.name != "new":
            return opened
        run = opened.run
        opened.run = lambda count: run(1) + tuple(round(1.1 * value) for value in run(count - 1))
        return opened


def test_a_changed_distribution_escalates_to_inconclusive():
    launcher = Tailed(times(1.0))
    result = gate(launcher).judge(PAIR, RULES, baseline="b")
    assert result.verdict == "inconclusive"
    assert result.cause == "statistics"
    assert result.contrasts[0].verdict == "same"
    assert result.contrasts[1].verdict == "slower"


def test_more_threads_than_cpus_make_it_inconclusive():
    launcher = FakeLauncher(times(1.07), threads=4)
    result = gate(launcher).judge(PAIR, RULES, baseline="b")
    assert (result.verdict, result.failures) == ("inconclusive", ())
    assert [flag.name for flag in result.flags] == ["THREADS>CPUS"]


def test_workers_that_can_not_be_suspended_stop_spinning_and_are_flagged():
    far = Runtime(label="far", shares_files=False)
    pair = Pair(
        baseline=dataclasses.replace(OLD, runtime=far),
        contender=dataclasses.replace(NEW, runtime=far),
    )
    launcher = FakeLauncher(times(1.07))
    result = gate(launcher).judge(pair, RULES, baseline="b")
    assert result.verdict == "inconclusive"
    assert [flag.name for flag in result.flags] == ["SPIN"]
    for worker in launcher.opened:
        assert worker.case.session.entries == {"session.force_spinning_stop": "1"}


# Families.


def test_in_a_suite_a_flagged_case_goes_on_to_the_look_at_which_holm_can_decide():
    launcher = FakeLauncher(times(1.07))
    result = gate(launcher, cases=24).judge(PAIR, RULES, baseline="b")
    assert result.verdict == "slower"
    assert len(result.launches) == 20


def test_a_large_suite_can_fail_on_a_dedicated_machine():
    result = gate(FakeLauncher(times(1.07)), machine=DEDICATED, cases=24).judge(
        PAIR, RULES, baseline="b"
    )
    assert (result.verdict, result.decided_by) == ("slower", "typical")
    assert len(result.launches) == 20


def test_unflagged_cases_of_a_suite_stop_at_the_first_look():
    result = gate(FakeLauncher(times(1.0)), cases=24).judge(PAIR, RULES, baseline="b")
    assert (result.verdict, len(result.launches)) == ("same", 8)


def test_a_third_flagged_case_needs_no_confirmation():
    suite = gate(FakeLauncher(times(1.07)), cases=3)
    results = [
        suite.judge(
            Pair(baseline=OLD, contender=make_case(model=f"new{index}")), RULES, baseline="b"
        )
        for index in range(3)
    ]
    assert [result.verdict for result in results] == ["slower"] * 3
    assert [len(result.confirmation) for result in results] == [5, 5, 0]


@pytest.mark.live
def test_equal_sides_give_no_false_alarm_in_two_hundred_trials():
    # G5: same distribution, 200 trials, false alarms under 1 %. Launches scatter by 8 %, so that
    # the estimate reaches the margin in many of them and only the bounds are in the way.
    draw = random.Random(5)
    verdicts, beyond = [], 0
    for _ in range(200):
        launcher = FakeLauncher(lambda *_: 80e6 * (1 + draw.gauss(0, 0.08)))
        result = gate(launcher).judge(PAIR, RULES, baseline="b")
        verdicts.append(result.verdict)
        beyond += result.contrasts[0].effect >= result.contrasts[0].margin
    assert verdicts.count("slower") <= 1
    assert beyond >= 20


# What can't be measured.


def test_a_contender_that_crashes_is_a_regression():
    launcher = FakeLauncher(times(1.0))
    launcher.fails["new"] = Failure(kind="crash", phase="session", message="it died")
    result = gate(launcher).judge(PAIR, RULES, baseline="b")
    assert result.verdict == "incomparable"
    assert [finding.about for finding in result.findings if finding.fails] == ["status"]
    assert result.cause == "status"
    assert all(worker.closed for worker in launcher.opened)


def test_a_timeout_is_inconclusive_and_never_a_pass():
    launcher = FakeLauncher(times(1.0))
    launcher.fails["new"] = Failure(kind="timeout", phase="measure", message="too slow")
    launcher.fails_from = 5
    result = gate(launcher).judge(PAIR, RULES, baseline="b")
    assert result.verdict == "inconclusive"
    assert result.cause == "time"


def test_a_budget_for_not_one_launch_measured_nothing_and_fails():
    contender = dataclasses.replace(NEW, sampling=Sampling(timeout_s=1e-9))
    launcher = FakeLauncher(times(1.0))
    launcher.fails["new"] = Failure(kind="timeout", phase="start", message="no time")
    result = gate(launcher).judge(Pair(baseline=OLD, contender=contender), RULES, baseline="b")
    assert result.verdict == "incomparable"
    assert [finding.about for finding in result.findings if finding.fails] == ["status"]
    assert (result.cause, result.launches) == ("time", ())


def test_sides_with_other_inputs_are_incomparable():
    other = make_case(model="new", batch=8)
    result = gate(FakeLauncher(times(1.0))).judge(
        Pair(baseline=OLD, contender=other), RULES, baseline="b"
    )
    assert result.verdict == "incomparable"
    assert result.cause == "inputs"
    assert "[1, 3, 224, 224] → " in result.failures[0]


# Other metrics.


def test_memory_that_grew_in_every_worker_fails_though_the_latency_is_the_same():
    launcher = FakeLauncher(times(1.0))
    launcher.peak_of = lambda case: 60_000_000 if case.model.name == "old" else 63_000_000
    result = gate(launcher).judge(PAIR, RULES, baseline="b")
    assert result.verdict == "same"
    (finding,) = [finding for finding in result.findings if finding.fails]
    assert (finding.about, finding.worse_by) == ("peak_rss", pytest.approx(0.05))


def test_placement_and_accuracy_that_got_worse_fail():
    launcher = FakeLauncher(times(1.0))
    launcher.placement_of = lambda case: make_placement(
        "CUDAExecutionProvider", elsewhere={"Cast": 20} if case.model.name == "new" else {}
    )
    launcher.accuracy_of = lambda case: make_accuracy(
        sqnr_db=120.0 if case.model.name == "old" else 9.0
    )
    result = gate(launcher).judge(PAIR, RULES, baseline="b")
    verdicts = {entry.metric: entry.verdict for entry in result.metrics}
    assert verdicts["placement"] == "worse"
    assert verdicts["accuracy"] == "worse"
    assert any("SQNR 9.0 dB" in failure for failure in result.failures)


def test_a_slow_regression_has_time_of_its_own_to_be_confirmed(monkeypatch: pytest.MonkeyPatch):
    """What eight launches leave of the time of a case is not enough for five more."""
    now = 0.0

    def time_of(case: Case, _: int) -> float:
        nonlocal now
        now += 15.0  # two sides a launch, 30 s
        return 40e6 * (1.0 if case.model.name == "old" else 1.07)

    monkeypatch.setattr("time.monotonic", lambda: now)
    result = gate(FakeLauncher(time_of)).judge(PAIR, RULES, baseline="b")
    assert (result.verdict, len(result.launches), len(result.confirmation)) == ("slower", 8, 5)


def test_labels_judge_the_contender_before_the_floor_of_its_precision():
    fp32, int8 = make_case(precision="fp32"), make_case(precision="int8-dynamic")
    launcher = FakeLauncher(times(1.0))
    launcher.accuracy_of = lambda case: make_accuracy(sqnr_db=12.0 if case == int8 else 120.0)
    verdicts = []
    for task in (None, counted(1000, 900, 900), counted(1000, 600, 900)):
        standard = dataclasses.replace(make_result(case=int8), task=task)
        result = gate(launcher).judge(
            Pair(baseline=fp32, contender=int8),
            RULES,
            baseline="b",
            standard=MetricSide.of(standard),
        )
        verdicts.append({one.metric: one.verdict for one in result.metrics}["accuracy"])
    assert verdicts == ["worse", "same", "worse"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"shape": (2, 8)}, "input x: tensor(float) [1, 8] → tensor(float) [2, 8]"),
        ({"type": "tensor(float16)"}, "input x: tensor(float) [1, 8] → tensor(float16) [1, 8]"),
        ({"path": "photos.npz"}, "input x: random → from a file"),
        ({"name": "y"}, "input x: tensor(float) [1, 8] → none"),
        ({"hint": ValueHint(kind="ones")}, ""),
    ],
)
def test_sides_that_are_fed_differently_are_no_pair(change: dict[str, Any], reason: str):
    spec = InputSpec(name="x", type="tensor(float)", shape=(1, 8), hint=ValueHint(kind="normal"))
    one, other = (
        dataclasses.replace(OLD, inputs=(each,))
        for each in (spec, dataclasses.replace(spec, **change))
    )
    assert input_difference(Pair(baseline=one, contender=other)) == reason


def test_a_confirmation_that_can_not_tell_goes_on_until_it_can():
    calls = []

    def time_of(case: Case, index: int) -> float:
        calls.append(case)
        if case.model.name == "old":
            return 80e6
        # The first five launches of the confirmation swing between +20 % and -5 %.
        swings = 16 < len(calls) <= 26
        return 80e6 * (1.06 if not swings else 1.20 if index % 2 else 0.95)

    result = gate(FakeLauncher(time_of)).judge(PAIR, RULES, baseline="b")
    assert len(result.launches) == 8
    assert len(result.confirmation) in (8, 12, 20)
    assert result.confirmed.verdict == result.verdict == "slower"


@pytest.mark.parametrize(("limit", "verdicts"), [("", []), ("cpu_utilisation:10%", ["worse"])])
def test_how_busy_the_cpus_are_is_gated_where_it_was_asked_for(limit: str, verdicts: list[str]):
    launcher = FakeLauncher(times(1.0))
    launcher.busy_of = lambda case: 1.0 if case.model.name == "old" else 2.0
    rules = rules_for(PAIR.contender.case_id, parse_rules([limit], place=""))
    result = gate(launcher).judge(PAIR, rules, baseline="model:old.onnx")
    of_cpus = [one for one in result.metrics if one.metric == "cpu_utilisation"]
    assert [one.verdict for one in of_cpus] == verdicts
    assert [(one.baseline, one.contender) for one in of_cpus] == [(0.5, 1.0)] * len(verdicts)
    assert bool(result.failures) is bool(verdicts)


# The budget of a run.


def within(seconds: float, *, launch_s: float = 2.0) -> Until:
    return Until(at=time.monotonic() + seconds, launch_s=launch_s, budget="2 min")


def test_a_gate_of_which_no_launch_fits_into_the_budget_is_inconclusive():
    launcher = FakeLauncher(times(1.0))
    result = gate(launcher).judge(PAIR, RULES, baseline="b", until=within(1.0))
    assert (result.verdict, result.cause) == ("inconclusive", "budget")
    assert launcher.opened == []
    assert result.failures == ()
    assert result.warnings


def test_absolute_limits_are_held_without_a_launch():
    rules = rules_for("new/native/cpu/b1", parse_rules(["latency_p50 <= 1 ms"], place="--ort-gate"))
    standard = MetricSide.of(make_result(case=NEW))
    result = gate(FakeLauncher(times(1.0))).judge(
        PAIR, rules, baseline="b", standard=standard, until=within(1.0)
    )
    assert (result.verdict, result.cause) == ("inconclusive", "budget")
    assert [finding.about for finding in result.findings if finding.fails] == ["latency_p50"]


@pytest.mark.parametrize("seconds", [3.0, 15.0])
def test_where_no_look_fits_one_launch_says_all_but_the_time(seconds: float):
    """Seven launches would decide nothing: the gate looks after 8, 12 and 20."""
    launcher = FakeLauncher(times(1.5))
    launcher.peak_of = lambda case: 60_000_000 if case.model.name == "old" else 90_000_000
    result = gate(launcher).judge(PAIR, RULES, baseline="b", until=within(seconds))
    assert (result.verdict, result.cause) == ("inconclusive", "budget")
    assert len(result.launches) == 1
    assert [finding.about for finding in result.findings if finding.fails] == ["peak_rss"]


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, "same"), (0.8, "faster")])
def test_a_look_that_fits_and_decides_needs_no_more(ratio: float, verdict: str):
    launcher = FakeLauncher(times(ratio))
    result = gate(launcher).judge(PAIR, RULES, baseline="b", until=within(60.0))
    assert (result.verdict, len(result.launches)) == (verdict, 8)


@pytest.fixture
def long_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each launch take 20 seconds, as far as the gate knows."""
    measured = gate_module.measure_launch

    def as_long_as_said(*args: Any, **options: Any) -> Any:
        launched = measured(*args, **options)
        launch = dataclasses.replace(launched.launch, wall_s=20.0)
        return dataclasses.replace(launched, launch=launch)

    monkeypatch.setattr(gate_module, "measure_launch", as_long_as_said)


@pytest.mark.usefixtures("long_launches")
def test_a_look_that_decides_nothing_ends_it_where_the_next_one_does_not_fit():
    launcher = FakeLauncher(times(1.03, scatter=0.05))
    result = gate(launcher).judge(PAIR, RULES, baseline="b", until=within(60.0))
    assert (result.verdict, result.cause) == ("inconclusive", "budget")
    assert len(result.launches) == 8


@pytest.mark.usefixtures("long_launches")
def test_a_regression_that_there_is_no_time_to_measure_again_is_inconclusive():
    result = gate(FakeLauncher(times(1.2))).judge(PAIR, RULES, baseline="b", until=within(60.0))
    assert (result.verdict, result.cause) == ("inconclusive", "budget")
    assert result.confirmation == ()


def test_a_side_that_the_budget_ends_is_no_regression_of_its_status():
    launcher = FakeLauncher(times(1.0))
    launcher.fails["new"] = Failure(kind="timeout", phase="session", message="too late")
    until = within(0.5, launch_s=0.1)
    result = gate(launcher).judge(PAIR, RULES, baseline="b", until=until)
    assert (result.verdict, result.cause, result.failures) == ("inconclusive", "budget", ())
