"""What self-checks ask a worker about its open case."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.schema.question import CaseQuestion
from pytest_ortbench.selfcheck.facts import (
    Evaluated,
    EventTimes,
    LoopTimes,
    MeteredMemory,
    ProfiledNodes,
    Replayed,
    SeenClocks,
    SeenDevice,
    WaitTimes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBare(CaseQuestion[LoopTimes]):
    """Time ``iterations`` inferences by the timed loop and by a bare one, in turns.

    Attributes:
        rounds: How often.
        iterations: Inferences of a loop.
        within_s: After so long it is enough, if there are ``least`` rounds.
        least: Rounds that there must be.
    """

    rounds: int
    iterations: int
    within_s: float
    least: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOutWaiting(CaseQuestion[WaitTimes]):
    """Run loops with the synchronisation and without, and say what was left to wait for."""

    rounds: int
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeByEvents(CaseQuestion[EventTimes]):
    """Time inferences by the loop and by events of the device, on a session of its own."""

    rounds: int
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountProfile(CaseQuestion[ProfiledNodes]):
    """Profile one run of a session of its own, and count its nodes by provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeMemory(CaseQuestion[MeteredMemory]):
    """Take so much memory of host and device, and say what the meters show of it."""

    bytes_taken: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluate(CaseQuestion[Evaluated]):
    """Feed values to the only input, and return the first output."""

    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay(CaseQuestion[Replayed]):
    """Record a graph on a session of its own, put other values in place, and replay it.

    Attributes:
        recorded: Values of the only input while the graph is recorded.
        given: Those that are put in place of them.
    """

    recorded: tuple[float, ...]
    given: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeeDevice(CaseQuestion[SeenDevice]):
    """Say which device is asked for, read, and computed on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchClocks(CaseQuestion[SeenClocks]):
    """Run inferences for so long, and read the clocks of the CPUs meanwhile."""

    load_s: float
