"""What each selected case must be held to, and which of its tests it was held to it in.

A limit of the command line or of an ini file belongs to a case, and so does the verdict of a gate.
Neither belongs to one test: whichever test of the case reaches its end carries them all, once. It
is ``test_latency`` as long as that is still to come, since a reader looks for them there. What no
test has carried when the run is over fails the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.core.judgement import Judgement
    from pytest_ortbench.planning.matrix import Planned
    from pytest_ortbench.plugin.bench import Bench

Key = tuple[str, str]

#: The test that carries what its case is held to while it is still to come; else any.
_PREFERRED = "test_latency"

#: So many cases are named one by one; the rest is counted.
_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one judge says of one case.

    Attributes:
        judgement: What it comes to.
        heading: What goes before the problems: ``limits exceeded``.
        problems: What fails the test that carries it, one line each.
        remark: What is said at the end of the run though nothing fails; empty for nothing.
    """

    judgement: Judgement
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
        return case.problems

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
        found: list[str] = []
        for key, case in self._cases.items():
            name = self._bench.name_of(case.planned)
            if case.carrier not in self._bench.fates.failed:
                # Marked xfail, or told otherwise by a plugin: what a case is held to stays.
                found += [
                    f"{name}: {text}\n  {case.carrier} carries it and was not reported as failed"
                    for text in case.problems
                ]
            for judge, verdict in self._settled.get(key, ()):
                if verdict is None:
                    owed = ", ".join(judge.owes(case.planned))
                    found.append(f"not judged: {owed} of {name}: {self._why(case)}")
                elif verdict.problems:
                    found.append(f"{name}: {verdict.text}")
        rest = len(found) - _LISTED
        return [*found[:_LISTED], f"{rest} more"] if rest > 0 else found

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
        return f"no test of it reached its end: {self._bench.fates.told(case.tests)}"


def is_preferred(item: pytest.Item) -> bool:
    """Whether a reader looks in this test for what its case is held to."""
    return str(getattr(item, "originalname", item.name)) == _PREFERRED
