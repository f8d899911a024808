"""The other side of ``--ort-against``, measured in this run in turns with the contender."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Key
from pytest_ortbench.core.errors import OrtbenchError, WorkerError
from pytest_ortbench.core.gate import GateFinding, GateResult, UnnamedModel, short_side
from pytest_ortbench.gate.measuring.identical import identical
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.numbers.sentences import listed, unnamed_notes
from pytest_ortbench.gate.numbers.stored import vanished
from pytest_ortbench.launch.reference import release_reference
from pytest_ortbench.launch.turn import TURN
from pytest_ortbench.planning.against import Against
from pytest_ortbench.planning.baseline_sizes import differing_defaults_of
from pytest_ortbench.planning.sides import parse_side
from pytest_ortbench.plugin.budgeting import judged_in_turn

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case
    from pytest_ortbench.gate.measuring.gate import Gate
    from pytest_ortbench.gate.numbers.rules import CaseRules
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
        unnamed: Models of a revision that nothing in this run names.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._options = bench.options
        self._pairs: dict[Key, PlannedPair] = {}
        self._judged: set[Key] = set()
        self.carried: Collection[Key] = ()
        self.notes: list[str] = []
        self.alone: list[str] = []
        self.unnamed: tuple[UnnamedModel, ...] = ()

    def fed(self, request: PlanRequest, plan: Plan) -> Plan:
        """Return a plan whose cases are fed the default sizes of their counterparts.

        Raises:
            OrtbenchError: if there is no such side.
        """
        pairs = self._against.pairing(request, plan).pairs
        fed = {pair.contender.case.key: pair.contender for pair in pairs}
        return replace(
            plan, entries=tuple(fed.get(entry.case.key, entry) for entry in plan.entries)
        )

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
        side = short_side(label)
        requests = list(requests)
        self.unnamed = self._against.look_for_lost(requests, self._bench.collection.suite_files)
        self.notes += unnamed_notes(self.unnamed)
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
                self.notes.append(
                    f"gate: new, not compared, since {side} does not have it: {listed(new)}"
                )
            more = [key[0] for key in pairing.unasked if key not in planned]
            if more:
                self.notes.append(f"gate: only on {side} and not requested now: {listed(more)}")
            if pairing.itself:
                same = [key[0] for key in pairing.itself]
                self.notes.append(f"gate: the baseline itself is not compared: {listed(same)}")
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
        side = short_side(self._options.against)
        return f"{side} has none of these models; use --ort-baseline=latest"

    def has(self, key: Key) -> bool:
        """Whether a case has a counterpart."""
        return key in self._pairs

    def launches(self, key: Key) -> bool:
        """Whether launches are made of a case, as far as is known before its files are made."""
        pair = self._pairs.get(key)
        if pair is None or pair.baseline.refusal is not None:
            return False
        return not self.is_identical(key)

    def is_identical(self, key: Key) -> bool:
        """Whether both sides of a case are the same files under the same settings."""
        pair = self._pairs.get(key)
        if pair is None or pair.baseline.refusal is not None or self._options.gate_remeasure:
            return False
        sides = Pair(baseline=_as_made(pair.baseline.case), contender=_as_made(pair.contender.case))
        return identical(sides)

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
        judged = self._verdict_on(pair, rules)
        known = self._bench.known(planned)
        measured = () if known is None else known.case.inputs
        return replace(judged, default_sizes=differing_defaults_of(pair, measured))

    def _verdict_on(self, pair: PlannedPair, rules: CaseRules) -> GateResult:
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
        self._release_references(pair.contender.case.key, prepared)
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


def _as_made(case: Case) -> Case:
    """A case whose file may still be to be made, with what it is made of in place of its digest."""
    variant = case.variant
    made_of = f"{case.model.digest} {variant.precision} {sorted(variant.recipe.items())}"
    return replace(case, variant=replace(variant, digest=variant.digest or made_of))
