"""Tests that carry the ``ortbench`` marker, what became of it, and of tests at all.

The marker does nothing where a test takes no case, and its limits belong to its own test.
"""

from __future__ import annotations

import re
import unittest
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

from pytest_ortbench.plugin.marker import AXES

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.core.limits import Limit
    from pytest_ortbench.core.outcome import Failure
    from pytest_ortbench.planning.matrix import Planned

_NAME = "ortbench"
#: Finds the name of fixture and marker in what a user wrote.
_NAMES_US = re.compile(rf"\b{_NAME}\b")

#: In words, by what pytest reports; nothing for a test that never ran.
_WORDS = {
    "": "did not run",
    "failed": "failed",
    "passed": "passed without a measurement",
    "skipped": "skipped",
    "xfailed": "failed as expected (xfail)",
}


class Outcomes:
    """Hears what became of each test, as pytest and every other plugin see it: a plugin of pytest.

    Attributes:
        failed: Node ids of the tests that were reported as failed, in whatever phase.
    """

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self._skipped: list[str] = []
        self._outcomes: dict[str, str] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Something was collected, or not."""
        if report.skipped:
            self._skipped.append(report.nodeid)

    def skipped_of_ours(self, root: Path) -> list[str]:
        """Return the files that were skipped as a whole and hold the name of the fixture.

        Args:
            root: Folder that node ids start from.
        """
        return [nodeid for nodeid in self._skipped if _names_us(root / nodeid)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test is over."""
        if report.failed:
            self.failed.add(report.nodeid)
        if report.failed or report.skipped:
            expected = hasattr(report, "wasxfail")
            self._outcomes[report.nodeid] = "xfailed" if expected else report.outcome
        elif report.when == "call":
            self._outcomes[report.nodeid] = report.outcome

    def expected_to_fail(self, nodeid: str) -> bool:
        """Whether a test failed and was marked to do so."""
        return self._outcomes.get(nodeid) == "xfailed"

    def in_words(self, nodeids: list[str]) -> str:
        """Say what became of some tests, those with one outcome together."""
        by_outcome: dict[str, list[str]] = {}
        for nodeid in nodeids:
            by_outcome.setdefault(self._outcomes.get(nodeid, ""), []).append(nodeid)
        return ", ".join(
            f"{tests[0]}{f' and {len(tests) - 1} more' if len(tests) > 1 else ''} "
            f"{_WORDS.get(outcome, outcome)}"
            for outcome, tests in by_outcome.items()
        )


class ToldFailures:
    """Knows in which test it was told why a case has no number, or a whole file none.

    Args:
        outcomes: What became of each test.
    """

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._told_in: dict[tuple[object, ...], str] = {}

    def told_in(self, planned: Planned, failure: Failure, nodeid: str) -> str:
        """Return the other test that failed for the same reason; empty if none did.

        That of a file that can't be read is one for all its cases; any other is one for its case.
        A test that fails as expected, or is run again, tells nobody.

        Args:
            planned: The case.
            failure: Why it has no number.
            nodeid: The test that is to tell it.
        """
        of_file = planned.refusal is not None and planned.refusal.kind == "error"
        reason = (
            planned.case.model.path if of_file else planned.case.key,
            failure.kind,
            failure.message,
        )
        told_in = self._told_in.get(reason, "")
        if told_in != nodeid and told_in in self._outcomes.failed:
            return told_in
        self._told_in[reason] = nodeid
        return ""


class MisplacedMarkers:
    """Knows the tests whose marker has no effect.

    A marker of a class or a module is meant for those of its tests that take the fixture; it is
    misplaced if none of them does.

    Attributes:
        messages: What to say of each of them, by node id; complete after collection.
    """

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}
        self._idle: dict[pytest.Item, set[object]] = {}
        self._useful: set[object] = set()
        self._is_settled = False
        self._written: dict[str, list[pytest.Mark]] = {}

    def note(self, item: pytest.Item) -> None:
        """Note a collected test, selected or not.

        What is made when collection is over is no test of the user: the item of a removed model
        has the marks of those that asked for it, to be selected by.
        """
        if self._is_settled:
            return
        owners: set[object] = {node for node, _ in item.iter_markers_with_node(_NAME)}
        takes = takes_case(item)
        if _is_unittest(item) and (takes or item in owners):
            self.messages[item.nodeid] = _message(item)
        elif takes:
            self._useful |= owners
            self._written[item.nodeid] = _written_on(item)
        elif item in owners:
            self.messages[item.nodeid] = _message(item)
        elif owners:
            self._idle[item] = owners

    def settle(self) -> None:
        """Find those whose class and module have no test that the marker is for."""
        for item, owners in self._idle.items():
            if not self._useful & owners:
                self.messages[item.nodeid] = _message(item)
        self._idle.clear()
        self._is_settled = True

    def check_axes(self, item: pytest.Item) -> None:
        """Note a selected test whose marker names axes where its cases were made already."""
        written = self._written.get(item.nodeid)
        if written is None:
            return
        late = [mark for mark in _own_marks(item) if mark not in written]
        axes = sorted({name for mark in late for name in mark.kwargs if name in AXES})
        if axes:
            self.messages[item.nodeid] = (
                f"{item.nodeid}: {', '.join(axes)} of an ortbench marker on a parameter, or added "
                "after collection, have no effect, because the cases were made before. Set "
                "the marker on the function, its class or its module"
            )

    def problems(self, outcomes: Outcomes) -> list[str]:
        """Those that were run and not reported as failed: marked xfail, or told otherwise."""
        return [
            message
            for nodeid, message in self.messages.items()
            if outcomes.expected_to_fail(nodeid) and nodeid not in outcomes.failed
        ]


class MarkedLimits:
    """Knows the selected tests with limits of their own, and which of them were held to these."""

    def __init__(self) -> None:
        self._left: dict[str, None] = {}

    def note(self, nodeid: str, limits: Sequence[Limit]) -> None:
        """Note a selected test with the limits of its markers."""
        if limits:
            self._left[nodeid] = None

    def held(self, nodeid: str) -> None:
        """Note that a test was held to its limits."""
        self._left.pop(nodeid, None)

    def remarks(self, outcomes: Outcomes) -> list[str]:
        """Say which tests were not held to theirs; one that failed is told already."""
        left = [nodeid for nodeid in self._left if nodeid not in outcomes.failed]
        return [f"limits of a marker were not judged: {outcomes.in_words(left)}"] if left else []


def _own_marks(item: pytest.Item) -> list[pytest.Mark]:
    return [mark for mark in item.own_markers if mark.name == _NAME]


def _written_on(item: pytest.Item) -> list[pytest.Mark]:
    """The markers of a test's function, without those of its parameters."""
    callspec = getattr(item, "callspec", None)
    of_parameters = () if callspec is None else callspec.marks
    return [mark for mark in _own_marks(item) if mark not in of_parameters]


def is_chosen_by_marker(config: pytest.Config) -> bool:
    """Whether ``-m`` names our marker, so that the user knows what he leaves out."""
    return _NAMES_US.search(config.getoption("markexpr")) is not None


def _names_us(path: Path) -> bool:
    """Whether a file of tests, or one of a package, holds the name of fixture and marker."""
    files = [path] if path.is_file() else list(path.rglob("*.py"))
    return any(_NAMES_US.search(_read(file)) for file in files)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def takes_case(item: pytest.Item) -> bool:
    """Whether a test takes the fixture: as an argument, through another fixture, or later."""
    callspec = getattr(item, "callspec", None)
    asked_later = callspec is not None and _NAME in callspec.params
    return asked_later or _NAME in getattr(item, "fixturenames", ())


def asks_while_it_runs(metafunc: pytest.Metafunc) -> bool:
    """Whether a marked test, or a fixture of it, names the fixture for ``getfixturevalue``."""
    if metafunc.definition.get_closest_marker(_NAME) is None:
        return False
    fixtures = metafunc.definition._fixtureinfo.name2fixturedefs
    functions = [metafunc.function]
    functions += [fixtures[name][-1].func for name in metafunc.fixturenames if fixtures.get(name)]
    return any(_NAME in _texts(getattr(function, "__code__", None)) for function in functions)


def _texts(code: CodeType | None) -> Iterator[str]:
    """Texts that stand in a function, and in functions inside of it."""
    for constant in () if code is None else code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, CodeType):
            yield from _texts(constant)


def _is_unittest(item: pytest.Item) -> bool:
    kind = getattr(item, "cls", None)
    return isinstance(kind, type) and issubclass(kind, unittest.TestCase)


def _message(item: pytest.Item) -> str:
    if _is_unittest(item):
        return (
            f"{item.nodeid}: ortbench does not work with unittest.TestCase, whose methods pytest "
            "runs once and gives no arguments. Write a function, or a method of a plain class, "
            "with 'ortbench' among its arguments"
        )
    if not hasattr(item, "function"):
        return (
            f"{item.nodeid}: the ortbench marker works on test functions of Python only, not on "
            f"a {type(item).__name__}"
        )
    return (
        f"{item.nodeid}: it has the ortbench marker but does not take the ortbench fixture, so "
        "nothing would be measured. Add 'ortbench' to its arguments, or remove the marker"
    )
