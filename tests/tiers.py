"""The three tiers of tests, and what holds a unit test to its own.

*unit*: no process is started and no model is run. *live*: real workers, real runs of pytest.
*heavy*: other frameworks, large models, hundreds of trials; left out unless ``-m`` names them.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

UNIT, LIVE, HEAVY, TIMED = "unit", "live", "heavy", "timed"
MEANINGS = {
    UNIT: "starts no process and runs no model (whatever is not marked as another tier)",
    LIVE: "starts real workers, other processes or runs of pytest, runs a model, or takes seconds",
    HEAVY: "takes minutes, gigabytes or other frameworks; left out unless -m names it",
    TIMED: "measures something that work beside it would change: runs alone, after the others",
}

#: Fixtures that start something: whoever uses one is live, or heavy.
LIVE_FIXTURES = frozenset({"launcher", "pytester"})
HEAVY_FIXTURES = frozenset({"distribution"})

#: What Python reports when a process is started (see ``sys.audit``).
_STARTS = frozenset(
    {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"}
)


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test: that of its marker, else that of its fixtures."""
    for tier in (HEAVY, LIVE):
        if item.get_closest_marker(tier):
            return tier
    fixtures = set(getattr(item, "fixturenames", ()))
    if HEAVY_FIXTURES & fixtures:
        return HEAVY
    return LIVE if LIVE_FIXTURES & fixtures else UNIT


class Forbidden(AssertionError):
    """A unit test started a process or ran a model."""


class Guard:
    """Forbids processes and sessions of ONNX Runtime while a unit test runs."""

    def __init__(self) -> None:
        self._watching = False
        self._started: list[str] = []

    def install(self) -> None:
        """Listen for what this process starts; this can't be undone."""
        sys.addaudithook(self._heard)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        """Watch what fixtures start."""
        with self._watch(item):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Watch what the test starts."""
        with self._watch(item):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        """Watch what the end of the test starts."""
        with self._watch(item):
            return (yield)

    @contextmanager
    def _watch(self, item: pytest.Item) -> Iterator[None]:
        """Fail a unit test that starts something, also where the error was caught."""
        if tier_of(item) != UNIT:
            yield
            return
        self._forbid_sessions()
        self._started.clear()
        self._watching = True
        try:
            yield
        finally:
            self._watching = False
        if self._started:
            raise Forbidden(_refusal(self._started[0]))

    def _heard(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._watching and event in _STARTS:
            self._refuse(f"{event}: {arguments[:2]}")

    def _forbid_sessions(self) -> None:
        """Make ONNX Runtime's sessions ask first. It may be imported only now."""
        import onnxruntime

        session = onnxruntime.InferenceSession
        if getattr(session.__init__, "asks", None) is self:
            return
        original = session.__init__

        def init(instance: object, *arguments: object, **keywords: object) -> None:
            if self._watching:
                self._refuse("onnxruntime.InferenceSession")
            original(instance, *arguments, **keywords)

        init.asks = self  # type: ignore[attr-defined]  # a mark, so that it is wrapped once
        session.__init__ = init

    def _refuse(self, start: str) -> None:
        self._started.append(start)
        raise Forbidden(_refusal(start))


def _refusal(start: str) -> str:
    return f"a unit test must not start anything, mark it 'live': {start}"
