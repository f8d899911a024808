"""What each selected case must be held to, and which of its tests it was held to it in.

A limit of the command line or of an ini file belongs to a case, and so does the verdict of a gate.
Neither belongs to one test: whichever test of the case reaches its end carries them all, once. It
is ``test_latency`` as long as that is still to come, since a reader looks for them there. What no
test has carried when the run is over fails the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_ortbench.analysis.inaccuracy import judge_accuracy
from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.core.case import Case, Key
from pytest_ortbench.core.complaint import GATE, LIMIT, OUTPUTS
from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged
from pytest_ortbench.core.patterned import fitting, refuse_unfitting, unfitting
from pytest_ortbench.passes.registry import can_have, metrics_beside
from pytest_ortbench.plugin.marked_tests import is_chosen_by_marker
from pytest_ortbench.plugin.measured import Measured

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.analysis.limits import LimitOutcome
    from pytest_ortbench.core.limits import CaseLimit, Limit
    from pytest_ortbench.core.outcome import CaseResult
    from pytest_ortbench.planning.matrix import Planned
    from pytest_ortbench.plugin.bench import Bench

#: Kind of what was not judged since no test carried it.
_UNREACHED = "unreached"

#: The test that carries what its case is held to while it is still to come; else any.
_PREFERRED = "test_latency"

#: So many cases are named one by one; the rest is counted.
_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one judge says of one case.

    Attributes:
        judgement: What it comes to.
        kind: What the problems are to a report: a kind of complaints.
        abouts: What of the case each problem is about, where it has a name.
        heading: What goes before the problems: ``limits exceeded``.
        problems: What fails the test that carries it, one line each.
        remark: What is said at the end of the run though nothing fails; empty for nothing.
    """

    judgement: Judgement
    kind: str = GATE
    abouts: tuple[str, ...] = ()
    heading: str = ""
    problems: tuple[str, ...] = ()
    remark: str = ""

    @property
    def text(self) -> str:
        """Heading and problems, one below the other."""
        return "\n".join((self.heading, *(f"  {line}" for line in self.problems)))


class Judge(Protocol):
    """Holds whole cases to something that was asked for."""

    def owes(self, planned: Planned) -> tuple[str, ...]:
        """Name what a case must be held to, in words; nothing where it is held to nothing."""

    def judge(self, item: pytest.Item, planned: Planned, /) -> Verdict:
        """Judge a case at the end of one of its tests; it may measure."""

    def settle(self, planned: Planned, why: str, /) -> Verdict | None:
        """Judge a case that no test carried, by what is known of it; ``None`` without evidence.

        Args:
            planned: The case.
            why: What became of its tests, for a verdict that must be written all the same.
        """


@dataclass(slots=True)
class _Case:
    """A selected case, its tests, and the verdicts on it.

    Attributes:
        planned: The case.
        to_come: Selected tests that are not over yet, in order, and whether each is preferred.
        tests: All selected tests of it.
        reached: Whether a test of it came to its end.
        carrier: The test that carries the verdicts.
        verdicts: What the judges said in that test; ``None`` before.
        told: Whether the carrying test was told in this call of it.
    """

    planned: Planned
    to_come: dict[str, bool] = field(default_factory=dict)
    tests: list[str] = field(default_factory=list)
    reached: bool = False
    carrier: str = ""
    verdicts: tuple[Verdict, ...] | None = None
    told: bool = False

    def waits_for_another(self, nodeid: str) -> bool:
        """Whether the preferred test is still to come, and is another one."""
        return any(better for other, better in self.to_come.items() if other != nodeid)

    @property
    def problems(self) -> list[str]:
        """What fails the carrying test, a block for each judge."""
        return [verdict.text for verdict in self.verdicts or () if verdict.problems]


class Judging:
    """Has every selected case judged once, and knows what was not.

    Args:
        bench: The run.
        judges: Who holds cases to something.
    """

    def __init__(self, bench: Bench, judges: Sequence[Judge]) -> None:
        self._bench = bench
        self._judges = judges
        self._cases: dict[Key, _Case] = {}
        self._settled: dict[Key, tuple[tuple[Judge, Verdict | None], ...]] = {}

    def assign(self, ours: Iterable[tuple[pytest.Item, Planned]]) -> None:
        """Note the selected tests of ours with their cases, in the order in which they run."""
        for item, planned in ours:
            case = self._cases.setdefault(planned.case.key, _Case(planned=planned))
            case.to_come[item.nodeid] = is_preferred(item)
            case.tests.append(item.nodeid)

    def owes(self, planned: Planned) -> tuple[str, ...]:
        """Name all that a case must be held to."""
        return tuple(text for judge in self._judges for text in judge.owes(planned))

    # -- one test -----------------------------------------------------------------------------

    def at_end(self, item: pytest.Item, planned: Planned) -> list[str]:
        """Judge the case of a test whose body came to its end, unless another test does.

        Returns:
            What the test fails with, a block of lines each.
        """
        case = self._cases.get(planned.case.key)
        if case is None:
            return []
        case.reached = True
        if case.verdicts is None and case.waits_for_another(item.nodeid):
            return []
        return self._carried(case, item)

    def left(self, item: pytest.Item, planned: Planned) -> None:
        """Note that a test is over."""
        case = self._cases.get(planned.case.key)
        if case is not None:
            case.to_come.pop(item.nodeid, None)

    def over(self, item: pytest.Item, planned: Planned) -> list[str]:
        """Judge the case of a test that is over, if no test that is left could.

        Returns:
            As :meth:`at_end`; nothing where the test was told already.
        """
        case = self._cases.get(planned.case.key)
        if case is None:
            return []
        self.left(item, planned)
        told, case.told = case.told, False
        last = case.verdicts is None and case.reached and not case.to_come
        again = case.verdicts is not None and case.carrier == item.nodeid and not told
        problems = self._carried(case, item) if last or again else []
        case.told = False
        return problems

    def _carried(self, case: _Case, item: pytest.Item) -> list[str]:
        """The problems of a case for its carrying test, which this one becomes if there is none.

        A test that is run again, since it failed, fails again.
        """
        if case.verdicts is None:
            owing = [judge for judge in self._judges if judge.owes(case.planned)]
            case.verdicts = tuple(judge.judge(item, case.planned) for judge in owing)
            case.carrier = item.nodeid
        if case.carrier != item.nodeid:
            return []
        case.told = True
        for verdict in case.verdicts:
            self._complain(item, case.planned, verdict)
        return case.problems

    def _complain(self, item: pytest.Item, planned: Planned, verdict: Verdict) -> None:
        """Have reports hear of what fails a test."""
        complaints = self._bench.complaints
        if verdict.problems and verdict.kind == GATE:
            complaints.carries_gate(item, [planned.case.key])
        elif verdict.problems:
            named = zip_longest(verdict.abouts, verdict.problems, fillvalue="")
            complaints.note(item, planned, verdict.kind, named)

    # -- after the last one -------------------------------------------------------------------

    def settle(self) -> None:
        """Judge what no test carried by what is known; nothing is measured for it."""
        for key, case in self._cases.items():
            if case.verdicts is None and key not in self._settled:
                why = self._why(case)
                owing = [judge for judge in self._judges if judge.owes(case.planned)]
                self._settled[key] = tuple(
                    (judge, judge.settle(case.planned, why)) for judge in owing
                )

    def problems(self) -> list[str]:
        """What fails the run though no test of it failed."""
        found = [text for _, text in self._unreported()]
        rest = len(found) - _LISTED
        return [*found[:_LISTED], f"{rest} more"] if rest > 0 else found

    def problems_beside_gate(self) -> list[str]:
        """Those that no verdict of the gate tells, of cases that a test carried."""
        return [text for kind, text in self._unreported() if kind not in (GATE, _UNREACHED)]

    def unreached(self) -> list[str]:
        """What cases are held to that no test carried."""
        return [text for kind, text in self._unreported() if kind == _UNREACHED]

    def _unreported(self) -> Iterator[tuple[str, str]]:
        """Yield the kind and text of what fails the run though no test of it failed."""
        for key, case in self._cases.items():
            name = self._bench.name_of(case.planned)
            if case.carrier not in self._bench.outcomes.failed:
                # Marked xfail, or told otherwise by a plugin: what a case is held to stays.
                for verdict in case.verdicts or ():
                    if verdict.problems:
                        told = f"{case.carrier} should have failed for this and did not"
                        yield verdict.kind, f"{name}: {verdict.text}\n  {told}"
            for judge, settled in self._settled.get(key, ()):
                if settled is None:
                    owed = ", ".join(judge.owes(case.planned))
                    yield _UNREACHED, f"not judged: {owed} of {name}: {self._why(case)}"
                elif settled.problems:
                    yield settled.kind, f"{name}: {settled.text}"

    def remarks(self) -> list[str]:
        """What was not judged for a good reason: the case can't run as asked."""
        return [
            f"{self._bench.name_of(case.planned)}: {verdict.remark}"
            for key, case in self._cases.items()
            for verdict in (*(case.verdicts or ()), *self._settled_of(key))
            if verdict.remark
        ]

    def _settled_of(self, key: Key) -> list[Verdict]:
        return [verdict for _, verdict in self._settled.get(key, ()) if verdict is not None]

    def _why(self, case: _Case) -> str:
        """What became of the tests of a case, none of which carried its verdicts."""
        return f"none of its tests reached its end: {self._bench.outcomes.in_words(case.tests)}"


def is_preferred(item: pytest.Item) -> bool:
    """Whether a reader looks in this test for what its case is held to."""
    return str(getattr(item, "originalname", item.name)) == _PREFERRED


_OF = "limit"
_EXPECTED = "expected outputs"


class AskedLimits:
    """Holds cases to the limits that option or ini key name.

    Args:
        bench: The run.
        limits: What was asked for.
        place: Where.
        insisting: Whether it was asked for this very run, and not for every run of a project: then
            a run that holds no case to them fails.

    Attributes:
        notes: Notices to show after collection.
    """

    def __init__(
        self, bench: Bench, limits: Sequence[CaseLimit], *, place: str, insisting: bool
    ) -> None:
        self.notes: list[str] = []
        self._bench = bench
        self._limits = limits
        self._place = place
        self._insisting = insisting
        self._case_ids: dict[str, None] = {}
        self._beside: dict[str, str] = {}
        self._judged: set[CaseLimit] = set()
        self._without: set[CaseLimit] = set()
        self._open = False

    def assign(self, cases: Sequence[Case], *, more_to_come: bool = False) -> None:
        """Note the selected cases.

        Args:
            cases: The cases.
            more_to_come: Whether tests make further models, whose cases a pattern may be about.

        Raises:
            UsageError: for a pattern of the command line that fits no case. One of an ini file
                may be meant for another run, which is said.
        """
        self._case_ids = dict.fromkeys(case.key[0] for case in cases)
        self._beside = metrics_beside(cases)
        self._open = more_to_come
        if not more_to_come:
            self.notes += refuse_unfitting(self._limits, self._case_ids, place=self._place)

    def admit(self, cases: Sequence[Case]) -> None:
        """Note cases that came while the run lasts."""
        self._case_ids.update(dict.fromkeys(case.key[0] for case in cases))
        self._beside |= metrics_beside(cases)

    def _fitting(self, planned: Planned) -> list[CaseLimit]:
        """The limits that are about a case; those of requests are not about an inference."""
        asked = fitting(self._limits, planned.case.key[0], self._case_ids)
        return [
            limit
            for limit in asked
            if can_have(limit.limit.metric.name, planned.case, self._beside)
        ]

    def of(self, planned: Planned) -> tuple[Limit, ...]:
        """Return the limits that a case must keep."""
        return tuple(asked.limit for asked in self._fitting(planned))

    def owes(self, planned: Planned) -> tuple[str, ...]:
        """Name the limits that a case must keep."""
        return tuple(f"'{limit.text}' ({self._place})" for limit in self.of(planned))

    def judge(self, _item: pytest.Item, planned: Planned) -> Verdict:
        """Hold a case to its limits; passes that they need are carried out."""
        result = self._bench.result(planned)
        if result.failure is not None:
            return self._unable(planned, result.failure.message)
        case = Measured(self._bench, [planned], ())
        return self._verdict(planned, case.hold(self.of(planned)))

    def settle(self, planned: Planned, _why: str) -> Verdict | None:
        """Hold a case to its limits by what was measured, if anything was."""
        result = self._bench.known(planned)
        if result is None:
            return None
        if result.failure is not None:
            return self._unable(planned, result.failure.message)
        return self._verdict(
            planned, check_limits(self.of(planned), self._bench.session.summary_of(result))
        )

    def _unable(self, planned: Planned, reason: str) -> Verdict:
        """A case that gave no number: what that means for its tests is said by the case itself."""
        self._without.update(self._fitting(planned))
        text = f"its limits were not judged: {reason}"
        return Verdict(judgement=unjudged(_OF, text), remark=text)

    def _verdict(self, planned: Planned, outcomes: Sequence[LimitOutcome]) -> Verdict:
        self._judged.update(self._fitting(planned))
        return Verdict(
            judgement=judgement_of_limits(outcomes),
            kind=LIMIT,
            abouts=broken_metrics(outcomes),
            heading="limits exceeded",
            problems=broken(outcomes),
        )

    def problems(self) -> list[str]:
        """What fails a run of which limits were asked and no case was held to some of them."""
        left = self._left()
        if self._open and self._insisting and self._case_ids:
            misfits = unfitting(self._limits, self._case_ids)
            left += [f"{self._place}: {text}" for text in misfits]
        return left if self._insisting or self._case_ids else []

    def remarks(self) -> list[str]:
        """Likewise what is only said: the limits of a project, in a run of its other tests.

        Nothing is said where no test of the run is ours, or ``-m`` chose by our marker.
        """
        chosen = is_chosen_by_marker(self._bench.config)
        missing = self._bench.skipped_files or (self._bench.collection.collected and not chosen)
        return [] if self._insisting or self._case_ids or not missing else self._left()

    def _left(self) -> list[str]:
        """The limits that no case was held to, and why; one that fits no case was said before."""
        if not self._limits:
            return []
        if not self._case_ids:
            texts = ", ".join(f"'{limit.text}'" for limit in self._limits)
            return [
                f"{self._place}: no case was checked against {texts}: {self._bench.why_no_case}"
            ]
        return [
            f"{self._place}: no case was checked against '{limit.text}': none of the cases that "
            "it applies to was measured"
            for limit in self._limits
            if limit in self._without and limit not in self._judged
        ]


class ExpectedOutputs:
    """Holds cases to the outputs that the user gave with their inputs.

    Args:
        bench: The run.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def owes(self, planned: Planned) -> tuple[str, ...]:
        """Name what is expected, if anything is."""
        expected = planned.case.expected
        return (f"the outputs expected in {Path(expected[0].path).name}",) if expected else ()

    def judge(self, _item: pytest.Item, planned: Planned) -> Verdict:
        """Compare the outputs of a case with those expected."""
        return self._verdict(planned, self._bench.result(planned))

    def settle(self, planned: Planned, _why: str) -> Verdict | None:
        """Likewise by what was measured, if anything was."""
        result = self._bench.known(planned)
        return None if result is None else self._verdict(planned, result)

    def _verdict(self, planned: Planned, result: CaseResult) -> Verdict:
        if result.failure is not None:
            text = f"its outputs were not compared: {result.failure.message}"
            return Verdict(judgement=unjudged(_EXPECTED, text), remark=text)
        judgement = judge_accuracy(result)
        if judgement.is_good:
            return Verdict(judgement=judgement)
        (owed,) = self.owes(planned)
        heading = (
            f"the model does not give {owed}" if judgement.is_bad else f"{owed} were not judged"
        )
        note = "" if result.accuracy is None else result.accuracy.note
        problems = tuple(text for text in (judgement.reason, note) if text)
        return Verdict(judgement=judgement, kind=OUTPUTS, heading=heading, problems=problems)


def judgement_of_limits(outcomes: Sequence[LimitOutcome]) -> Judgement:
    """Return one judgement for several limits: the worst of them."""
    if not outcomes:
        return unjudged(_OF, "it has no limits")
    exceeded = [each.judgement.reason for each in outcomes if each.judgement.is_bad]
    if exceeded:
        return bad(_OF, "; ".join(exceeded))
    unknown = [each.judgement.reason for each in outcomes if each.judgement.is_unjudged]
    return unjudged(_OF, "; ".join(unknown)) if unknown else good(_OF)


def broken(outcomes: Sequence[LimitOutcome]) -> tuple[str, ...]:
    """Say of each limit that is exceeded, or could not be judged, that it is."""
    return tuple(each.judgement.reason for each in outcomes if not each.judgement.is_good)


def broken_metrics(outcomes: Sequence[LimitOutcome]) -> tuple[str, ...]:
    """Name the metric of each limit that is exceeded, or could not be judged."""
    return tuple(each.limit.metric.name for each in outcomes if not each.judgement.is_good)
