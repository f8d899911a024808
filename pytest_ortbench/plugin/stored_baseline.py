"""The stored runs of ``--ort-baseline``, which hold what they have of the cases of this run.

They are found once; each is read when a case asks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Key
from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.gate import GateResult, UnnamedModel
from pytest_ortbench.core.run import LATEST
from pytest_ortbench.execution.canary import measure_canary
from pytest_ortbench.gate.measuring.stored_self_test import spreads_on
from pytest_ortbench.gate.numbers.metrics import MetricSide
from pytest_ortbench.gate.numbers.same_models import models_of, twins
from pytest_ortbench.gate.numbers.sentences import listed
from pytest_ortbench.gate.numbers.stored import canary_ratio, gate_case, vanished
from pytest_ortbench.gate.numbers.verdict import machine_class
from pytest_ortbench.planning.asked import Asked
from pytest_ortbench.planning.baseline_sizes import differing_defaults, fed_as_stored
from pytest_ortbench.store.baseline import find_baseline
from pytest_ortbench.store.documents import load

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case
    from pytest_ortbench.core.outcome import CaseResult
    from pytest_ortbench.core.run import Canary, Run
    from pytest_ortbench.gate.numbers.rules import CaseRules
    from pytest_ortbench.gate.numbers.same_models import Twin, Twins
    from pytest_ortbench.gate.numbers.stored_relative import RunSpread
    from pytest_ortbench.planning.matrix import Plan, Planned
    from pytest_ortbench.planning.request import PlanRequest
    from pytest_ortbench.plugin.bench import Bench


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What is stored of a case: in which run, and how its model is related to that of now."""

    run: Run
    result: CaseResult
    twin: Twin


class StoredBaseline:
    """Judges cases against stored runs, if there are any yet.

    Args:
        bench: The run.

    Attributes:
        notes: What a reader must know of which runs they are.
        unnamed: Models of the newest run that nothing in this run names.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._runs: dict[int, tuple[Run, dict[Key, CaseResult]]] = {}
        self._cases: dict[Key, Stored | None] = {}
        self._planned: Mapping[Key, Case] = {}
        self.notes: list[str] = []
        self.unnamed: tuple[UnnamedModel, ...] = ()

    @cached_property
    def _paths(self) -> tuple[Path, ...]:
        """Documents of the runs, the newest first; none where nothing was recorded yet.

        Raises:
            OrtbenchError: if a certain run is meant and is not there, or none can be a baseline.
        """
        options = self._bench.options
        place = options.place_of("baseline")
        found = find_baseline(
            options.baseline, options.results, base=self._bench.collection.root, place=place
        )
        if found.foreign:
            self.notes.append(f"gate: {found.foreign}")
        if found.passed_over:
            self.notes.append(
                "gate: runs that failed a gate are not used as the baseline: "
                f"{listed(found.passed_over)}. If the results of one are intended, name it, e.g. "
                f"--ort-baseline={found.passed_over[0]}"
            )
        if not found.paths:
            self.notes.append(
                f"gate: there is no baseline yet at {options.baseline!r}; {self._next}"
            )
        return found.paths

    @property
    def _next(self) -> str:
        """What makes this run the baseline of the next one."""
        options = self._bench.options
        if options.no_results:
            return "this run passes, and is not recorded either (--ort-no-results)"
        if options.baseline == LATEST:
            return "this run is recorded and passes; the next run is compared with it"
        return (
            "this run passes; to compare the next run with it, copy its folder from "
            f"{options.results} there"
        )

    def _run(self, number: int) -> tuple[Run, dict[Key, CaseResult]]:
        """One of the runs, by its place among them, and its cases; read when first needed.

        An older one that can't be read is left out with a note: it has no case then.

        Raises:
            OrtbenchError: if the newest can't be read.
        """
        if number not in self._runs:
            try:
                run = load(self._paths[number])
            except DocumentError as error:
                if number == 0:
                    raise
                self.notes.append(f"gate: left out {error.place}: {error.message}")
                run = replace(self._run(0)[0], cases=())
            self._runs[number] = run, {result.case.key: result for result in run.cases}
        return self._runs[number]

    @property
    def is_there(self) -> bool:
        """Whether anything was recorded yet."""
        return bool(self._paths)

    def note_new(self, carried: Collection[Key]) -> None:
        """Note which of the cases that will be judged are new, or in an older run only."""
        if not self._paths:
            return
        newest, _ = self._run(0)
        by_run: dict[str, list[str]] = {}
        new: list[str] = []
        for key in carried:
            found = self._found(key)
            if found is None:
                new.append(key[0])
            elif found.run is not newest:
                by_run.setdefault(found.run.run_id, []).append(key[0])
        for run_id, ids in by_run.items():
            self.notes.append(
                f"gate: compared with {run_id}, the newest run that has it: {listed(ids)}"
            )
        if new:
            self.notes.append(f"gate: new, not in {newest.run_id}: {listed(new)}")
        same = self._twins()
        names = {self._planned[key].model.name for key in carried if self._found(key) is None}
        for name, reason in same.doubtful.items():
            if name in names:
                self.notes.append(f"gate: {name} was not found in {newest.run_id}: {reason}")
        for name, earlier in same.moved_from.items():
            if name in names:
                self.notes.append(f"gate: {name} is the same file as {earlier}, in another folder")

    def _twins(self) -> Twins:
        """The models of the plans as the newest run has them."""
        models = {case.model.name: case.model for case in self._planned.values()}
        return twins(models_of(self._run(0)[0]).values(), models.values())

    def vanished(self, requests: Iterable[tuple[PlanRequest, Plan]]) -> dict[Key, GateResult]:
        """Verdicts on cases that the newest run has and the plans lost.

        Args:
            requests: What the tests asked for, with the plans of it: selected or not.
        """
        pairs = list(requests)
        self._planned = {entry.case.key: entry.case for _, plan in pairs for entry in plan.entries}
        if not self._paths:
            return {}
        newest, cases = self._run(0)
        same = self._twins()
        there = {same.key_of(case) for case in self._planned.values()}
        left = {key: result.case for key, result in cases.items() if key not in there}
        base, root = self._bench.collection.root, self._bench.collection.named_from
        asked = [Asked.of(request, plan, base) for request, plan in pairs]
        gone = [
            key
            for key, case in left.items()
            if any(one.misses(_as_now(case, same, root)) for one in asked)
        ]
        # What tests make comes while they run.
        more = [key[0] for key in left if key not in gone and not left[key].model.is_made]
        if more:
            self.notes.append(
                f"gate: only in {newest.run_id} and not requested now: {listed(more)}"
            )
        self.unnamed = _unnamed(newest.run_id, left, gone, self._planned, same)
        return {
            key: vanished(case, newest.run_id, same.later_name(name), moved_to=same.moved_to(name))
            for key, case in left.items()
            if key in gone
            for name in (case.model.name,)
        }

    def admit(self, cases: Iterable[Case]) -> None:
        """Note the cases of a model that a test made."""
        self._planned = {**self._planned, **{case.key: case for case in cases}}

    def left_of_made(self) -> list[str]:
        """Say which cases of models that tests made the newest run has, and this one did not."""
        if not self._paths:
            return []
        newest, cases = self._run(0)
        left = [
            key[0]
            for key, result in cases.items()
            if result.case.model.is_made and key not in self._planned
        ]
        return [f"in {newest.run_id}, and not measured now: {listed(left)}"] if left else []

    def _found(self, key: Key) -> Stored | None:
        """A case as the newest run has it that measured it, else the newest that has it."""
        if key not in self._cases:
            case = self._planned.get(key)
            self._cases[key] = None if case is None else self._search(case)
        return self._cases[key]

    def fed(self, plan: Plan) -> Plan:
        """Return a plan whose cases are fed the default sizes of what is stored of them.

        Raises:
            OrtbenchError: if a certain run is meant and is not there, or can't be read.
        """
        return replace(plan, entries=tuple(map(self._as_stored, plan.entries)))

    def _as_stored(self, planned: Planned) -> Planned:
        found = self._search(planned.case)
        return planned if found is None else fed_as_stored(planned, found.result.case)

    def _search(self, case: Case) -> Stored | None:
        best: Stored | None = None
        for number in range(len(self._paths)):
            run, cases = self._run(number)
            same = twins(models_of(run).values(), [case.model])
            earlier = same.key_of(case)
            result = None if earlier is None else cases.get(earlier)
            if result is None:
                continue
            stored = Stored(run=run, result=result, twin=same.earlier[case.model.name])
            if result.status == "measured":
                return stored
            best = best or stored
        return best

    def result(self, key: Key) -> CaseResult | None:
        """What is stored of a case."""
        found = self._found(key)
        return None if found is None else found.result

    def judge(self, planned: Planned, rules: CaseRules) -> GateResult | None:
        """The verdict on a case; ``None`` for one of which nothing is stored."""
        found = self._found(planned.case.key)
        if found is None:
            return None
        judged = gate_case(
            MetricSide.of(found.result),
            self._bench.side_of(self._bench.result(planned)),
            rules,
            baseline=found.run,
            machine=self._bench.execution.header.machine,
            canary=self._canary_ratio(found.run),
            twin=found.twin,
            history=self._older(planned.case, found.run),
            spreads=self._spreads,
        )
        measured = self._bench.result(planned).case.inputs
        sizes = differing_defaults(planned, found.result.case.inputs, measured)
        return replace(judged, default_sizes=sizes)

    def _older(self, case: Case, than: Run) -> list[tuple[Run, CaseResult]]:
        """Return what runs before one have of a case; they say how far runs of it differ."""
        older: list[tuple[Run, CaseResult]] = []
        runs = [self._run(number) for number in range(len(self._paths))]
        first = next(number for number, (run, _) in enumerate(runs) if run is than) + 1
        for run, cases in runs[first:]:
            earlier = twins(models_of(run).values(), [case.model]).key_of(case)
            result = None if earlier is None else cases.get(earlier)
            if result is not None:
                older.append((run, result))
        return older

    def _canary_ratio(self, run: Run) -> float | None:
        """How the pinned model fares against a stored run, where that decides anything."""
        header = self._bench.execution.header
        if run.canary is None or machine_class(header.machine).name == "shared":
            return None  # the latency only informs on a shared machine
        return canary_ratio(run, replace(header, canary=self._canary))

    @cached_property
    def _spreads(self) -> dict[str, RunSpread]:
        return spreads_on(self._bench.execution.header.machine)

    @cached_property
    def _canary(self) -> Canary | None:
        return measure_canary(self._bench.execution.launcher)


def _unnamed(
    run_id: str,
    left: Mapping[Key, Case],
    gone: Collection[Key],
    planned: Mapping[Key, Case],
    same: Twins,
) -> tuple[UnnamedModel, ...]:
    """Models of a stored run of which this run has no case, but for those that it lost.

    What tests make comes while they run.
    """
    lost = {left[key].model.name for key in gone}
    here = {case.model.name for case in planned.values()} | lost
    names = dict.fromkeys(
        case.model.name
        for case in left.values()
        if not case.model.is_made
        and here.isdisjoint({case.model.name, same.later_name(case.model.name)})
    )
    return tuple(UnnamedModel(place=name, baseline=run_id, is_there=True) for name in names)


def _as_now(case: Case, same: Twins, root: Path) -> Case:
    """A stored case as this run would have it: under its model's name of now, at its place here.

    Where a document says no place, the file may lie wherever its path ends alike.
    """
    model = case.model
    place, path = PurePath(model.place), PurePath(model.path)
    ends = [path.parts[start:] for start in range(1, len(path.parts))]
    places = [root / place] if model.place else [root.joinpath(*end) for end in ends]
    here = next((str(place) for place in places if place.exists()), "")
    if not here:
        here = str(root / place) if model.place else model.path
    return replace(case, model=replace(model, name=same.later_name(model.name), path=here))
