"""A long closed loop of inferences, with a look at resident memory now and then."""

from __future__ import annotations

import gc
import itertools
import time
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.soak.questions import SoakFor
from pytest_ortbench.worker.calling import call_of
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.memory import best_source

if TYPE_CHECKING:
    from pytest_ortbench.worker.measured import MeasuredCase

#: Readings at most; every few seconds in a long soak is plenty.
_READINGS = 600
#: Room for them and for some more, since the last one may come early.
_ROOM = 2 * _READINGS
#: And no more often than this: reading takes time from the loop.
_SHORTEST_S = 0.02


def soak_case(question: SoakFor, measured: MeasuredCase) -> Soak:
    """Run on and on, through all shapes in turn if any, and watch resident memory."""
    measured.enter("soak")
    case, source = measured.case, best_source()
    loop, duration = measured.live_loop(), array("q", bytes(8 * case.callers))
    infer: Callable[[], object] = lambda: loop(duration)  # noqa: E731 - one of two
    if question.shapes:
        feeds = [make_feeds(specs, seed=case.seed) for specs in question.shapes]
        infer = in_turn([call_of(case, measured.live(), shape) for shape in feeds])
    return soak(
        infer,
        lambda: source.read().now,
        seconds=question.seconds,
        source=source.name,
        at_a_time=1 if question.shapes else case.callers,
        shapes=max(1, len(question.shapes)),
    )


def in_turn(calls: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """Return a function that makes one call after the other, and begins again after the last."""
    after = itertools.cycle(calls)
    return lambda: next(after)()


def soak(
    infer: Callable[[], object],
    resident: Callable[[], int | None],
    *,
    seconds: float,
    source: str,
    at_a_time: int = 1,
    shapes: int = 1,
    clock: Callable[[], float] = time.monotonic,
) -> Soak:
    """Run inferences for some time and note the resident size.

    Args:
        infer: Runs one inference to its end, or ``at_a_time`` side by side.
        resident: Reads the resident size in bytes; ``None`` where it can't be read.
        seconds: How long.
        source: How the size is read.
        at_a_time: Inferences of one call.
        shapes: Different shapes that they go through.
        clock: Seconds; a test sets its own time.
    """
    if resident() is None:
        return Soak(reason=f"resident memory can't be read ({source})")
    every = max(_SHORTEST_S, seconds / _READINGS)
    began = clock()
    due = began
    done = 0
    # Touched before anything is read: what is noted here must not look like growth.
    at, sizes = (array("q", bytes(8 * _ROOM)) for _ in range(2))
    count = 0
    while True:
        infer()
        done += at_a_time
        now = clock()
        if now < due:
            continue
        # What only waits for Python's garbage collector is no leak.
        gc.collect()
        size = resident()
        if size is not None and count < _ROOM:
            at[count], sizes[count] = done, size
            count += 1
        if now - began >= seconds:
            return Soak(
                seconds=now - began,
                inferences=done,
                at=tuple(at[:count]),
                resident_bytes=tuple(sizes[:count]),
                source=source,
                shapes=shapes,
            )
        # The loop ends at a reading, so one is due at its end.
        due = min(now + every, began + seconds)
