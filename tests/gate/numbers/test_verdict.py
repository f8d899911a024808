"""Which statistic decides, and what the other one may say to it."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest

from pytest_ortbench.core.gate import PairedLaunch
from pytest_ortbench.core.outcome import Flag
from pytest_ortbench.core.run import Machine
from pytest_ortbench.gate.numbers.looks import SLOWER, take_looks
from pytest_ortbench.gate.numbers.verdict import (
    FLOOR,
    TYPICAL,
    among_callers,
    choose_statistic,
    confirms,
    decide,
    machine_class,
    statistics,
)

SHARED = machine_class(Machine(host="h", stable={"virtualisation": "KVM"}))
DEDICATED = machine_class(
    Machine(host="h", stable={"virtualisation": "none seen", "cpu_quota": "none"})
)
BUSY = (Flag(name="CPU-SHARE", detail="in 60 % of the blocks"),)
ROUNDS = 20


def launch(draw: random.Random, *, slower: float = 0.0, floor: float, typical: float):
    """A launch of blocks of one inference.

    Args:
        draw: Draws the noise.
        slower: Slowdown of the contender.
        floor: By how much the fastest block of a side sticks out below its second fastest.
        typical: Scatter of a round's ratio.
    """
    common = [draw.uniform(2e7, 4e7) for _ in range(ROUNDS)]
    baseline = [time * (1 + draw.gauss(0, typical)) for time in common]
    contender = [time * (1 + draw.gauss(0, typical)) * (1 + slower) for time in common]
    for times, factor in ((baseline, 1.0), (contender, 1 + slower)):
        times[draw.randrange(ROUNDS)] = 2e7 * factor * (1 - abs(draw.gauss(0, floor)))
        times[draw.randrange(ROUNDS)] = 2e7 * factor
    sides = [tuple(map(round, times)) for times in (baseline, contender)]
    return PairedLaunch(
        seed=0,
        iterations=1,
        warm_up_runs=9,
        baseline_min_ns=sides[0],
        contender_min_ns=sides[1],
        baseline_median_ns=tuple(map(float, sides[0])),
        contender_median_ns=tuple(map(float, sides[1])),
    )


def launches(count: int = 20, *, seed: int = 0, **noise: float) -> list[PairedLaunch]:
    draw = random.Random(seed)
    return [launch(draw, **noise) for _ in range(count)]


CONTENDED = {"floor": 0.3, "typical": 0.02}
QUIET = {"floor": 0.001, "typical": 0.02}


def test_the_floor_decides_unless_it_is_much_less_certain():
    assert choose_statistic(SHARED, launches(**QUIET)).decides == FLOOR
    chosen = choose_statistic(SHARED, launches(**CONTENDED))
    assert chosen.decides == TYPICAL
    # What matters stays the same, whichever statistic shows it.
    assert chosen.plan.margin == SHARED.plan.margin == 0.03
    assert chosen.plan.looks == SHARED.plan.looks


def test_it_is_chosen_by_the_launches_of_the_first_look_and_never_again():
    contended, quiet = launches(8, **CONTENDED), launches(12, **QUIET)
    assert choose_statistic(SHARED, contended[:7]).decides == FLOOR
    assert choose_statistic(SHARED, [*contended, *quiet]).decides == TYPICAL
    assert choose_statistic(SHARED, [*quiet, *contended]).decides == FLOOR


def test_a_dedicated_machine_and_a_margin_of_ones_own():
    assert choose_statistic(DEDICATED, launches(**CONTENDED)) == DEDICATED
    own = machine_class(Machine(host="h", stable={"virtualisation": "KVM"}), 0.07)
    assert choose_statistic(own, launches(**CONTENDED)).plan.margin == 0.07


@pytest.mark.parametrize(("slower", "verdict"), [(0.0, "same"), (0.06, "slower")])
def test_where_the_floor_can_not_tell_the_typical_contrast_does(slower: float, verdict: str):
    made = launches(slower=slower, **CONTENDED)
    assert decide(made, SHARED, flags=BUSY).verdict == "inconclusive"
    decided = decide(made, choose_statistic(SHARED, made), flags=BUSY)
    assert decided.verdict == verdict
    assert decided.contrasts[0].statistic == TYPICAL
    assert decided.contrasts[0].effect == pytest.approx(slower, abs=0.01)
    assert decided.contrasts[1].statistic == FLOOR


def test_choosing_keeps_the_size_of_the_test():
    """Sides that are equal, and exchanged at random; no launch is like another."""
    draw = random.Random(3)
    trials, alarms, typical = 1500, 0, 0
    for _ in range(trials):
        made, floor = [], draw.uniform(0, 0.05)
        for _ in range(20):
            # Both statistics scatter by more than the margin, so that the margin saves nobody.
            one = launch(draw, slower=draw.gauss(0, 0.12), floor=floor, typical=0.06)
            if draw.random() < 0.5:
                one = dataclasses.replace(
                    one,
                    baseline_min_ns=one.contender_min_ns,
                    contender_min_ns=one.baseline_min_ns,
                    baseline_median_ns=one.contender_median_ns,
                    contender_median_ns=one.baseline_median_ns,
                )
            made.append(one)
        profile = choose_statistic(SHARED, made)
        typical += profile.decides == TYPICAL
        alarms += take_looks(statistics(made)[profile.decides], profile.plan).verdict == SLOWER
    # Both are chosen often enough to matter, and three standard deviations above 1 % are allowed.
    assert 0.2 < typical / trials < 0.99
    assert alarms / trials < 0.01 + 3 * (0.01 * 0.99 / trials) ** 0.5
    assert alarms > 0


def scattered(count: int, draw: random.Random, *, slower: float, by: float) -> list[PairedLaunch]:
    """Launches whose floors scatter from launch to launch."""
    return [
        launch(draw, slower=math.expm1(math.log1p(slower) + draw.gauss(0, by)), **QUIET)
        for _ in range(count)
    ]


def test_five_launches_of_one_sign_confirm_and_four_do_not():
    draw = random.Random(7)
    made = scattered(5, draw, slower=0.05, by=0.005)
    assert confirms((), SHARED) == (None, 5)
    assert confirms(made[:4], SHARED)[1] == 5
    contrast, needed = confirms(made, SHARED)
    assert (contrast.verdict, needed) == ("slower", None)
    faster = scattered(1, draw, slower=-0.05, by=0.0)
    _, needed = confirms([*made[:4], *faster], SHARED)
    assert needed == 8


def test_what_is_measured_again_rarely_confirms_an_accident():
    """Equal sides that scatter by twice the margin: 7 % at most."""
    draw = random.Random(9)
    trials, confirmed = 400, 0
    for _ in range(trials):
        made = scattered(20, draw, slower=0.0, by=0.06)
        needed: int | None = 0
        while needed is not None:
            contrast, needed = confirms(made[:needed], SHARED)
        confirmed += contrast.verdict == "slower"
    assert 0 < confirmed / trials < 0.07 + 3 * (0.07 * 0.93 / trials) ** 0.5


def with_floors(made: list[PairedLaunch], baseline: int, contender: int) -> list[PairedLaunch]:
    """The same launches with other fastest inferences, as if only those had changed."""
    return [
        dataclasses.replace(
            one,
            baseline_min_ns=(baseline, *(max(time, 2 * baseline) for time in one.baseline_min_ns)),
            contender_min_ns=(
                contender,
                *(max(time, 2 * contender) for time in one.contender_min_ns),
            ),
        )
        for one in made
    ]


def test_a_floor_that_excludes_the_slowdown_acquits():
    made = launches(slower=0.06, **CONTENDED)
    chosen = choose_statistic(SHARED, made)
    assert decide(made, chosen).verdict == "slower"
    decided = decide(with_floors(made, 10**6, 10**6), chosen)
    assert decided.verdict == "inconclusive"
    assert decided.hindrance is not None
    assert decided.hindrance.cause == "statistics"


def test_a_floor_that_shows_a_slowdown_is_not_overruled_by_a_busy_machine():
    made = launches(**CONTENDED)
    chosen = choose_statistic(SHARED, made)
    assert decide(made, chosen, flags=BUSY).verdict == "same"
    decided = decide(with_floors(made, 10**6, 11 * 10**5), chosen, flags=BUSY)
    assert decided.verdict == "inconclusive"
    assert decided.hindrance is not None
    assert decided.hindrance.cause == "statistics"


def test_among_callers_the_typical_contrast_decides_and_the_floor_says_nothing():
    assert among_callers(SHARED, 1) == SHARED
    several = among_callers(SHARED, 4)
    assert (several.decides, several.plan.margin) == (TYPICAL, 0.05)
    asked = machine_class(Machine(host="h", stable={"virtualisation": "KVM"}), 0.02)
    # What was asked for is not widened.
    assert among_callers(asked, 4, 0.02).plan.margin == 0.02
    assert among_callers(asked, 1, 0.02) == asked
    made = with_floors(launches(8, slower=0.08, **CONTENDED), 10_000_000, 10_000_000)
    assert decide(made, several).verdict == "slower"
    # With one caller a floor that shows no difference acquits.
    assert decide(made, choose_statistic(SHARED, made)).verdict != "slower"
