"""What a budget of a pytest run is divided over: its cases, in the order of what decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from pytest_ortbench.analysis.ranked import workload_of
from pytest_ortbench.core.case import Case, Key
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.units import clock_words, counted
from pytest_ortbench.execution.budget import (
    CONTENDER,
    GATE,
    HELD,
    LEAST_WORKERS,
    MOST_WORKERS,
    OTHER,
    STANDARD,
    Budget,
    BudgetPart,
)
from pytest_ortbench.gate.measuring.until import Until
from pytest_ortbench.passes.registry import pass_named
from pytest_ortbench.plugin.expected_time import (
    costs_of,
    end_takes_s,
    launches_take_s,
    to_measure,
)
from pytest_ortbench.plugin.options import ROWS
from pytest_ortbench.plugin.own_tests import planned_of

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.core.gate import GateResult
    from pytest_ortbench.core.run import Run
    from pytest_ortbench.gate.measuring.pair import Pair
    from pytest_ortbench.plugin.bench import Bench

#: How much depends on a case, and what it shares with those that it is compared with.
Rank: TypeAlias = tuple[int, tuple[object, ...]]

#: What the ranks are called where there is one case, and where there are several.
_RANKS = {
    CONTENDER: ("contender", "contenders"),
    HELD: ("case with limits or a gate", "cases with limits or a gate"),
    OTHER: ("other case", "other cases"),
}


def budget_of(
    bench: Bench,
    held: Collection[Key],
    gated: Collection[Key],
    settled: Collection[Key] = frozenset(),
) -> Budget | None:
    """Return the budget of a run whose cases are known, ``None`` where none was asked for.

    Args:
        bench: The run.
        held: Cases that limits or a gate hold to something.
        gated: Those of them that are measured in turns with another side.
        settled: Those of them by whose own numbers nothing is decided, since both sides are
            identical or a gate alone decides: they have the usual workers and no more.

    Raises:
        UsageError: for passes that alone take longer.
    """
    total_s = bench.options.budget_s
    if total_s is None:
        return None
    budget = Budget(
        total_s=total_s, costs=costs_of(bench), closing=lambda: end_takes_s(bench, total_s)
    )
    budget.expect(_parts(bench, budget, held, gated, settled))
    _refuse_long_passes(budget, place=bench.options.place_of("budget_s"))
    return budget


def _parts(
    bench: Bench,
    budget: Budget,
    held: Collection[Key],
    gated: Collection[Key],
    settled: Collection[Key],
) -> Iterator[BudgetPart]:
    cases = to_measure(bench)
    ranks = ranks_of([entry.case for entry in bench.planned.values()], held)
    yield from _parts_of(cases, budget, ranks, gated, settled)
    for test in bench.making:
        yield BudgetPart(key=(test, ""), rank=OTHER)
    for case in cases:
        for name in sorted(bench.passes.get(case.key, ())):
            yield BudgetPart(key=case.key, name=name, case=case, rank=ranks[case.key][0])


def _parts_of(
    cases: Sequence[Case],
    budget: Budget,
    ranks: Mapping[Key, Rank],
    gated: Collection[Key],
    settled: Collection[Key],
) -> Iterator[BudgetPart]:
    """The standard passes and the gates of cases."""
    for case in cases:
        rank, rivals = ranks[case.key]
        most = LEAST_WORKERS if case.key in settled else MOST_WORKERS
        yield BudgetPart(key=case.key, case=case, rank=rank, rivals=rivals, most_workers=most)
    for case in cases:
        if case.key in gated:
            launches_s = launches_take_s(budget.costs.expected(case))
            yield BudgetPart(key=case.key, name=GATE, case=case, rank=HELD, launches_s=launches_s)


def admit(
    budget: Budget,
    test: str,
    cases: Sequence[Case],
    *,
    held: Collection[Key],
    gated: Collection[Key],
    settled: Collection[Key] = frozenset(),
) -> None:
    """Note the cases of a model that a test made, in place of what was kept for them.

    Args:
        budget: Of the run.
        test: Node id of the test.
        cases: What it measures.
        held: Those of them that limits or a gate hold to something.
        gated: Those of them that are measured in turns with another side.
        settled: As of :func:`budget_of`.
    """
    budget.forget((test, ""))
    budget.expect(_parts_of(cases, budget, ranks_of(cases, held), gated, settled))


def ranks_of(cases: Sequence[Case], held: Collection[Key]) -> dict[Key, Rank]:
    """Return how much depends on each case, and what it shares with those it is compared with.

    Args:
        cases: All cases of a run.
        held: Those that limits or a gate hold to something.
    """
    groups = {case.key: (*workload_of(case), case.batch) for case in cases}
    sizes: dict[tuple[object, ...], int] = {}
    for group in groups.values():
        sizes[group] = sizes.get(group, 0) + 1
    return {
        key: (CONTENDER, group) if sizes[group] > 1 else (HELD if key in held else OTHER, ())
        for key, group in groups.items()
    }


#: An advised budget leaves room for the latency of all cases.
_ROOM = 1.5


def _refuse_long_passes(budget: Budget, *, place: str) -> None:
    """Refuse passes that take longer than the budget whatever the cases get.

    Raises:
        UsageError: with what they take.
    """
    takes: dict[str, list[float]] = {}
    for part, want in zip(budget.parts, budget.wants(), strict=True):
        if want.is_extra:
            takes.setdefault(part.name.partition(":")[0], []).append(want.least)
    total_s = sum(map(sum, takes.values()))
    if total_s > budget.left_s:
        listed = ", ".join(
            f"{name} {clock_words(sum(each))} for {counted(len(each), 'case')}"
            for name, each in takes.items()
        )
        raise UsageError(
            f"the budget is {clock_words(budget.total_s)}, but the requested measurements other "
            f"than latency take about {clock_words(total_s)} ({listed})",
            place=place,
            hint=f"Write e.g. --ort-budget={math.ceil(_ROOM * total_s / 60)}m. To keep the "
            f"budget, {' and '.join(map(_without, takes))}",
        )


def _without(name: str) -> str:
    """Return how a user leaves a pass out."""
    flag = next((row.flag for row in ROWS if row.asks_for == name), f"--ort-{name}")
    return pass_named(name).left_out_by or f"leave out {flag}"


def in_order(budget: Budget | None, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return tests so that of each test function the cases come first on which most depends."""
    if budget is None:
        return list(items)
    ranks = {part.key: part.rank for part in budget.parts if part.name == STANDARD}
    ordered: list[pytest.Item] = []
    for _, group in groupby(items, key=_function_of):
        ordered += sorted(group, key=lambda item: _rank_of(item, ranks))
    return ordered


def _function_of(item: pytest.Item) -> tuple[object, str]:
    return item.parent, getattr(item, "originalname", item.name)


def _rank_of(item: pytest.Item, ranks: dict[Key, int]) -> int:
    planned = planned_of(item)
    return OTHER if planned is None else ranks.get(planned.case.key, OTHER)


def judged_in_turn(budget: Budget, pair: Pair, judge: Callable[..., GateResult]) -> GateResult:
    """Return the verdict on a pair, whose launches take no longer than a budget gives them.

    Args:
        budget: Of the run.
        pair: The two sides.
        judge: Judges them, until when it is told.
    """
    part = budget.part(pair.contender, GATE)
    turn, began = budget.turn(part), budget.clock()
    until = Until(
        at=turn.at_most, launch_s=budget.launch_s(part), budget=clock_words(budget.total_s)
    )
    judged = judge(until=until)
    launches = len(judged.launches) + len(judged.confirmation)
    budget.launched(part, budget.clock() - began, launches)
    return judged


# -- what is told --------------------------------------------------------------------------


def plan_lines(budget: Budget) -> list[str]:
    """Return how a budget is to be divided, before the first case."""
    plan = budget.plan()
    parts = [(part, plan[part.place]) for part in budget.parts]
    lines = [
        f"budget: {clock_words(budget.total_s)} from the first case to the end; about "
        f"{clock_words(budget.closing())} of it for the files of the run and for a small model "
        "that tells whether the machine changed"
    ]
    lines += _standard_lines(budget, [pair for pair in parts if pair[0].name == STANDARD])
    gates = [given for part, given in parts if part.name == GATE and given]
    if gates:
        lines.append(f"budget: {counted(len(gates), 'gate')}, {_range(gates)} each")
    extras = [
        (part.name, given) for part, given in parts if part.name not in (STANDARD, GATE) and given
    ]
    for name, group in groupby(sorted(extras), key=lambda pair: pair[0]):
        seconds = [given for _, given in group]
        lines.append(f"budget: {name} of {counted(len(seconds), 'case')}, {_range(seconds)} each")
    left_out = [part for part, given in parts if not given]
    if left_out:
        lines.append(f"budget: left out unless others take less time: {_listed(left_out)}")
    return lines


def _standard_lines(budget: Budget, parts: Sequence[tuple[BudgetPart, float]]) -> Iterator[str]:
    by_rank = sorted(parts, key=lambda pair: pair[0].rank)
    for rank, group in groupby(by_rank, key=lambda pair: pair[0].rank):
        fitting = [(part, given) for part, given in group if given]
        if fitting:
            shapes = [budget.shape(part, given) for part, given in fitting]
            workers = _range([shape[0] for shape in shapes], "worker")
            timed = _range([shape[1] for shape in shapes])
            name = _RANKS[rank][len(fitting) > 1]
            yield (
                f"budget: {len(fitting)} {name}: {_range([given for _, given in fitting])} each, "
                f"for {workers} (fresh processes), each timed for {timed} after its start and "
                "warm-up"
            )


def _range(values: Sequence[float], unit: str = "s") -> str:
    """The smallest and the largest of some values: ``9 to 12 s``, ``3 workers``."""
    digits = ".2g" if max(values) < 10 else ".0f"
    ends = dict.fromkeys(f"{end:{digits}}" for end in (min(values), max(values)))
    plural = "s" if unit != "s" and ends.keys() != {"1"} else ""
    return f"{' to '.join(ends)} {unit}{plural}"


def _listed(parts: Sequence[BudgetPart]) -> str:
    """What has no time, by its kind, with the cases as far as they are few."""
    by_name: dict[str, list[str]] = {}
    for part in parts:
        by_name.setdefault(part.name, []).append(part.key[0])
    return "; ".join(
        f"{'' if name == STANDARD else f'{name} of '}{_few(ids)}" for name, ids in by_name.items()
    )


#: So many names are listed.
_LISTED = 4


def _few(ids: Sequence[str]) -> str:
    rest = len(ids) - _LISTED
    return ", ".join(ids[:_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def spent_line(budget: Budget, run: Run) -> str:
    """Return what became of a budget, at the end of a run."""
    shares = [result for result in run.cases if result.budget is not None]
    left_out = sum(result.lacks_time for result in shares)
    less = sum(flag.name == "BUDGET" for result in shares for flag in result.flags)
    workers = [result.budget.workers for result in shares if result.budget and result.measurements]
    told = [f"{clock_words(budget.spent_s)} of {clock_words(budget.total_s)} used"]
    if workers:
        told.append(f"{_range(workers, 'worker')} a case")
    if less:
        told.append(f"{counted(less, 'case')} timed for less than usual (flag BUDGET)")
    if left_out:
        told.append(f"{counted(left_out, 'case')} without a number for lack of time")
    undecided = sum(result.cause == "budget" for result in run.gate)
    if undecided:
        told.append(f"{counted(undecided, 'gate')} inconclusive for lack of time")
    return f"budget: {', '.join(told)}"
