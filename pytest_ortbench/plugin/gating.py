"""The gate of a pytest run: what holds for which case, and what comes of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_ortbench.core.case import Case, Key
from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.gate import UNREACHED, GateFinding, GateResult, short_side
from pytest_ortbench.core.judgement import unjudged
from pytest_ortbench.core.patterned import refuse_unfitting
from pytest_ortbench.gate.measuring.resolution import check_margins
from pytest_ortbench.gate.numbers.acceptance import mends
from pytest_ortbench.gate.numbers.outcome import with_outcome
from pytest_ortbench.gate.numbers.rules import parse_rules, refuse_idle_sides, rules_for
from pytest_ortbench.gate.numbers.stored import limits_alone
from pytest_ortbench.gate.numbers.undecided import judgement_of_verdicts
from pytest_ortbench.passes.registry import can_have, metrics_beside
from pytest_ortbench.plugin.judging import Verdict, is_preferred
from pytest_ortbench.plugin.marker import marker_of
from pytest_ortbench.plugin.other_side import OtherSide
from pytest_ortbench.plugin.stored_baseline import StoredBaseline
from pytest_ortbench.store.accepted import load_acceptances

if TYPE_CHECKING:
    from pytest_ortbench.core.gate import UnnamedModel
    from pytest_ortbench.core.limits import Limit
    from pytest_ortbench.gate.numbers.acceptance import Acceptances
    from pytest_ortbench.gate.numbers.removals import Removal
    from pytest_ortbench.gate.numbers.rules import CaseRules, Rule
    from pytest_ortbench.planning.matrix import Plan, Planned
    from pytest_ortbench.planning.request import PlanRequest
    from pytest_ortbench.plugin.bench import Bench

#: What these judgements are of.
_OF = "gate"


@dataclass(slots=True)
class _Gated:
    """A selected case, and what its gate holds it to."""

    planned: Planned
    rules: CaseRules


class Gating:
    """Compares each selected case with its baselines, once.

    Args:
        bench: The run.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._options = bench.options
        self._gated: dict[Key, _Gated] = {}
        self._results: dict[Key, GateResult] = {}
        self._against = OtherSide(bench) if bench.options.against else None
        self._stored = StoredBaseline(bench) if bench.options.baseline else None
        self._refused = False
        self._gone: dict[Key, GateResult] = {}
        self._made: set[str] = set()
        self.items: dict[pytest.Item, Removal] = {}
        self.notes: list[str] = []

    @property
    def results(self) -> tuple[GateResult, ...]:
        """Verdicts so far."""
        return tuple(self._results.values())

    @property
    def unnamed(self) -> tuple[UnnamedModel, ...]:
        """Models that the baselines have and that nothing in this run names."""
        sides = (side for side in (self._against, self._stored) if side is not None)
        return tuple(model for side in sides for model in side.unnamed)

    # -- before anything runs -----------------------------------------------------------------

    def fed(self, request: PlanRequest, plan: Plan) -> Plan:
        """Return a plan whose cases are fed the default sizes of what they are compared with.

        A baseline that can't be had is told where all of them are found.
        """
        with suppress(OrtbenchError):
            if self._stored is not None:
                plan = self._stored.fed(plan)
            if self._against is not None:
                plan = self._against.fed(request, plan)
        return plan

    def assign(
        self, ours: Iterable[tuple[pytest.Item, Planned]], *, more_to_come: bool = False
    ) -> None:
        """Note what holds for each selected case.

        What the markers of any of its tests say of the gate holds for the case; where several set
        the same limit, that of the preferred test, else of the first.

        Args:
            ours: The selected tests of ours with their cases.
            more_to_come: Whether tests make further models, whose cases a pattern may be about.

        Raises:
            UsageError: for a pattern of the command line that fits no case.
        """
        ours = list(ours)
        tests: dict[Key, list[tuple[pytest.Item, Planned]]] = {}
        for item, planned in ours:
            tests.setdefault(planned.case.key, []).append((item, planned))
        case_ids = dict.fromkeys(case_id for case_id, _ in tests)
        beside = metrics_beside(planned.case for _, planned in ours)
        if not more_to_come:
            self.notes += refuse_unfitting(self._rules, case_ids, place=self._rules_place)
        for key, of_case in tests.items():
            # The test whose marker decides last: later rules replace earlier ones.
            of_case.sort(key=lambda test: is_preferred(test[0]))
            if not is_preferred(of_case[-1][0]):
                of_case.append(of_case.pop(0))
            rules = [*self._rules, *(rule for item, _ in of_case for rule in _marked(item))]
            planned = of_case[-1][1]
            case_rules = rules_for(key[0], rules, case_ids)
            limits = tuple(
                limit
                for limit in case_rules.limits
                if can_have(limit.metric.name, planned.case, beside)
            )
            self._gated[key] = _Gated(planned=planned, rules=replace(case_rules, limits=limits))

    def admit(self, request: PlanRequest, plan: Plan, marked: Sequence[Rule]) -> None:
        """Note what holds for the cases of a model that a test made, and find their baselines.

        Args:
            request: What the test asks for.
            plan: The cases of it.
            marked: What the test itself says of the gate.

        Raises:
            OrtbenchError: if the other side can't be had, or a margin can't be resolved.
        """
        if self._stored is not None:
            self._stored.admit(entry.case for entry in plan.entries)
        if self._against is not None:
            self._against.admit(request, plan)
        case_ids = {entry.case.case_id for entry in plan.entries}
        self._made |= case_ids
        for entry in plan.entries:
            rules = rules_for(entry.case.case_id, [*self._rules, *marked], self._case_ids)
            self._gated[entry.case.key] = _Gated(planned=entry, rules=rules)
        if self._against is not None:
            margins = {key[0]: self._gated[key].rules.margin for key in self._gated}
            check_margins(margins, place=self._rules_place)

    def limits_of(self, planned: Planned) -> tuple[Limit, ...]:
        """Absolute limits that a case is held to by its gate."""
        gated = self._gated.get(planned.case.key)
        return () if gated is None else gated.rules.limits

    def look(self) -> None:
        """Find the baselines, and what of them this run lost, before any test is deselected.

        Raises:
            OrtbenchError: if there is no such side or baseline, or a file has a fault.
        """
        try:
            _ = self._acceptances  # a fault of the file is known before anything is measured
            requests = list(self._bench.requests.values())
            if self._against is None:
                self.notes += refuse_idle_sides(self._rules, place=self._rules_place)
            if self._stored is not None:
                self._gone |= self._stored.vanished(requests)
            if self._against is not None:
                planned = {entry.case.key for _, plan in requests for entry in plan.entries}
                self._gone |= self._against.find(requests, planned)
        except OrtbenchError:
            self._refused = True
            raise

    def prepare(self, selected: Iterable[pytest.Item]) -> None:
        """Tell the baselines which cases will be judged.

        Args:
            selected: The tests that will run.

        Raises:
            OrtbenchError: if a margin can't be resolved.
        """
        if self._stored is not None:
            self._stored.note_new(self._gated)
            self.notes += self._stored.notes
        if self._against is not None:
            margins = {key[0]: gated.rules.margin for key, gated in self._gated.items()}
            try:
                check_margins(margins, place=self._rules_place)
            except OrtbenchError:
                self._refused = True
                raise
            self._against.carried = self._gated
            self.notes += self._against.notes
        kept = set(selected)
        self.notes += [
            f"gate: not judged, because its test was deselected: {removal.reason}"
            for item, removal in self.items.items()
            if item not in kept
        ]

    @cached_property
    def removals(self) -> tuple[Removal, ...]:
        """What the baselines have and this run lost."""
        from pytest_ortbench.gate.numbers.removals import removals

        cases = [entry.case for _, plan in self._bench.requests.values() for entry in plan.entries]
        labels = {case.runtime.label for case in cases}
        labels |= {result.runtime for result in self._gone.values()}
        models = {case.model.name for case in cases}
        return removals(self._gone.values(), models, several_runtimes=len(labels) > 1)

    def judge_removal(self, removal: Removal) -> list[GateResult]:
        """Give the verdicts on what is gone, with what the project accepts of it."""
        judged = [self._with_acceptances(result) for result in removal.results]
        for result in judged:
            self._note((result.case_id, result.runtime), result)
        self._store()
        return judged

    @property
    def _rules_place(self) -> str:
        return self._options.place_of("gate")

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        return parse_rules(self._options.gate, place=self._rules_place)

    # -- one case -----------------------------------------------------------------------------

    def owes(self, planned: Planned) -> tuple[str, ...]:
        """Name the baselines that a case is compared with, or its absolute limits."""
        key = planned.case.key
        gated = self._gated.get(key)
        if gated is None:
            return ()
        owed = []
        if self._against is not None and self._against.has(key):
            owed.append(f"the gate against {short_side(self._options.against)}")
        if self._stored is not None and self._stored.result(key) is not None:
            owed.append(f"the gate against {self._options.baseline}")
        limits = (f"'{limit.text}' ({self._rules_place})" for limit in self.limits_of(planned))
        return tuple(owed or limits)

    def launches(self, key: Key) -> bool:
        """Whether launches are made of a case and its other side."""
        return self._against is not None and self._against.launches(key)

    def settles(self, key: Key) -> bool:
        """Whether both sides of a case are identical, and no stored run is compared with it."""
        if self._against is None or self._stored is not None:
            return False
        return self._against.is_identical(key)

    def decides_in_turns(self, key: Key) -> bool:
        """Whether launches of both sides decide on a case, and no stored run does."""
        return self._stored is None and self.launches(key)

    def judge(self, item: pytest.Item, planned: Planned) -> Verdict:
        """Compare a case with its baselines; launches of the other side are made for it."""
        result = self._bench.result(planned)
        if result.failure is not None and result.lacks_time:
            return self._without_time(planned, result.failure.message)
        if result.failure is not None:
            return self._judge_unable(planned, result.status, result.failure.message)
        sources = [source for source in (self._against, self._stored) if source is not None]
        results = self._judge_by(planned, sources)
        for judged in results:
            self._note(planned.case.key, judged)
        self._store()
        if not self._options.gate_strict:
            for text in (text for judged in results for text in judged.warnings):
                warn(item, f"{self._bench.name_of(planned)}: {text}")
        return self._verdict(results)

    def _judge_unable(self, planned: Planned, status: str, reason: str) -> Verdict:
        """Judge a case that can't run here: that is a regression where the baseline can."""
        key = planned.case.key
        stored = None if self._stored is None else self._stored.result(key)
        runs = stored is not None and stored.status == "measured"
        if not runs and not (self._against is not None and self._against.runs(key)):
            text = f"neither side can be measured: {reason}"
            return Verdict(judgement=unjudged(_OF, text))
        text = f"the baseline runs, but the contender does not: {reason}"
        judged = self._unable(planned, f"status: measured → {status}", text)
        self._results[key] = judged
        return self._verdict([judged])

    def _without_time(self, planned: Planned, reason: str) -> Verdict:
        """Judge a case that the budget of the run had no time for: nothing is known of it."""
        key = planned.case.key
        against = self._against is not None and self._against.has(key)
        stored = self._stored is not None and self._stored.result(key) is not None
        baselines = [self._options.against] * against + [self._options.baseline] * stored
        results = []
        for baseline in baselines:
            judged = self._without_verdict(planned.case, reason, baseline)
            undecided = replace(judged, verdict="inconclusive", cause="budget")
            results.append(self._with_acceptances(with_outcome(undecided)))
            self._note(key, results[-1])
        self._store()
        return self._verdict(results) if results else Verdict(judgement=unjudged(_OF, reason))

    def _verdict(self, results: Sequence[GateResult]) -> Verdict:
        problems = [text for result in results for text in result.failures]
        if self._options.gate_strict:
            warnings = [text for result in results for text in result.warnings]
            problems += [f"{text} (--ort-gate-strict)" for text in warnings]
        problems += mends(results, strict=self._options.gate_strict)
        return Verdict(
            judgement=judgement_of_verdicts(results),
            heading="gate failed",
            problems=tuple(problems),
        )

    def _judge_by(
        self, planned: Planned, sources: Iterable[OtherSide | StoredBaseline]
    ) -> list[GateResult]:
        """Verdicts on one case: against the other side, and against a stored run."""
        rules = self._gated[planned.case.key].rules
        judged = [source.judge(planned, rules) for source in sources]
        results = [result for result in judged if result is not None]
        if not results and rules.limits:
            results = [limits_alone(self._bench.side_of(self._bench.result(planned)), rules)]
        return [self._with_acceptances(result) for result in results]

    def _unable(self, planned: Planned, reason: str, failure: str) -> GateResult:
        """The verdict on a case that can't be measured here, though its baseline can."""
        finding = GateFinding(about="status", text=failure)
        baseline = self._options.against or self._options.baseline
        judged = self._without_verdict(planned.case, reason, baseline)
        judged = replace(judged, model_digest=planned.case.model.digest)
        return self._with_acceptances(judged.with_findings([finding]))

    def _without_verdict(
        self, case: Case, reason: str, baseline: str, failures: tuple[str, ...] = ()
    ) -> GateResult:
        judged = GateResult.undecided(case, baseline=baseline)
        return replace(judged, reason=reason, failures=failures)

    def _unreached(self, case: Case, text: str, baseline: str) -> GateResult:
        """The verdict on a case that no test carried."""
        judged = self._without_verdict(case, text, baseline, (text,))
        return replace(judged, cause=UNREACHED)

    def _with_acceptances(self, result: GateResult) -> GateResult:
        """The verdict with what the project accepts of it."""
        return self._acceptances.applied(
            result, strict=self._options.gate_strict, case_ids=self._case_ids
        )

    @cached_property
    def _acceptances(self) -> Acceptances:
        return load_acceptances(self._options.accepted, self._bench.config.rootpath)

    @property
    def _case_ids(self) -> frozenset[str]:
        """Ids of every case of the run, selected or not."""
        plans = (plan for _, plan in self._bench.requests.values())
        planned = {entry.case.case_id for plan in plans for entry in plan.entries}
        return frozenset(planned | self._made | {case_id for case_id, _ in self._gone})

    def _note(self, key: Key, result: GateResult) -> None:
        earlier = self._results.get(key)
        if earlier is not None and earlier.baseline != result.baseline:
            # Two gates at once: both verdicts stand in the document.
            key = (f"{key[0]} against {result.baseline}", key[1])
        self._results[key] = result

    def _store(self) -> None:
        """Keep the verdicts so far on disk: a killed run loses none."""
        folder = self._bench.folder
        if folder is None:
            return
        try:
            folder.update(
                replace(self._bench.execution.header, gate=self.results, unnamed=self.unnamed)
            )
        except OrtbenchError as error:
            self._bench.warn(str(error))

    # -- after the last one -------------------------------------------------------------------

    def settle(self, planned: Planned, why: str) -> Verdict | None:
        """Give a verdict to a case that no test carried, so that the document has one.

        Without one the run would count as one that no gate has anything against, and the next run
        be compared with what is worse in it.
        """
        case, key = planned.case, planned.case.key
        # No acceptance covers what was not judged, so it is a failure without a finding.
        text = f"not judged: {why}"
        against = self._against is not None and self._against.has(key)
        if against:
            self._note(key, self._unreached(case, text, self._options.against))
        known = self._bench.known(planned)
        if known is not None and known.failure is None:
            results = self._judge_by(planned, [self._stored] if self._stored else [])
            for result in results:
                self._note(key, result)
            return None if against else self._verdict(results)
        if self._stored is not None and self._stored.result(key) is not None:
            self._note(key, self._unreached(case, text, self._options.baseline))
        return None

    def problems(self) -> list[str]:
        """What fails the run though no case of it was judged; nothing if it was refused already."""
        if self._refused:
            return []
        if self._against is None and self._stored is not None and not self._stored.is_there:
            return []
        if any(result.compares or result.removed for result in self.results):
            return []
        why = self._against.why_nothing() if self._against is not None else ""
        return [": ".join(filter(None, ("a gate was requested, but nothing was compared", why)))]

    def remarks(self) -> list[str]:
        """What the project accepts though nothing of it was found."""
        if self._refused:
            return []
        left = [] if self._stored is None else self._stored.left_of_made()
        return [*left, *self._acceptances.remarks(self.results, self._case_ids)]

    def results_of(self, planned: Planned) -> list[GateResult]:
        """The verdicts on a case, against the other side before the one against a stored run."""
        case_id, runtime = planned.case.key
        return [
            result
            for result in self._results.values()
            if (result.case_id, result.runtime) == (case_id, runtime)
        ]

    def close(self) -> None:
        """Remove what was written."""
        if self._against is not None:
            self._against.close()


def _marked(item: pytest.Item) -> tuple[Rule, ...]:
    """What the markers of a test say of the gate."""
    return marker_of(item).gate


class InconclusiveGate(pytest.PytestWarning):
    """A gate could not decide; with ``--ort-gate-strict`` it fails instead."""


def warn(item: pytest.Item, text: str) -> None:
    """Show a warning in pytest's summary, past all filters.

    A project that turns warnings into errors would otherwise have its merges blocked by noise,
    which is what --ort-gate-strict is there to ask for.
    """
    path, line, _ = item.location
    message = warnings.WarningMessage(
        message=InconclusiveGate(text),
        category=InconclusiveGate,
        filename=path,
        lineno=(line or 0) + 1,
    )
    item.ihook.pytest_warning_recorded.call_historic(
        kwargs={
            "warning_message": message,
            "nodeid": item.nodeid,
            "when": "runtest",
            "location": None,
        }
    )
