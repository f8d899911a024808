"""Pairs of requests, ours and by hand, in turns in one process.

Both sides are opened anew every few rounds and in random order, since where the weights of a model
lie moves its speed by more than what is looked for.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from fidelity import median_of

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.worker.memory import give_back_free_memory
from pytest_ortbench.worker.standard import opened_as

#: Carries out one request, and returns its tokens a second.
Rate = Callable[[], float]

_PAIRS_A_MODEL, _LEAST_PAIRS = 8, 40
_INTERVAL = "ours / by hand - 1, 95 % interval"
HEADER = f"{'engine':8} {'by hand':>12} {'pairs':>6} {_INTERVAL:>34}  goal"


@dataclass(frozen=True)
class Goal:
    """How near both sides are to be: ratios less one.

    ``seconds`` are the most for each engine; pairs end earlier when the half width of the interval
    is ``known_to``.
    """

    tolerance: float
    known_to: float
    seconds: float


def compare(goal: Goal, cases: Mapping[str, tuple[Case, Callable[[Case], Rate]]]) -> set[str]:
    """Compare each engine with its script by hand, print one row each, and return the verdicts."""
    verdicts = set()
    for engine, (case, by_hand) in cases.items():
        rate, ratios = _pairs(case, by_hand, goal)
        ratio = median_of(ratios)
        verdict = ratio.verdict(goal.tolerance)
        verdicts.add(verdict)
        interval = f"{ratio.value:+.2%} [{ratio.low:+.2%}, {ratio.high:+.2%}]"
        print(
            f"{engine:8} {rate:10.1f}/s {len(ratios):6} {interval:>34}  "
            f"{goal.tolerance * 100:.0f} %: {verdict}",
            flush=True,
        )
    return verdicts


def exit_status(verdicts: set[str]) -> int:
    """Return 1 if a goal is missed, 2 if one is undecided, else 0."""
    return 1 if "MISSED" in verdicts else 2 if "undecided" in verdicts else 0


def _pairs(
    case: Case, opened_by_hand: Callable[[Case], Rate], goal: Goal
) -> tuple[float, list[float]]:
    """Return the median rate by hand, and the ratio of both rates less one in every pair."""
    draw = random.Random(0)
    ends = time.monotonic() + goal.seconds
    ratios: list[float] = []
    rates: list[float] = []
    openers = [_ours, opened_by_hand]
    while len(ratios) < _LEAST_PAIRS or (
        time.monotonic() < ends and median_of(ratios).half_width > goal.known_to
    ):
        sides: dict[Callable[[Case], Rate], Rate] = {}
        for opener in draw.sample(openers, 2):
            # Ours gives back what is free before its baseline of memory is read: so does the other.
            give_back_free_memory()
            sides[opener] = opener(case)
        for side in sides.values():
            side()  # the first request of a model takes longer
        for _ in range(_PAIRS_A_MODEL):
            pair = {opener: sides[opener]() for opener in draw.sample(openers, 2)}
            ratios.append(pair[_ours] / pair[opened_by_hand] - 1)
            rates.append(pair[opened_by_hand])
        sides.clear()
        gc.collect()
    return float(np.median(rates)), ratios


def _ours(case: Case) -> Rate:
    measured = opened_as(case)(case, lambda _: None)
    measured.open()
    # Nothing by hand goes on with objects that are frozen.
    gc.unfreeze()
    (carry_out,) = measured.calls()

    def rate() -> float:
        request = carry_out()
        assert isinstance(request, GeneratedRequest)
        return (request.new_tokens - 1) / (sum(request.steps_ns[1:]) * 1e-9)

    return rate
