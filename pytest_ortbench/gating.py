"""The gate of a pytest run: which test carries the verdict of which case, and what comes of it.

Each case's verdict belongs to one test, whatever tests were selected: to ``test_latency`` of the
case if it is among them, else to the first one. So a gate is never on without deciding something.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.inconclusive import warn
from pytest_ortbench.marker import read_marker
from pytest_ortbench.other_side import OtherSide
from pytest_ortbench.stored_baseline import StoredBaseline
from pytest_ortbench.unfitting import refuse_unfitting

if TYPE_CHECKING:
    from pytest_ortbench.analysis.gate.acceptance import Acceptances
    from pytest_ortbench.analysis.gate.rules import CaseRules, Rule
    from pytest_ortbench.bench import Bench
    from pytest_ortbench.core.gate import GateResult
    from pytest_ortbench.core.limits import Limit
    from pytest_ortbench.plan.matrix import Plan, Planned
    from pytest_ortbench.plan.request import PlanRequest

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
        self._results: dict[Key, GateResult] = {}
        self._requests: dict[str, tuple[PlanRequest, Plan]] = {}
        self._against = OtherSide(bench) if bench.options.against else None
        self._stored = StoredBaseline(bench) if bench.options.baseline else None
        self._excused: set[Key] = set()
        self._skipped: set[str] = set()
        self._failed: set[str] = set()
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

        What the markers of any of its tests say of the gate holds for the case; where several set
        the same limit, that of the carrying test.

        Args:
            carriers: The selected tests of ours with their cases.

        Raises:
            UsageError: for a pattern of the command line that fits no case.
        """
        from pytest_ortbench.analysis.gate.rules import rules_for

        tests: dict[Key, list[tuple[pytest.Item, Planned]]] = {}
        for item, planned in carriers:
            tests.setdefault(planned.case.key, []).append((item, planned))
        case_ids = dict.fromkeys(case_id for case_id, _ in tests)
        self.notes += refuse_unfitting(self._rules, case_ids, place=self._rules_place)
        for key, found in tests.items():
            # The carrying test last: later rules replace earlier ones.
            found.sort(key=lambda test: _name(test[0]) == _CARRIER)
            if _name(found[-1][0]) != _CARRIER:
                found.append(found.pop(0))
            rules = [*self._rules, *(rule for item, _ in found for rule in _marked(item))]
            item, planned = found[-1]
            self._carried[key] = _Carried(
                nodeid=item.nodeid, planned=planned, rules=rules_for(key[0], rules, case_ids)
            )

    def limits_of(self, planned: Planned) -> tuple[Limit, ...]:
        """Absolute limits that a case is held to by its gate."""
        carried = self._carried.get(planned.case.key)
        return () if carried is None else carried.rules.limits

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
        _ = self._acceptances  # a fault of the file is known before anything is measured
        requests = list(self._requests.values())
        planned = {entry.case.key for _, plan in requests for entry in plan.entries}
        if self._stored is not None:
            self._results |= self._stored.vanished(requests, self._carried)
            self.notes += self._stored.notes
        if self._against is not None:
            from pytest_ortbench.engine.resolution import check_margins

            margins = {key[0]: carried.rules.margin for key, carried in self._carried.items()}
            check_margins(margins, place=self._rules_place)
            self._results |= self._against.find(requests, planned, self._carried)
            self.notes += self._against.notes

    @property
    def _rules_place(self) -> str:
        return self._options.places.get("gate", "--ort-gate")

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        from pytest_ortbench.analysis.gate.rules import parse_rules

        return parse_rules(self._options.gate, place=self._rules_place)

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
        if runs or (self._against is not None and self._against.runs(key)):
            text = f"the baseline runs, the contender does not: {result.failure.message}"
            judged = self._unjudged(key, f"status: measured → {result.status}", text)
            self._results[key] = judged
            if not judged.failures:
                return
            text = judged.failures[0]
            pytest.fail(f"{self._bench.name_of(planned)}: gate failed\n  {text}", pytrace=False)
        self._excused.add(key)

    def note_skipped(self, nodeid: str) -> None:
        """Remember that a test was skipped: if it carries a verdict, there is none."""
        self._skipped.add(nodeid)

    def note_failed(self, nodeid: str) -> None:
        """Remember that a test failed, which it may have done before its case was judged."""
        self._failed.add(nodeid)

    def _judge(self, planned: Planned) -> list[GateResult]:
        """Verdicts on one case: against the other side, and against a stored run."""
        rules = self._carried[planned.case.key].rules
        sources = (self._against, self._stored)
        judged = [source.judge(planned, rules) for source in sources if source is not None]
        found = [result for result in judged if result is not None]
        if not found and rules.limits:
            from pytest_ortbench.analysis.gate.stored import limits_alone

            found = [limits_alone(self._bench.result(planned), rules)]
        return [self._with_acceptances(result) for result in found]

    def _unjudged(self, key: Key, reason: str, failure: str) -> GateResult:
        """What stands for the verdict on a case that has none, and fails for that."""
        from pytest_ortbench.core.gate import GateFinding, GateResult

        judged = GateResult(
            case_id=key[0],
            runtime=key[1],
            baseline=self._options.against or self._options.baseline,
            verdict="incomparable",
            reason=reason,
        )
        finding = GateFinding(about="status", text=failure)
        return self._with_acceptances(judged.with_findings([finding]))

    def _with_acceptances(self, result: GateResult) -> GateResult:
        """The verdict with what the project accepts of it."""
        return self._acceptances.applied(
            result, strict=self._options.gate_strict, case_ids=self._case_ids
        )

    @cached_property
    def _acceptances(self) -> Acceptances:
        from pytest_ortbench.acceptances import load_acceptances

        return load_acceptances(self._options.accepted, self._bench.config.rootpath)

    @cached_property
    def _case_ids(self) -> frozenset[str]:
        """Ids of every case of the run, selected or not."""
        return frozenset(
            entry.case.case_id for _, plan in self._requests.values() for entry in plan.entries
        )

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
            folder.update(replace(self._bench.engine.header, gate=self.results))
        except OrtbenchError as error:
            self._bench.warn(str(error))

    # -- after the last one -------------------------------------------------------------------

    def settle(self) -> None:
        """Give a verdict to each case whose test failed before it was judged.

        Without one the run would count as one that no gate has anything against, and the next run
        be held against what is worse in it.
        """
        for key, carried in self._carried.items():
            if carried.nodeid not in self._failed or key in self._results:
                continue
            if self._against is not None and self._against.has(key):
                text = f"not judged: {carried.nodeid} failed before"
                self._results[key] = self._unjudged(key, text, text)
            elif self._stored is not None and self._bench.engine.known(carried.planned):
                stored = self._stored.judge(carried.planned, carried.rules)
                self._results |= {} if stored is None else {key: stored}

    def problems(self) -> list[str]:
        """What fails the run though no test of it failed; nothing where it was refused already."""
        if self._refused:
            return []
        gone = [text for result in self.results if result.removed for text in result.failures]
        gone += [
            f"{key[0]} was not judged: {carried.nodeid} carries its verdict and was skipped"
            for key, carried in self._carried.items()
            if carried.nodeid in self._skipped
            and key not in self._excused
            and key not in self._results
            and self._has_baseline(key)
        ]
        if self._against is None and self._stored is not None and not self._stored.is_there:
            return gone
        if not any(result.compares for result in self.results):
            gone.append("a gate was asked for, and nothing was compared")
        return gone

    def _has_baseline(self, key: Key) -> bool:
        stored = self._stored is not None and self._stored.result(key) is not None
        return stored or (self._against is not None and self._against.has(key))

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
        if self._against is not None:
            self._against.close()


def _name(item: pytest.Item) -> str:
    """The name of a test without its parameters."""
    return str(getattr(item, "originalname", item.name))


def _marked(item: pytest.Item) -> tuple[Rule, ...]:
    """What the markers of a test say of the gate."""
    return read_marker(item.iter_markers("ortbench"), place=item.nodeid).gate
