"""Leaks: what is one, and what only looks like one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from scipy.stats import theilslopes

from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.analysis.memory_growth import Growth, theil_sen
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.soak.numbers import growth
from pytest_ortbench.passes.soak.report import soak_lines
from pytest_ortbench.report.entries import shown_run
from tests.results_factory import make_result, make_run

MB = 1_000_000


def soaked(size_of: Callable[[int], float], readings: int = 200, each: int = 50) -> Soak:
    at = tuple(each * index for index in range(1, readings + 1))
    sizes = tuple(round(size_of(index)) for index in at)
    return Soak(seconds=600.0, inferences=at[-1], at=at, resident_bytes=sizes, source="VmRSS")


def of(soak: Soak) -> Growth:
    found = growth(soak)
    assert isinstance(found, Growth)
    return found


def test_steady_growth_is_a_leak_with_its_rate() -> None:
    noise = random.Random(5)
    found = of(soaked(lambda index: 100 * MB + 2000 * index + noise.gauss(0, 200_000)))
    assert found.leaks
    assert found.verdict == "it keeps growing: a leak"
    assert found.low < 2 * MB < found.high
    assert found.per_thousand == pytest.approx(2 * MB, rel=0.05)
    assert found.total_bytes == pytest.approx(2000 * 7450, rel=0.05)


@pytest.mark.parametrize("done", [0, 100])
def test_readings_between_which_nothing_was_done_are_no_evidence(done: int) -> None:
    """From some reading on nothing ran: whether memory grows by what runs can't be told."""
    soak = soaked(lambda index: 100 * MB + 2000 * index)
    at = tuple(min(number, soak.at[done]) for number in soak.at)
    assert isinstance(growth(replace(soak, at=at)), str)


def test_steps_of_a_leak_in_pages_are_found() -> None:
    assert of(soaked(lambda index: 100 * MB + index // 400 * MB)).leaks


def wandering(seed: int) -> Callable[[int], float]:
    """Goes back to where it was, a little each time."""
    draw, level = random.Random(seed), 0.0

    def size(index: int) -> float:
        nonlocal level
        level = 0.8 * level + draw.gauss(0, 300_000)
        return 100 * MB + level

    return size


@pytest.mark.parametrize("seed", range(40))
def test_memory_that_wanders_is_no_leak(seed: int) -> None:
    assert not of(soaked(wandering(seed))).leaks


def test_a_constant_is_no_leak() -> None:
    found = of(soaked(lambda _: 100 * MB))
    assert (found.per_thousand, found.low, found.high, found.leaks) == (0, 0, 0, False)
    assert found.verdict == "no growth was found"


@pytest.mark.parametrize("until", [1000, 4000, 6000])
def test_growth_that_ends_in_a_plateau_is_no_leak(until: int) -> None:
    """Sessions created and destroyed, or an arena that finds its size: it wanders, then stays."""
    assert not of(soaked(lambda index: 100 * MB + 5000 * min(index, until))).leaks


def test_steps_that_become_rarer_are_no_leak() -> None:
    # An arena doubles: at 100, 200, 400, … inferences.
    assert not of(soaked(lambda index: 100 * MB + 4 * MB * (index // 100).bit_length())).leaks


def test_growth_below_what_an_allocator_does_is_left_open() -> None:
    soak = soaked(lambda index: 100 * MB + 10 * index)
    found = of(soak)
    assert found.leaks is None
    assert found.verdict == "growth is too small for a verdict: use a longer --ort-soak"
    # The rate is known; that it is no leak is not.
    summary = summarise(replace(make_result(), soak=soak))
    assert summary.quantities["memory_growth"].value == pytest.approx(10_000)
    assert summary.missing["leaks"] == found.verdict
    assert "leaks" not in summary.quantities
    [outcome] = check_limits([parse_limit("leaks <= 0", place="here")], summary)
    assert outcome.judgement.is_unjudged
    assert found.verdict in outcome.judgement.reason


def in_order(*ranks: int) -> list[tuple[float, float]]:
    """Points one apart, their sizes in this order."""
    return [(float(at), float(rank)) for at, rank in enumerate(ranks)]


def test_the_interval_of_the_slope_is_that_of_sen() -> None:
    # Of 28 slopes the 6th from either end: five pairs out of order (Kendall's S = 18, a chance of
    # 1.6 %) are growth, six (S = 16, 3.1 %) are not.
    five, six = in_order(6, 1, 2, 3, 4, 5, 7, 8), in_order(7, 1, 2, 3, 4, 5, 6, 8)
    assert theil_sen(five)[1] == pytest.approx(1 / 6)
    assert theil_sen(six)[1] == pytest.approx(-1 / 6)
    # What goes down is the mirror image.
    down = [(at, -size) for at, size in five]
    assert theil_sen(down) == tuple(-end for end in (theil_sen(five)[i] for i in (0, 2, 1)))


@pytest.mark.parametrize("count", [8, 16])
def test_the_interval_of_the_slope_against_scipy(count: int) -> None:
    draw = random.Random(count)
    for _ in range(20):
        points = [(float(at), at + draw.gauss(0, 3)) for at in range(count)]
        expected = theilslopes([y for _, y in points], [x for x, _ in points])
        assert theil_sen(points) == pytest.approx((expected[0], expected[2], expected[3]))


def test_too_few_points_bound_no_slope() -> None:
    # Of the six orders of three points one goes up all the way: too many for 2.5 %.
    assert theil_sen(in_order(1, 2, 3)) == (1.0, -math.inf, math.inf)


def test_too_few_readings_allow_no_verdict() -> None:
    assert growth(soaked(lambda index: 100 * MB + 2000 * index, readings=63)) == (
        "63 readings in 600 s, but 64 are needed: use a longer --ort-soak"
    )
    assert growth(Soak(reason="timeout: too slow")) == "timeout: too slow"


def test_of_several_shapes_each_comes_before_anything_counts() -> None:
    steady = soaked(lambda index: 100 * MB + 2000 * index)
    # A quarter of 10,000 inferences does not count, or as many as there are shapes.
    assert of(steady).total_bytes == pytest.approx(2000 * 7450)
    assert of(replace(steady, shapes=300)).total_bytes == pytest.approx(2000 * 7450)
    assert of(replace(steady, shapes=3300)).total_bytes == pytest.approx(2000 * 6700)
    assert growth(replace(steady, shapes=3400)) == (
        "10000 inferences over 3400 shapes, but each shape must come 3 times: use a longer "
        "--ort-soak"
    )


def test_a_leak_over_several_shapes_is_found() -> None:
    assert of(replace(soaked(lambda index: 100 * MB + 2000 * index), shapes=300)).leaks


def test_too_few_readings_after_a_slow_first_round_allow_no_verdict() -> None:
    soak = soaked(lambda _: 100 * MB, readings=100, each=1)
    slow = (*range(1, 81), *range(200, 220))
    # Every shape has come with the 73rd inference, the 73rd reading.
    found = growth(replace(soak, at=slow, inferences=slow[-1], shapes=73))
    assert found == (
        "28 readings after the first inference of every shape, but 32 are needed: use a longer "
        "--ort-soak"
    )


def test_lines() -> None:
    leaking = replace(make_result(), soak=soaked(lambda index: 100 * MB + 2000 * index))
    broken = replace(make_result(), soak=Soak(reason="timeout: too slow"))
    blank, first, second = soak_lines(shown_run(make_run([leaking, broken, make_result()])))
    name = leaking.case.case_id
    assert blank == ""
    assert first == (
        f"soak of {name}: +2.00 MB per thousand inferences [+2.00 MB, +2.00 MB], 10000 in 600 s: "
        "it keeps growing: a leak"
    )
    assert second == f"soak of {name}: no verdict: timeout: too slow"
    assert soak_lines(shown_run(make_run([make_result()]))) == []
