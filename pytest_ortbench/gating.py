"""The gate of a pytest run: which test carries the verdict of which case, and what comes of it.

Each case's verdict belongs to one test, whatever tests were selected: to ``test_latency`` of the
case if it is among them, else to the first one. So a gate is never on without deciding something.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ortbench.core.errors import OrtbenchError, WorkerError
from pytest_ortbench.inconclusive import warn
from pytest_ortbench.marker import read_marker
from pytest_ortbench.stored_baseline import StoredBaseline, listed

if TYPE_CHECKING:
    from pytest_ortbench.analysis.gate.rules import CaseRules, Rule
    from pytest_ortbench.bench import Bench
    from pytest_ortbench.core.gate import GateResult
    from pytest_ortbench.engine.against import Against
    from pytest_ortbench.engine.gate import Gate
    from pytest_ortbench.engine.planning import Planner
    from pytest_ortbench.plan.matrix import Plan, Planned
    from pytest_ortbench.plan.request import PlanRequest
    from pytest_ortbench.plan.sides import PlannedPair

Key = tuple[str, str]

#: The test that carries a case's verdict if it is there.
_CARRIER = "test_latency"


@dataclass(slots=True)
class _Carried:
    """A case and the test that carries its verdict."""

    nodeid: str
    planned: Planned
    rules: CaseRules


class Gating:
    """Judges each case once, in the test that carries it.

    Args:
        bench: The run.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._options = bench.options
        self._carried: dict[Key, _Carried] = {}
        self._pairs: dict[Key, PlannedPair] = {}
        self._results: dict[Key, GateResult] = {}
        self._requests: dict[str, tuple[PlanRequest, Plan]] = {}
        self._itself: set[Key] = set()
        self._planners: list[Planner] = []
        self._stored = StoredBaseline(bench) if bench.options.baseline else None
        self._excused: set[Key] = set()
        self._skipped: set[str] = set()
        self._refused = False
        self.notes: list[str] = []

    @property
    def results(self) -> tuple[GateResult, ...]:
        """Verdicts so far."""
        return tuple(self._results.values())

    # -- before anything runs -----------------------------------------------------------------

    def note_plan(self, request: PlanRequest, plan: Plan) -> None:
        """Remember what a collected test measures: what is deselected later did not vanish."""
        self._requests.setdefault(repr(request), (request, plan))

    def assign(self, carriers: Iterable[tuple[pytest.Item, Planned]]) -> None:
        """Choose the test that carries each case.

        Args:
            carriers: The selected tests of ours with their cases.
        """
        for item, planned in carriers:
            key = planned.case.key
            name = getattr(item, "originalname", item.name)
            if key not in self._carried or name == _CARRIER:
                rules = self._rules_of(item, key[0])
                self._carried[key] = _Carried(nodeid=item.nodeid, planned=planned, rules=rules)

    def prepare(self) -> None:
        """Find the baselines.

        Raises:
            OrtbenchError: if there is no such side or baseline, or a margin can't be resolved.
        """
        try:
            self._find_sides()
        except OrtbenchError:
            self._refused = True
            raise

    def _find_sides(self) -> None:
        if self._stored is not None:
            planned = {
                entry.case.key for _, plan in self._requests.values() for entry in plan.entries
            }
            self._results |= self._stored.vanished(planned, self._carried)
            self.notes += self._stored.notes
        if self._options.against:
            from pytest_ortbench.engine.resolution import check_margins

            margins = {key[0]: carried.rules.margin for key, carried in self._carried.items()}
            check_margins(margins, place=self._options.places.get("gate", "--ort-gate"))
            self._find_pairs()

    def _rules_of(self, item: pytest.Item, case_id: str) -> CaseRules:
        from pytest_ortbench.analysis.gate.rules import rules_for

        marked = read_marker(item.iter_markers("ortbench"), place=item.nodeid).gate
        return rules_for(case_id, (*self._rules, *marked))

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        from pytest_ortbench.analysis.gate.rules import parse_rules

        place = self._options.places.get("gate", "--ort-gate")
        return parse_rules(self._options.gate, place=place)

    def _find_pairs(self) -> None:
        from pytest_ortbench.analysis.gate.stored import vanished

        label = self._options.against
        for request, plan in self._requests.values():
            pairing = self._against.pairing(request, plan)
            for pair in pairing.pairs:
                self._pairs.setdefault(pair.contender.case.key, pair)
            self._itself.update(pairing.itself)
            if self._against.side.kind in ("git", "model"):
                self._results |= {key: vanished(key, label) for key in pairing.vanished}
            if pairing.added:
                new = [key[0] for key in pairing.added]
                self.notes.append(f"gate: without a counterpart on {label}: {listed(new)}")
            if pairing.itself:
                same = [key[0] for key in pairing.itself]
                self.notes.append(f"gate: the baseline itself, not gated: {listed(same)}")

    @cached_property
    def _against(self) -> Against:
        from pytest_ortbench.engine.against import Against
        from pytest_ortbench.plan.sides import parse_side

        place = self._options.places.get("against", "--ort-against")
        return Against(
            side=parse_side(self._options.against, place=place),
            # Its own: a model must be called the same on both sides, though its file is another.
            planner=self._planner_of(),
            planner_of=self._planner_of,
            root=self._bench.collection.root,
            folder=self._scratch / "revision",
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

    # -- one test -----------------------------------------------------------------------------

    def carries(self, item: pytest.Item, planned: Planned) -> bool:
        """Whether the verdict of the case belongs to this test."""
        carried = self._carried.get(planned.case.key)
        return carried is not None and carried.nodeid == item.nodeid

    def check(self, item: pytest.Item, planned: Planned) -> None:
        """Judge the case of a test that passed; fail it, or warn.

        Raises:
            pytest.fail.Exception: if the gate says so.
        """
        self._bench.refuse_xdist()
        results = self._judge(planned)
        for result in results:
            self._note(planned.case.key, result)
        self._store()
        problems = [text for result in results for text in result.failures]
        warnings = [text for result in results for text in result.warnings]
        if self._options.gate_strict:
            problems += [f"{text} (--ort-gate-strict)" for text in warnings]
        if problems:
            lines = "\n".join(f"  {text}" for text in problems)
            pytest.fail(f"{self._bench.name_of(planned)}: gate failed\n{lines}", pytrace=False)
        for text in warnings:
            warn(item, f"{self._bench.name_of(planned)}: {text}")

    def check_skipped(self, planned: Planned) -> None:
        """Judge a case that can't run here: that is a regression where the baseline can.

        Raises:
            pytest.fail.Exception: if the baseline can.
        """
        result = self._bench.result(planned)
        if result.failure is None:
            return  # skipped for a reason of the test's own
        key = planned.case.key
        stored = None if self._stored is None else self._stored.result(key)
        runs = stored is not None and stored.status == "measured"
        if not runs and key in self._pairs:
            runs = self._baseline_runs(self._pairs[key])
        if runs:
            from pytest_ortbench.core.gate import GateResult

            text = f"the baseline runs, the contender does not: {result.failure.message}"
            self._results[key] = GateResult(
                case_id=key[0],
                runtime=key[1],
                baseline=self._options.against or self._options.baseline,
                verdict="incomparable",
                reason=f"status: measured → {result.status}",
                failures=(text,),
            )
            pytest.fail(f"{self._bench.name_of(planned)}: gate failed\n  {text}", pytrace=False)
        self._excused.add(key)

    def note_skipped(self, nodeid: str) -> None:
        """Remember that a test was skipped: if it carries a verdict, there is none."""
        self._skipped.add(nodeid)

    def _judge(self, planned: Planned) -> list[GateResult]:
        """Verdicts on one case: against the other side, and against a stored run."""
        key = planned.case.key
        carried = self._carried[key]
        pair = self._pairs.get(key)
        found = [] if pair is None else [self._judge_pair(pair, carried.rules)]
        stored = None if self._stored is None else self._stored.judge(planned, carried.rules)
        return found if stored is None else [*found, stored]

    def _judge_pair(self, pair: PlannedPair, rules: CaseRules) -> GateResult:
        from pytest_ortbench.core.gate import GateResult
        from pytest_ortbench.engine.paired import Pair

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
            return GateResult(
                case_id=case_id,
                runtime=runtime,
                baseline=self._options.against,
                verdict="incomparable",
                reason=text,
                failures=(text,),
            )
        known = self._bench.engine.known(pair.contender)
        with self._bench.progress.within(prepared.contender):
            return self._gate.judge(prepared, rules, baseline=self._options.against, standard=known)

    @cached_property
    def _gate(self) -> Gate:
        from pytest_ortbench.engine.gate import Gate

        return Gate(
            launcher=self._bench.engine.launcher,
            machine=self._bench.engine.header.machine,
            cases=len([key for key in self._pairs if key in self._carried]),
            scratch=self._scratch,
            on_launch=self._show_launch,
        )

    def _baseline_runs(self, pair: PlannedPair) -> bool:
        """Whether the other side can be opened at all."""
        if pair.baseline.refusal is not None:
            return False
        try:
            case = self._bench.engine.prepare(pair.baseline)
            self._bench.engine.launcher.open(case, worker=0, deadline=None).close()
        except OrtbenchError:
            return False
        return True

    def _note(self, key: Key, result: GateResult) -> None:
        earlier = self._results.get(key)
        if earlier is not None and earlier.baseline != result.baseline:
            # Two gates at once: both verdicts stand in the document.
            key = (f"{key[0]} against {result.baseline}", key[1])
        self._results[key] = result

    def _show_launch(self, made: int, needed: int) -> None:
        self._bench.progress.stage = f"launch {made + 1} of {needed}"

    def _store(self) -> None:
        """Keep the verdicts so far on disk: a killed run loses none."""
        folder = self._bench.folder
        if folder is None:
            return
        try:
            folder.update(replace(self._bench.engine.header, gate=self.results))
        except OrtbenchError as error:
            self._bench.warn(str(error))

    # -- after the last one -------------------------------------------------------------------

    def problems(self) -> list[str]:
        """What fails the run though no test of it failed; nothing where it was refused already."""
        if self._refused:
            return []
        gone = [text for result in self.results for text in result.failures if "vanished" in text]
        gone += [
            f"{key[0]} was not judged: {carried.nodeid} carries its verdict and was skipped"
            for key, carried in self._carried.items()
            if carried.nodeid in self._skipped
            and key not in self._excused
            and key not in self._results
            and self._has_baseline(key)
        ]
        if self._stored is not None and self._stored.run is None and not self._options.against:
            return gone
        judged = [result for result in self.results if "vanished" not in result.reason]
        if not judged:
            gone.append("a gate was asked for, and nothing was compared")
        return gone

    def _has_baseline(self, key: Key) -> bool:
        stored = self._stored is not None and self._stored.result(key) is not None
        return stored or key in self._pairs

    def results_of(self, planned: Planned) -> list[GateResult]:
        """The verdicts on a case, against the other side before the one against a stored run."""
        case_id, runtime = planned.case.key
        return [
            result
            for result in self._results.values()
            if (result.case_id, result.runtime) == (case_id, runtime)
        ]

    def close(self) -> None:
        """Remove what was written, end what was started."""
        for planner in self._planners:
            planner.close()
        if "_scratch" in self.__dict__:
            self._folder.cleanup()
