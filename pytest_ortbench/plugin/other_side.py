"""The side of ``--ort-against``: measured in this run, launch by launch with the contender."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import OrtbenchError, WorkerError
from pytest_ortbench.plugin.stored_baseline import listed

if TYPE_CHECKING:
    from pytest_ortbench.core.gate import GateResult
    from pytest_ortbench.gate.measuring.gate import Gate
    from pytest_ortbench.gate.numbers.rules import CaseRules
    from pytest_ortbench.planning.against import Against
    from pytest_ortbench.planning.matrix import Plan, Planned
    from pytest_ortbench.planning.planner import Planner
    from pytest_ortbench.planning.request import PlanRequest
    from pytest_ortbench.planning.sides import PlannedPair
    from pytest_ortbench.plugin.bench import Bench

Key = tuple[str, str]


class OtherSide:
    """Pairs the cases of this run with those of the other side, and judges them.

    Args:
        bench: The run.

    Attributes:
        carried: The cases that will be judged.
        notes: What a reader must know of cases that have no counterpart.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._options = bench.options
        self._pairs: dict[Key, PlannedPair] = {}
        self._planners: list[Planner] = []
        self.carried: Collection[Key] = ()
        self.notes: list[str] = []

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
        from pytest_ortbench.gate.numbers.stored import vanished

        label = self._options.against
        pairings = [self._against.pairing(request, plan) for request, plan in requests]
        self._against.require_any(pairings)
        found: dict[Key, GateResult] = {}
        for pairing in pairings:
            for pair in pairing.pairs:
                self._pairs.setdefault(pair.contender.case.key, pair)
            if self._against.side.kind in ("git", "model"):
                gone = [key for key in pairing.vanished if key not in planned]
                found |= {key: vanished(key, label, pairing.models[key]) for key in gone}
            if pairing.added:
                new = [key[0] for key in pairing.added]
                self.notes.append(f"gate: without a counterpart on {label}: {listed(new)}")
            more = [key[0] for key in pairing.unasked if key not in planned]
            if more:
                self.notes.append(f"gate: only on {label}, nobody asked for it: {listed(more)}")
            if pairing.itself:
                same = [key[0] for key in pairing.itself]
                self.notes.append(f"gate: the baseline itself, not gated: {listed(same)}")
        return found

    def has(self, key: Key) -> bool:
        """Whether a case has a counterpart."""
        return key in self._pairs

    def runs(self, key: Key) -> bool:
        """Whether the counterpart of a case can be opened at all."""
        pair = self._pairs.get(key)
        if pair is None or pair.baseline.refusal is not None:
            return False
        from pytest_ortbench.launch.turn import TURN

        try:
            case = self._bench.engine.prepare(pair.baseline)
            with TURN:
                self._bench.engine.launcher.open(case, worker=0, deadline=None).close()
        except OrtbenchError:
            return False
        return True

    def judge(self, planned: Planned, rules: CaseRules) -> GateResult | None:
        """The verdict on a case; ``None`` for one without a counterpart."""
        from pytest_ortbench.core.gate import GateFinding, GateResult
        from pytest_ortbench.gate.measuring.pair import Pair

        pair = self._pairs.get(planned.case.key)
        if pair is None:
            return None
        refusal = pair.baseline.refusal
        if refusal is None:
            try:
                prepared = Pair(
                    baseline=self._bench.engine.prepare(pair.baseline),
                    contender=self._bench.engine.prepare(pair.contender),
                )
            except WorkerError as error:
                refusal = error.failure
        if refusal is not None:
            case_id, runtime = pair.contender.case.key
            text = f"the baseline can't be measured: {refusal.message}"
            judged = GateResult(
                case_id=case_id,
                runtime=runtime,
                baseline=self._options.against,
                verdict="incomparable",
                reason=text,
                model_digest=pair.contender.case.model.digest,
            )
            return judged.with_findings([GateFinding(about="comparison", text=text)])
        from pytest_ortbench.launch.turn import TURN

        known = self._bench.engine.known(pair.contender)
        if known is None and rules.limits:
            # Absolute limits are held against the standard pass, whoever asked for it.
            known = self._bench.result(pair.contender)
        with TURN, self._bench.progress.within(prepared.contender):
            return self._gate.judge(prepared, rules, baseline=self._options.against, standard=known)

    @cached_property
    def _gate(self) -> Gate:
        from pytest_ortbench.gate.measuring.gate import Gate

        return Gate(
            launcher=self._bench.engine.launcher,
            machine=self._bench.engine.header.machine,
            cases=len([key for key in self._pairs if key in self.carried]),
            scratch=self._scratch,
            on_launch=self._show_launch,
            spares_identical=not self._options.gate_remeasure,
        )

    def _show_launch(self, made: int, needed: int) -> None:
        self._bench.progress.stage = f"launch {made + 1} of {needed}"

    @cached_property
    def _against(self) -> Against:
        from pytest_ortbench.planning.against import Against
        from pytest_ortbench.planning.sides import parse_side

        place = self._options.places.get("against", "--ort-against")
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
        planner = self._bench.collection.another_planner(requirements, place="--ort-against")
        self._planners.append(planner)
        return planner

    @cached_property
    def _scratch(self) -> Path:
        import tempfile

        self._folder = tempfile.TemporaryDirectory(prefix="ortbench-gate-")
        return Path(self._folder.name)

    def close(self) -> None:
        """Remove what was written, end what was started."""
        for planner in self._planners:
            planner.close()
        if "_scratch" in self.__dict__:
            self._folder.cleanup()
