"""The ways of calling a session: one caller or several, bound or not, at once or asynchronously."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Case
from pytest_ortbench.worker.added_work import with_added_work
from pytest_ortbench.worker.async_calls import AsyncCalls
from pytest_ortbench.worker.binding import bind
from pytest_ortbench.worker.callers import Callers
from pytest_ortbench.worker.timing import time_bound_runs, time_runs

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

#: Fills an array with the nanoseconds of one inference each.
Loop = Callable[["array[int]"], None]
#: Keeps all callers busy until a function that is called after each inference, with the number of
#: its caller, says that it is enough.
Until = Callable[[Callable[[int], bool]], None]


def loop_of(case: Case, sessions: Sequence[InferenceSession], feeds: Mapping[str, object]) -> Loop:
    """Return the timed loop of a case over all its sessions and callers."""
    if case.call == "async":
        return AsyncCalls(sessions, feeds, case.concurrency)
    if case.callers == 1:
        return single_loop(case, sessions[0], feeds)
    return Callers(
        [call_of(case, session, feeds) for session in sessions for _ in range(case.concurrency)]
    )


def single_loop(case: Case, session: InferenceSession, feeds: Mapping[str, object]) -> Loop:
    """Return the timed loop of one caller on one session."""
    if case.io == "device":
        binding = bind(session, feeds, case.provider)
        return functools.partial(
            time_bound_runs, session.run_with_iobinding, binding, binding.synchronize_outputs
        )
    return functools.partial(time_runs, with_added_work(session.run, case.added_work), feeds)


def until_of(loop: Loop) -> Until:
    """Return what runs the inferences of a loop for as long as somebody wants."""
    if isinstance(loop, Callers | AsyncCalls):
        return loop.until
    duration = array("q", bytes(8))
    return alone(lambda: loop(duration))


def alone(infer: Callable[[], object]) -> Until:
    """Return the same for one caller."""

    def until(over: Callable[[int], bool]) -> None:
        infer()
        while not over(0):
            infer()

    return until


def call_of(
    case: Case, session: InferenceSession, feeds: Mapping[str, object]
) -> Callable[[], object]:
    """One caller's inference, its inputs and outputs being its own."""
    if case.io != "device":
        return functools.partial(session.run, None, feeds)
    binding = bind(session, feeds, case.provider)

    def run_bound() -> None:
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()

    return run_bound
