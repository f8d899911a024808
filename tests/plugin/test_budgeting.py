"""What a budget of a pytest run is divided over, and what is told of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.core.outcome import BudgetShare
from pytest_ortbench.execution.budget import (
    CONTENDER,
    GATE,
    HELD,
    LEAST_WORKERS,
    OTHER,
    STANDARD,
    BudgetPart,
)
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.plugin import budgeting
from pytest_ortbench.plugin.budgeting import (
    admit,
    budget_of,
    in_order,
    plan_lines,
    ranks_of,
    spent_line,
)
from tests.refused import refused
from tests.results_factory import make_case, make_failure, make_result, make_run

#: Variants of one model, and a model that nothing is compared with.
RIVALS = [make_case(precision=precision) for precision in ("fp32", "int8-dynamic")]
ALONE = make_case(model="alone")
CASES = [ALONE, *RIVALS]


class Bench(SimpleNamespace):
    """What a budget is made of."""

    @classmethod
    def of(cls, cases: list[Case], *, budget_s: float | None = 120.0, **options: Any) -> Any:
        known = SimpleNamespace(
            budget_s=budget_s,
            no_results=True,
            html=None,
            plots=None,
            place_of=lambda field: f"--ort-{field.removesuffix('_s')}",
        )
        bench = cls(
            options=known,
            config=SimpleNamespace(option=SimpleNamespace(collectonly=False)),
            planned={case.key: Planned(case=case) for case in cases},
            resumable=None,
            passes={},
            making=(),
            session=SimpleNamespace(launcher=SimpleNamespace(start_s={})),
        )
        vars(bench).update(options)
        return bench


def names_of(budget: budgeting.Budget) -> list[tuple[str, str, int]]:
    return [(part.key[0], part.name, part.rank) for part in budget.parts]


def test_variants_of_one_model_are_contenders_and_a_limit_makes_a_case_held():
    ranks = ranks_of(CASES, {ALONE.key, RIVALS[0].key})
    assert [ranks[case.key][0] for case in CASES] == [HELD, CONTENDER, CONTENDER]
    assert ranks[RIVALS[0].key][1] == ranks[RIVALS[1].key][1] != ()
    assert ranks_of(CASES, ())[ALONE.key] == (OTHER, ())


@pytest.mark.parametrize(
    "other", [{"batch": 2}, {"knobs": {"prompt": "16"}}, {"dims": {"seq": 4}}, {"io": "device"}]
)
def test_other_work_is_no_rival(other: dict[str, Any]):
    cases = [make_case(), make_case(**other)]
    assert {rank for rank, _ in ranks_of(cases, ()).values()} == {OTHER}


def test_other_ways_of_the_same_work_are_rivals():
    cases = [make_case(), make_case(knobs={"threads": "4"}), make_case(provider="openvino")]
    assert {rank for rank, _ in ranks_of(cases, ()).values()} == {CONTENDER}


def test_without_the_option_there_is_no_budget():
    assert budget_of(Bench.of(CASES, budget_s=None), (), ()) is None


def test_standard_passes_gates_further_passes_and_tests_that_make_models_have_parts():
    bench = Bench.of(
        CASES, budget_s=3600.0, passes={ALONE.key: {"profile"}}, making=("test_x.py::test_made",)
    )
    budget = budget_of(bench, {ALONE.key}, {ALONE.key})
    assert budget is not None
    assert names_of(budget) == [
        (ALONE.case_id, STANDARD, HELD),
        (RIVALS[0].case_id, STANDARD, CONTENDER),
        (RIVALS[1].case_id, STANDARD, CONTENDER),
        (ALONE.case_id, GATE, HELD),
        ("test_x.py::test_made", STANDARD, OTHER),
        (ALONE.case_id, "profile", HELD),
    ]


def test_what_is_refused_or_taken_over_needs_no_time():
    bench = Bench.of(CASES, resumable=SimpleNamespace(results={ALONE.key: make_result()}))
    bench.planned[RIVALS[0].key] = Planned(case=RIVALS[0], refusal=make_failure())
    budget = budget_of(bench, (), ())
    assert budget is not None
    assert [part.key for part in budget.parts] == [RIVALS[1].key]


def test_a_soak_that_is_longer_than_the_budget_is_refused_with_what_it_takes():
    case = replace(ALONE, sampling=Sampling(soak_s=600.0))
    bench = Bench.of([case], passes={case.key: {"soak"}})
    with refused(UsageError, "soak 10 min", "2 min", place="--ort-budget"):
        budget_of(bench, (), ())


def test_cases_of_a_model_that_a_test_made_take_the_place_that_was_kept_for_them():
    bench = Bench.of([ALONE], making=("test_made",))
    budget = budget_of(bench, (), ())
    assert budget is not None
    made = make_case(model="made")
    admit(budget, "test_made", [made], held={made.key}, gated={made.key})
    assert names_of(budget)[1:] == [
        (made.case_id, STANDARD, HELD),
        (made.case_id, GATE, HELD),
    ]
    admit(budget, "test_made", [made], held=(), gated=())
    assert len(budget.parts) == 3


def test_of_each_test_function_the_cases_come_first_on_which_most_depends():
    def item(function: str, case: Case) -> Any:
        callspec = SimpleNamespace(params={"ortbench": Planned(case=case)})
        return SimpleNamespace(parent="m", name="", originalname=function, callspec=callspec)

    budget = budget_of(Bench.of(CASES), (), ())
    other = SimpleNamespace(parent="m", name="test_other")
    items: list[Any] = [
        *(item("test_a", case) for case in CASES),
        other,
        *(item("test_b", case) for case in CASES),
    ]
    order = [
        CASES.index(entry.callspec.params["ortbench"].case) for entry in items if entry != other
    ]
    ordered = in_order(budget, items)
    assert order == [0, 1, 2, 0, 1, 2]
    assert ordered == [items[1], items[2], items[0], other, items[5], items[6], items[4]]
    assert in_order(None, items) == items


# -- what is told --------------------------------------------------------------------------------


def test_the_plan_is_told_by_rank_with_gates_and_passes():
    bench = Bench.of(CASES, budget_s=600.0, passes={ALONE.key: {"profile"}})
    budget = budget_of(bench, {ALONE.key}, {ALONE.key})
    assert budget is not None
    first, *lines = plan_lines(budget)
    assert first.startswith("budget: 10 min ")
    assert [line.split(":")[1].strip().split(" ")[:2] for line in lines] == [
        ["2", "contenders"],
        ["1", "case"],
        ["1", "gate,"],
        ["profile", "of"],
    ]


def test_what_does_not_fit_is_named_in_the_plan():
    cases = [make_case(model=f"m{number}") for number in range(30)]
    budget = budget_of(Bench.of(cases, budget_s=30.0), (), ())
    assert budget is not None
    plan = budget.plan()
    assert 0 < sum(given == 0 for given in plan.values()) < 30
    without = next(part for part in budget.parts if not plan[part.place])
    assert without.key[0] in plan_lines(budget)[-1]


def test_the_end_says_what_was_used_and_what_had_less():
    budget = budget_of(Bench.of(CASES), (), ())
    assert budget is not None
    gate = GateResult(case_id="a", runtime="current", baseline="b", verdict="inconclusive")
    timeout = make_failure("timeout")
    run = replace(
        make_run(
            [
                replace(make_result(case=RIVALS[0]), budget=BudgetShare(given_s=9.0, workers=3)),
                replace(make_result(case=RIVALS[1]), budget=BudgetShare(given_s=30.0, workers=5)),
                replace(
                    make_result(case=ALONE, status="timeout", failure=timeout),
                    budget=BudgetShare(given_s=0.0),
                ),
            ]
        ),
        gate=(replace(gate, cause="budget"), gate),
    )
    told = spent_line(budget, run).removeprefix("budget: ").split(", ")
    assert [part.split(" ")[0] for part in told] == ["0", "3", "1", "1"]


def test_a_part_that_nobody_expected_is_tried_with_what_is_left():
    budget = budget_of(Bench.of([ALONE]), (), ())
    assert budget is not None
    part = budget.part(RIVALS[0])
    assert part == BudgetPart(key=RIVALS[0].key, case=RIVALS[0])
    assert budget.turn(part).given_s > 0


def test_a_case_whose_sides_are_identical_has_the_usual_workers_and_no_more():
    budgets = [
        budget_of(Bench.of([ALONE], budget_s=600.0), {ALONE.key}, (), settled)
        for settled in ({ALONE.key}, ())
    ]
    shapes = []
    for budget in budgets:
        assert budget is not None
        (part,) = budget.parts
        shapes.append(budget.shape(part, 500.0)[0])
        assert budget.turn(part).most_workers == part.most_workers
    assert shapes[0] == LEAST_WORKERS < shapes[1]
