"""A clock that tests move, so that a deadline passes when its test says so and never before."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.launch import pipes

#: How long a test waits for what must come, on a machine however busy.
_PATIENCE_S = 600.0


class MovedClock:
    """Takes the place of the clock by which the host knows that a deadline has passed."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def monotonic(self) -> float:
        """Return the time of this clock, in seconds."""
        return time.monotonic() + self.ahead_s

    def at(self, wanted: str, file: Path | None = None) -> Callable[[str], None]:
        """Return what hears of phases and lets every deadline pass when one is first entered.

        Args:
            wanted: The phase.
            file: What is waited for in that phase, if anything.
        """
        entered: list[str] = []

        def heard(phase: str) -> None:
            entered.append(phase)
            if phase != wanted or entered.count(phase) > 1:
                return
            until = time.monotonic() + _PATIENCE_S
            while file is not None and not (file.exists() and file.read_bytes()):
                assert time.monotonic() < until, f"{file} did not come"
                time.sleep(0.01)
            self.ahead_s = 1e6

        return heard


def moved_clock(monkeypatch: pytest.MonkeyPatch) -> MovedClock:
    """Return a clock that the pipes of this process go by from now on."""
    clock = MovedClock()
    monkeypatch.setattr(pipes, "time", clock)
    return clock
