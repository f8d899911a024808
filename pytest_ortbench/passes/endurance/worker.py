"""Sends requests to a service at a steady rate, and goes on when it loses them."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING

from pytest_ortbench.core.failures import case_error
from pytest_ortbench.engines.seam import Sender
from pytest_ortbench.passes.endurance.facts import ADD_SERVICE, NO_SERVICE, SteadyLoad
from pytest_ortbench.passes.endurance.questions import KeepUnderLoad

if TYPE_CHECKING:
    from pytest_ortbench.worker.measured import MeasuredCase

#: After which a request has failed.
TIMEOUT_S = 10.0
_PERCENTS = (50.0, 90.0, 99.0)
#: For requests that are left at the end, beside their timeout.
_REST_S = 5.0


def keep_under_load(question: KeepUnderLoad, measured: MeasuredCase) -> SteadyLoad:
    """Send requests of the case, and return what became of them."""
    measured.enter("endurance")
    sender = measured.sender(
        timeout_s=TIMEOUT_S,
        percents=_PERCENTS,
        holds_failures=False,
        reference=question.reference,
    )
    if sender is None:
        raise case_error(NO_SERVICE, ADD_SERVICE, phase="endurance")
    return steady_load(
        sender,
        rate_per_s=question.rate_per_s,
        seconds=question.seconds,
        seed=measured.case.seed,
    )


def steady_load(sender: Sender, *, rate_per_s: float, seconds: float, seed: int) -> SteadyLoad:
    """Send requests as they arrive, at random, and close the sender.

    Args:
        sender: Sends one.
        rate_per_s: How many arrive a second.
        seconds: How long.
        seed: Of the arrivals.
    """
    draw, left = random.Random(seed), _Left()
    began_ns, due_s = time.monotonic_ns(), 0.0
    try:
        while (due_s := due_s + draw.expovariate(rate_per_s)) < seconds:
            time.sleep(max(0.0, due_s - (time.monotonic_ns() - began_ns) * 1e-9))
            left.add()
            sender.send(left.take, _nothing)
        ended_ns = time.monotonic_ns()
        left.wait(TIMEOUT_S + _REST_S)
    finally:
        exchanges = sender.close()
    return SteadyLoad(began_ns=began_ns, ended_ns=ended_ns, exchanges=exchanges)


class _Left:
    """Counts requests that are not over."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def add(self) -> None:
        with self._changed:
            self._count += 1

    def take(self, tokens: int) -> None:
        """Note that one is over, whatever became of it."""
        del tokens
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._count, seconds)


def _nothing() -> None:
    return None
