"""How a budget is divided, on a clock that goes on only when somebody works."""

# ruff: noqa: ARG005  (a fake takes what the seam hands it)
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.outcome import PHASES, BudgetShare, CaseResult, Failure
from pytest_ortbench.execution import pace, standard, turns
from pytest_ortbench.execution.budget import (
    CONTENDER,
    GATE,
    HELD,
    LEAST_TIMED_S,
    LEAST_WORKERS,
    MOST_WORKERS,
    OTHER,
    Budget,
    BudgetPart,
    Want,
    divide,
)
from pytest_ortbench.execution.turns import carried_out_in_turn, measured_in_turn
from pytest_ortbench.planning.estimate import Costs
from tests.results_factory import make_case

from .clocked import TOO_LATE, ClockedLauncher

#: What stands for canary, document and figures.
CLOSING_S = 5.0


def cases_of(count: int, *, model: str = "mobilenet_v2") -> list[Case]:
    return [
        make_case(model=model, knobs={"threads": str(number)}) for number in range(1, count + 1)
    ]


class Simulated:
    """A run of some cases within a budget."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        folder: Path,
        *,
        total_s: float,
        each_s: float = 0.004,
        start_s: float = 0.8,
    ) -> None:
        self.launcher = ClockedLauncher(monkeypatch, each_s=each_s, start_s=start_s)
        self.folder = folder
        self.budget = Budget(
            total_s=total_s,
            costs=Costs(start_s={"current": 0.5}),
            closing=lambda: CLOSING_S,
            clock=self.launcher.clock.monotonic,
        )
        self.began = self.launcher.clock.now

    def expect(self, cases: Sequence[Case], ranks: Sequence[int] = ()) -> None:
        ranks = ranks or [OTHER] * len(cases)
        self.budget.expect(
            BudgetPart(key=case.key, case=case, rank=rank)
            for case, rank in zip(cases, ranks, strict=True)
        )

    def measure(self, case: Case, before: Callable[[Case], None] | None = None) -> CaseResult:
        def at_pace(limited: Case, own: pace.BudgetPace) -> CaseResult:
            if before is not None:
                before(limited)
            return standard.measure(limited, self.launcher, self.folder, pace=own)

        return measured_in_turn(self.budget, case, at_pace)

    def set_speed(self, *, each_s: float, start_s: float = 0.8) -> None:
        """Let workers take so long from now on."""
        self.launcher.each_s = each_s
        self.launcher.time_of = lambda case, index: each_s * 1e9
        self.launcher.start_of = lambda index: start_s

    def wait(self, seconds: float) -> None:
        self.launcher.clock.now += seconds

    @property
    def ended_s(self) -> float:
        """When the run is over."""
        return self.launcher.clock.now - self.began + CLOSING_S


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Simulated]:
    def made(**options: float) -> Simulated:
        return Simulated(monkeypatch, tmp_path, **options)

    return made


# -- the division itself ---------------------------------------------------------------------------

WANT = Want(least=10.0, usual=20.0, most=100.0)


def test_all_get_their_least_before_anybody_gets_more():
    assert divide([WANT] * 3, 30.0) == [10.0, 10.0, 10.0]


def test_what_is_left_goes_to_contenders_first_then_to_what_is_held_then_to_others():
    wants = [replace(WANT, rank=rank) for rank in (OTHER, HELD, CONTENDER)]
    assert divide(wants, 35.0) == [10.0, 10.0, 15.0]
    assert divide(wants, 45.0) == [10.0, 15.0, 20.0]
    assert divide(wants, 55.0) == [15.0, 20.0, 20.0]


def test_beyond_what_is_usual_all_get_alike():
    wants = [replace(WANT, rank=rank) for rank in (OTHER, HELD, CONTENDER)]
    assert divide(wants, 120.0) == [40.0, 40.0, 40.0]


def test_nobody_gets_more_than_is_of_use():
    assert divide([WANT, replace(WANT, most=30.0)], 1000.0) == [100.0, 30.0]


def test_what_does_not_fit_is_left_out_from_the_end_of_what_decides():
    wants = [replace(WANT, rank=rank) for rank in (OTHER, HELD, CONTENDER)]
    assert divide(wants, 25.0) == [0.0, 10.0, 10.0]


def test_what_takes_more_than_is_left_is_tried_if_most_of_it_is():
    assert divide([WANT, WANT], 18.0) == [10.0, 8.0]
    assert divide([WANT, WANT], 15.0) == [10.0, 0.0]


def test_further_passes_come_after_the_numbers_of_all_cases():
    energy = Want(least=15.0, usual=15.0, most=15.0, rank=CONTENDER, is_extra=True)
    assert divide([energy, WANT], 22.0) == [0.0, 22.0]
    assert divide([energy, WANT], 30.0) == [15.0, 15.0]


# -- whole runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total_s", "each_s", "start_s"),
    [
        *((total_s, 0.001, 0.5) for total_s in (120.0, 300.0, 600.0)),
        *((total_s, 0.004, 0.8) for total_s in (120.0, 300.0, 600.0)),
        *((total_s, 0.05, 1.2) for total_s in (120.0, 300.0, 600.0)),
        *((total_s, 0.25, 1.0) for total_s in (300.0, 600.0)),
    ],
)
def test_a_run_of_twelve_cases_ends_within_a_tenth_of_its_budget(
    simulated: Callable[..., Simulated], total_s: float, each_s: float, start_s: float
):
    run = simulated(total_s=total_s, each_s=each_s, start_s=start_s)
    cases = cases_of(12)
    run.expect(cases)
    results = [run.measure(case) for case in cases]
    assert {result.status for result in results} == {"measured"}
    assert min(len(result.measurements) for result in results) >= LEAST_WORKERS
    assert run.ended_s == pytest.approx(total_s, rel=0.1)


@pytest.mark.parametrize("slower", [0.5, 3.0])
def test_it_does_so_on_a_machine_that_changes_in_the_middle(
    simulated: Callable[..., Simulated], slower: float
):
    run = simulated(total_s=240.0)
    cases = cases_of(12)
    run.expect(cases)
    for number, case in enumerate(cases):
        if number == 5:
            run.set_speed(each_s=0.004 * slower, start_s=0.8 * slower)
        assert run.measure(case).status == "measured"
    assert run.ended_s == pytest.approx(240.0, rel=0.1)


def test_it_does_so_with_models_of_which_one_is_a_hundred_times_slower(
    simulated: Callable[..., Simulated],
):
    run = simulated(total_s=300.0, each_s=0.004)
    cases = [case for model in "abcdef" for case in cases_of(2, model=model)]
    run.expect(cases)
    for case in cases:
        run.set_speed(each_s=0.4 if case.model.name == "c" else 0.004)
        assert run.measure(case).status == "measured"
    assert run.ended_s == pytest.approx(300.0, rel=0.1)


def test_time_that_others_take_in_between_is_taken_from_what_is_still_to_come(
    simulated: Callable[..., Simulated],
):
    run = simulated(total_s=180.0)
    cases = cases_of(12)
    run.expect(cases)
    for case in cases:
        run.measure(case)
        run.wait(4.0)
    assert run.ended_s == pytest.approx(180.0, rel=0.1)


def test_it_ends_early_when_more_is_of_no_use(simulated: Callable[..., Simulated]):
    run = simulated(total_s=3600.0)
    (case,) = cases_of(1)
    run.expect([case])
    result = run.measure(case)
    assert len(result.measurements) == MOST_WORKERS
    assert run.ended_s < 600.0
    kept = sum(len(own.samples.durations_ns) for own in result.measurements)
    assert 0 < kept <= Sampling().keep


def test_what_does_not_fit_is_left_out_and_says_so(simulated: Callable[..., Simulated]):
    run = simulated(total_s=40.0, start_s=2.0)
    cases = cases_of(12)
    run.expect(cases)
    results = [run.measure(case) for case in cases]
    measured = [result for result in results if result.status == "measured"]
    without = [result for result in results if result.status != "measured"]
    assert 1 <= len(measured) < len(cases)
    assert all(len(result.measurements) >= 2 for result in measured)
    assert {result.status for result in without} == {"timeout"}
    assert all(result.lacks_time for result in without)
    assert all(result.failure and "40 s" in result.failure.message for result in without)
    assert run.ended_s <= 44.0


def test_a_case_without_a_turn_knows_what_it_needs_and_what_is_left(
    simulated: Callable[..., Simulated],
):
    run = simulated(total_s=60.0, start_s=2.0)
    cases = cases_of(12)
    run.expect(cases)
    for case in cases[:-1]:
        run.measure(case)
    turn = run.budget.turn(run.budget.part(cases[-1]))
    assert turn.given_s == 0.0
    assert turn.left_s == max(0.0, run.budget.left_s)
    assert turn.least_s > turn.left_s


def test_where_not_all_fit_those_are_measured_on_which_most_depends(
    simulated: Callable[..., Simulated],
):
    run = simulated(total_s=60.0, start_s=2.0)
    cases = cases_of(12)
    ranks = [OTHER] * 9 + [HELD, CONTENDER, CONTENDER]
    run.expect(cases, ranks)
    by_rank: dict[int, list[str]] = {}
    for case, rank in zip(cases, ranks, strict=True):
        by_rank.setdefault(rank, []).append(run.measure(case).status)
    assert by_rank[CONTENDER] == ["measured", "measured"]
    assert by_rank[HELD] == ["measured"]
    assert "timeout" in by_rank[OTHER]


def test_contenders_have_more_workers_or_longer_ones_than_others(
    simulated: Callable[..., Simulated],
):
    run = simulated(total_s=80.0)
    cases = cases_of(12)
    ranks = [OTHER, CONTENDER] * 6
    run.expect(cases, ranks)
    timed: dict[int, float] = {OTHER: 0.0, CONTENDER: 0.0}
    for case, rank in zip(cases, ranks, strict=True):
        share = run.measure(case).budget
        assert share is not None
        timed[rank] += share.timed_s
    assert timed[CONTENDER] > 1.1 * timed[OTHER]


def test_a_case_that_hangs_takes_the_time_of_no_other_s_least(
    simulated: Callable[..., Simulated],
):
    run = simulated(total_s=100.0)
    cases = cases_of(6)
    run.expect(cases)
    run.set_speed(each_s=0.004, start_s=1e6)
    first = run.measure(cases[0])
    assert (first.status, first.lacks_time) == ("timeout", True)
    run.set_speed(each_s=0.004)
    assert [run.measure(case).status for case in cases[1:]] == ["measured"] * 5
    assert run.ended_s <= 110.0


def test_a_budget_that_was_spent_before_a_case_began_is_not_blamed_on_its_start(
    simulated: Callable[..., Simulated],
):
    run = simulated(total_s=20.0)
    (case,) = cases_of(1)
    run.expect([case])
    result = run.measure(case, before=lambda limited: run.wait(60.0))
    assert (result.status, result.lacks_time) == ("timeout", True)
    assert result.failure is not None
    assert result.failure.doing == ""
    assert TOO_LATE not in result.failure.message
    assert "20 s" in result.failure.message


def test_a_start_that_takes_the_budget_is_blamed(simulated: Callable[..., Simulated]):
    run = simulated(total_s=20.0, start_s=1e6)
    (case,) = cases_of(1)
    run.expect([case])
    result = run.measure(case)
    assert result.failure is not None
    assert result.failure.doing
    assert TOO_LATE in result.failure.message


def test_a_budget_that_ends_an_inference_is_raised(simulated: Callable[..., Simulated]):
    late = Failure(kind="timeout", phase="first", message="x", tells_phase=True)
    result = CaseResult(
        case=cases_of(1)[0], status="timeout", failure=late, budget=BudgetShare(given_s=20.0)
    )
    told = turns._told_of_budget(result, 20.0, is_late=False).failure
    assert told is not None
    assert told.hint.endswith("--ort-budget=40s")
    assert PHASES["first"] in told.message


# -- what a result says ----------------------------------------------------------------------------


def test_a_case_that_had_less_than_usual_says_so(simulated: Callable[..., Simulated]):
    run = simulated(total_s=70.0)
    cases = cases_of(12)
    run.expect(cases)
    result = run.measure(replace(cases[0], sampling=Sampling(target=0.0)))
    assert result.budget is not None
    assert result.budget.workers == LEAST_WORKERS
    assert 0 < result.budget.timed_s < Sampling().time_s
    assert "BUDGET" in [flag.name for flag in result.flags]


def test_a_case_that_had_more_does_not(simulated: Callable[..., Simulated]):
    run = simulated(total_s=600.0)
    cases = cases_of(12)
    run.expect(cases)
    result = run.measure(cases[0])
    assert len(result.measurements) > LEAST_WORKERS
    assert "BUDGET" not in [flag.name for flag in result.flags]


def test_the_case_stays_as_it_was_asked_for(simulated: Callable[..., Simulated]):
    """Else no interrupted run could be gone on with."""
    run = simulated(total_s=60.0)
    cases = cases_of(4)
    run.expect(cases)
    assert run.measure(cases[0]).case == cases[0]


def test_samples_that_a_limit_needs_are_taken_whatever_is_left(
    simulated: Callable[..., Simulated],
):
    run = simulated(total_s=120.0, each_s=0.004)
    case = make_case(sampling=Sampling(min_samples=900))
    others = cases_of(20, model="other")
    run.expect([case, *others])
    result = run.measure(case)
    assert sum(own.samples.count for own in result.measurements) >= 900


def test_a_variant_that_a_rival_outruns_by_far_has_the_least(
    simulated: Callable[..., Simulated],
):
    run = simulated(total_s=300.0)
    fast, slow = make_case(), make_case(precision="fp32")
    run.budget.expect(
        BudgetPart(key=case.key, case=case, rank=CONTENDER, rivals=("b1",)) for case in (fast, slow)
    )
    first = run.measure(fast)
    run.set_speed(each_s=0.02)
    second = run.measure(slow)
    assert first.budget is not None
    assert second.budget is not None
    assert (first.budget.outrun, second.budget.outrun) == (False, True)
    assert len(first.measurements) > LEAST_WORKERS == len(second.measurements)
    assert "BUDGET" in [flag.name for flag in second.flags]


# -- passes and gates ------------------------------------------------------------------------------


def test_a_pass_that_does_not_fit_gives_its_reason(simulated: Callable[..., Simulated]):
    run = simulated(total_s=60.0)
    case = make_case(sampling=Sampling(soak_s=300.0))
    run.expect([case])
    run.budget.expect([BudgetPart(key=case.key, name="soak", case=case)])
    result = run.measure(case)

    def never(result: CaseResult) -> CaseResult:
        raise AssertionError("it was carried out")

    carried = carried_out_in_turn(run.budget, "soak", result, never)
    assert carried.status == "measured"
    assert carried.soak is not None
    assert carried.soak.reason
    assert not carried.soak.interrupted


def test_a_pass_is_kept_time_for(simulated: Callable[..., Simulated]):
    run = simulated(total_s=120.0)
    case = make_case(sampling=Sampling(soak_s=60.0))
    run.expect([case])
    run.budget.expect([BudgetPart(key=case.key, name="soak", case=case)])
    result = run.measure(case)

    def soaked(result: CaseResult) -> CaseResult:
        run.wait(62.0)
        return result

    carried_out_in_turn(run.budget, "soak", result, soaked)
    assert run.ended_s == pytest.approx(120.0, rel=0.1)


def test_launches_are_kept_time_for_and_their_cost_is_learned(
    simulated: Callable[..., Simulated],
):
    run = simulated(total_s=120.0)
    case = make_case()
    run.expect([case], [HELD])
    gate = BudgetPart(key=case.key, name=GATE, case=case, rank=HELD, launches_s=24.0)
    other = replace(gate, key=("another", ""))
    run.budget.expect([gate, other])
    run.measure(case)
    turn = run.budget.turn(gate)
    assert turn.given_s >= 24.0
    assert turn.at_most <= run.began + 120.0 - CLOSING_S
    run.wait(32.0)
    run.budget.launched(gate, 32.0, 8)
    assert run.budget.launch_s(other) == pytest.approx(4.0)


def test_a_gate_of_which_no_look_fits_gets_no_time_of_others(
    simulated: Callable[..., Simulated],
):
    run = simulated(total_s=40.0)
    case, later = make_case(), make_case(model="later")
    gate = BudgetPart(key=case.key, name=GATE, case=case, rank=OTHER, launches_s=60.0)
    run.budget.expect([gate])
    run.expect([later], [HELD])
    turn = run.budget.turn(gate)
    assert turn.given_s == 0
    assert turn.at_most < run.began + 40.0 - CLOSING_S


def test_cases_that_tests_make_while_they_run_are_kept_time_for(
    simulated: Callable[..., Simulated],
):
    run = simulated(total_s=120.0)
    (case,) = cases_of(1)
    run.expect([case])
    alone = run.budget.plan()[case.key, "standard"]
    run.budget.expect(BudgetPart(key=(f"test_{number}", "")) for number in range(5))
    assert run.budget.plan()[case.key, "standard"] < alone / 2
    run.budget.forget(("test_0", ""))
    assert len(run.budget.parts) == 5


def test_the_shape_that_is_told_beforehand_is_what_comes(simulated: Callable[..., Simulated]):
    run = simulated(total_s=300.0)
    cases = cases_of(12)
    run.expect(cases)
    run.measure(cases[0])
    part = run.budget.part(cases[1])
    workers, timed_s = run.budget.shape(part, run.budget.plan()[part.place])
    result = run.measure(cases[1])
    assert LEAST_TIMED_S <= timed_s <= Sampling().time_s
    assert len(result.measurements) == pytest.approx(workers, abs=2)
