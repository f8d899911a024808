"""The two kinds of baseline of a gate: the other side of this run, and stored runs.

The side of ``--ort-against`` is measured in this run, launch by launch with the contender. The runs
of ``--ort-baseline`` are found once, and hold what they have of the cases of this run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Key
from pytest_ortbench.core.errors import DocumentError, OrtbenchError, WorkerError
from pytest_ortbench.core.gate import GateFinding, GateResult
from pytest_ortbench.core.run import LATEST
from pytest_ortbench.execution.canary import measure_canary
from pytest_ortbench.gate.measuring.identical import identical
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.numbers.metrics import MetricSide
from pytest_ortbench.gate.numbers.same_models import models_of, twins
from pytest_ortbench.gate.numbers.sentences import listed
from pytest_ortbench.gate.numbers.stored import canary_ratio, gate_case, vanished
from pytest_ortbench.gate.numbers.verdict import machine_class
from pytest_ortbench.launch.reference import release_reference
from pytest_ortbench.launch.turn import TURN
from pytest_ortbench.planning.against import Against
from pytest_ortbench.planning.asked import Asked
from pytest_ortbench.planning.sides import parse_side
from pytest_ortbench.plugin.budgeting import judged_in_turn
from pytest_ortbench.store.baseline import find_baseline
from pytest_ortbench.store.documents import load

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ortbench.core.case import Case
    from pytest_ortbench.core.gate import GateResult
    from pytest_ortbench.core.outcome import CaseResult
    from pytest_ortbench.core.run import Canary, Run
    from pytest_ortbench.gate.measuring.gate import Gate
    from pytest_ortbench.gate.numbers.rules import CaseRules
    from pytest_ortbench.gate.numbers.same_models import Twin, Twins
    from pytest_ortbench.planning.against import Against
    from pytest_ortbench.planning.matrix import Plan, Planned
    from pytest_ortbench.planning.planner import Planner
    from pytest_ortbench.planning.request import PlanRequest
    from pytest_ortbench.planning.sides import PlannedPair
    from pytest_ortbench.plugin.bench import Bench


class OtherSide:
    """Pairs the cases of this run with those of the other side, and judges them.

    Args:
        bench: The run.

    Attributes:
        carried: The cases that will be judged.
        notes: What a reader must know of cases that have no counterpart.
        alone: The ids of the cases without a counterpart.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._options = bench.options
        self._pairs: dict[Key, PlannedPair] = {}
        self._judged: set[Key] = set()
        self.carried: Collection[Key] = ()
        self.notes: list[str] = []
        self.alone: list[str] = []

    def find(
        self,
        requests: Iterable[tuple[PlanRequest, Plan]],
        planned: Collection[Key],
    ) -> dict[Key, GateResult]:
        """Find the counterparts.

        Args:
            requests: What the tests asked for, with the plans of it.
            planned: All cases of the plans, selected or not.

        Returns:
            Verdicts on cases that only the other side has.

        Raises:
            OrtbenchError: if there is no such side, or it leaves nothing to compare.
        """
        label = self._options.against
        pairings = [self._against.pairing(request, plan) for request, plan in requests]
        self._against.require_any(pairings)
        found: dict[Key, GateResult] = {}
        for pairing in pairings:
            for pair in pairing.pairs:
                self._pairs.setdefault(pair.contender.case.key, pair)
            if self._against.side.kind in ("git", "model"):
                gone = [key for key in pairing.vanished if key not in planned]
                found |= {
                    key: vanished(pairing.left[key], label, pairing.models[key]) for key in gone
                }
            if pairing.added:
                new = [key[0] for key in pairing.added]
                self.alone += new
                self.notes.append(f"gate: missing on {label}: {listed(new)}")
            more = [key[0] for key in pairing.unasked if key not in planned]
            if more:
                self.notes.append(f"gate: only on {label} and not requested now: {listed(more)}")
            if pairing.itself:
                same = [key[0] for key in pairing.itself]
                self.notes.append(f"gate: the baseline itself, not gated: {listed(same)}")
        return found

    def admit(self, request: PlanRequest, plan: Plan) -> None:
        """Find the counterparts of a model that a test made.

        Raises:
            OrtbenchError: if there is no such side.
        """
        pairing = self._against.pairing(request, plan)
        self.alone += [key[0] for key in pairing.added]
        for pair in pairing.pairs:
            self._pairs.setdefault(pair.contender.case.key, pair)

    def why_nothing(self) -> str:
        """Return why no case has a counterpart, and what to do, where this side tells."""
        if self._against.side.kind != "git" or not self.alone:
            return ""
        return f"{self._options.against} has none of these models; use --ort-baseline=latest"

    def has(self, key: Key) -> bool:
        """Whether a case has a counterpart."""
        return key in self._pairs

    def launches(self, key: Key) -> bool:
        """Whether launches are made of a case, as far as is known before its files are made."""
        pair = self._pairs.get(key)
        if pair is None or pair.baseline.refusal is not None:
            return False
        sides = Pair(baseline=_as_made(pair.baseline.case), contender=_as_made(pair.contender.case))
        return self._options.gate_remeasure or not identical(sides)

    def runs(self, key: Key) -> bool:
        """Whether the counterpart of a case can be opened at all."""
        pair = self._pairs.get(key)
        if pair is None or pair.baseline.refusal is not None:
            return False
        try:
            case = self._bench.execution.prepare(pair.baseline)
            with TURN:
                self._bench.execution.launcher.open(case, worker=0, deadline=None).close()
        except OrtbenchError:
            return False
        return True

    def judge(self, planned: Planned, rules: CaseRules) -> GateResult | None:
        """The verdict on a case; ``None`` for one without a counterpart."""
        pair = self._pairs.get(planned.case.key)
        if pair is None:
            return None
        refusal = pair.baseline.refusal
        if refusal is None:
            try:
                before, after = self._bench.execution.prepare_pair(pair.baseline, pair.contender)
                prepared = Pair(baseline=before, contender=after)
            except WorkerError as error:
                refusal = error.failure
        if refusal is not None:
            text = f"the baseline can't be measured: {refusal.message}"
            case, before = pair.contender.case, pair.baseline.case
            judged = replace(
                GateResult.undecided(case, baseline=self._options.against, before=before),
                reason=text,
                model_digest=case.model.digest,
            )
            return judged.with_findings([GateFinding(about="comparison", text=text)])
        known = self._bench.execution.known(pair.contender)
        if known is None and rules.limits:
            # Absolute limits apply to the standard pass, whoever asked for it.
            known = self._bench.result(pair.contender)
        standard = None if known is None else self._bench.side_of(known)
        with TURN, self._bench.progress.within(prepared.contender):
            against = self._options.against
            judge = partial(self._gate.judge, prepared, rules, baseline=against, standard=standard)
            budget = self._bench.budget
            judged = judge() if budget is None else judged_in_turn(budget, prepared, judge)
        self._release_references(planned.case.key, prepared)
        return judged

    def _release_references(self, key: Key, judged: Pair) -> None:
        """Remove the reference outputs of both sides that no pair needs which is still to come."""
        self._judged.add(key)
        pairs = (
            self._pairs[key] for key in self.carried if key in self._pairs.keys() - self._judged
        )
        left = [planned.case for pair in pairs for planned in (pair.baseline, pair.contender)]
        for case in (judged.baseline, judged.contender):
            release_reference(case, left, self._scratch)

    @cached_property
    def _gate(self) -> Gate:
        from pytest_ortbench.gate.measuring.gate import Gate

        return Gate(
            launcher=self._bench.execution.launcher,
            machine=self._bench.execution.header.machine,
            cases=len([key for key, pair in self._pairs.items() if self._is_known(key, pair)])
            # Each test that makes its model counts as one case: how many there are comes out late.
            + len(self._bench.making),
            scratch=self._scratch,
            on_launch=self._show_launch,
            spares_identical=not self._options.gate_remeasure,
            retry=self._bench.execution.retry,
        )

    def _is_known(self, key: Key, pair: PlannedPair) -> bool:
        """Whether a pair was there, and selected, before the first test ran."""
        return key in self.carried and not pair.contender.case.model.is_made

    def _show_launch(self, made: int, needed: int) -> None:
        self._bench.progress.stage = f"launch {made + 1} of {needed}"

    @cached_property
    def _against(self) -> Against:
        place = self._options.place_of("against")
        return Against(
            side=parse_side(self._options.against, place=place),
            # Its own: a model must be called the same on both sides, though its file is another.
            planner=self._planner_of(),
            planner_of=self._planner_of,
            root=self._bench.collection.root,
            folder=self._scratch / "revision",
            offered=self._bench.collection.with_offered_inputs,
        )

    def _planner_of(self, *requirements: str) -> Planner:
        return self._bench.collection.another_planner(requirements, place="--ort-against")

    @cached_property
    def _scratch(self) -> Path:
        from pytest_ortbench.core.own_folder import OwnFolder

        self._folder = OwnFolder("gate")
        return self._folder.path

    def close(self) -> None:
        """Remove what was written."""
        if "_scratch" in self.__dict__:
            self._folder.close()


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
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._runs: dict[int, tuple[Run, dict[Key, CaseResult]]] = {}
        self._cases: dict[Key, Stored | None] = {}
        self._planned: Mapping[Key, Case] = {}
        self.notes: list[str] = []

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
                f"gate: skipped, because they failed a gate: {listed(found.passed_over)}; if "
                "their results are intended, run once without --ort-baseline or name the run"
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
            self.notes.append(f"gate: new compared with {newest.run_id}: {listed(new)}")
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
            self._cases[key] = self._search(key)
        return self._cases[key]

    def _search(self, key: Key) -> Stored | None:
        best: Stored | None = None
        case = self._planned.get(key)
        if case is None:
            return None
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
        return gate_case(
            MetricSide.of(found.result),
            self._bench.side_of(self._bench.result(planned)),
            rules,
            baseline=found.run,
            machine=self._bench.execution.header.machine,
            canary=self._canary_ratio(found.run),
            twin=found.twin,
        )

    def _canary_ratio(self, run: Run) -> float | None:
        """How the pinned model fares against a stored run, where that decides anything."""
        header = self._bench.execution.header
        if run.canary is None or machine_class(header.machine).name == "shared":
            return None  # the latency only informs on a shared machine
        return canary_ratio(run, replace(header, canary=self._canary))

    @cached_property
    def _canary(self) -> Canary | None:
        return measure_canary(self._bench.execution.launcher)


def _as_made(case: Case) -> Case:
    """A case whose file may still be to be made, with what it is made of in place of its digest."""
    variant = case.variant
    made_of = f"{case.model.digest} {variant.precision} {sorted(variant.recipe.items())}"
    return replace(case, variant=replace(variant, digest=variant.digest or made_of))


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
