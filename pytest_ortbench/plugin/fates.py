"""What became of each test, as pytest and every other plugin see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

#: In words, by what pytest reports; nothing for a test that never ran.
_WORDS = {
    "": "did not run",
    "failed": "failed",
    "passed": "passed without measuring",
    "skipped": "skipped",
    "xfailed": "failed as expected (xfail)",
}


class Fates:
    """Hears the last word on every test: a plugin of pytest.

    Attributes:
        failed: Node ids of the tests that were reported as failed, in whatever phase.
        modules_skipped: Whether a module was skipped as a whole, whatever tests it holds.
    """

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.modules_skipped = False
        self._outcomes: dict[str, str] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Something was collected, or not."""
        self.modules_skipped = self.modules_skipped or report.skipped

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

    def told(self, nodeids: list[str]) -> str:
        """Say what became of some tests, those of one fate together."""
        fates: dict[str, list[str]] = {}
        for nodeid in nodeids:
            fates.setdefault(self._outcomes.get(nodeid, ""), []).append(nodeid)
        return ", ".join(
            f"{of_fate[0]}{f' and {len(of_fate) - 1} more' if len(of_fate) > 1 else ''} "
            f"{_WORDS.get(fate, fate)}"
            for fate, of_fate in fates.items()
        )
