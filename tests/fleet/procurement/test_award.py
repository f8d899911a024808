"""How probable it is that one cost is below another, and what offers come to."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_ortbench.fleet.procurement.award import PROBABLE, Sureness, award_of, probably_below
from pytest_ortbench.fleet.procurement.figure import Figure
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms
from pytest_ortbench.fleet.procurement.ranking import tenders
from tests.fleet.numbers.runs import Span, case, run


def figure(value: float, low: float, high: float) -> Figure:
    return Figure(value=value, low=low, high=high)


def test_the_probability_is_that_of_two_normal_logarithms() -> None:
    # One standard deviation of each is a factor of e; they lie two factors of e apart. Two units
    # differ by 0.10, which adds next to nothing: 2 ÷ √2.01.
    end = math.exp(1.96)
    first, other = figure(1, 1 / end, end), figure(math.e**2, math.e**2 / end, math.e**2 * end)
    assert probably_below(first, other) == pytest.approx(0.9208, abs=1e-4)
    assert probably_below(other, first) == pytest.approx(1 - 0.9208, abs=1e-4)


def test_what_units_differ_by_is_never_left_out() -> None:
    assert probably_below(figure(5, 4, 6), figure(5, 4, 6)) == pytest.approx(0.5)
    # Exact, and 2 % apart: two units of one model differ by 8 % on average.
    near = probably_below(figure(100, 100, 100), figure(102, 102, 102))
    assert near == pytest.approx(0.578, abs=1e-3)
    far = probably_below(figure(100, 100, 100), figure(150, 150, 150))
    assert far is not None
    assert far > 0.9999


@pytest.mark.parametrize(
    "unknown",
    [figure(5, 4, math.inf), figure(0, 0, 1), replace(figure(5, 4, 6), is_open=True)],
)
def test_without_ends_there_is_no_probability(unknown: Figure) -> None:
    assert probably_below(unknown, figure(6, 5, 7)) is None


def machine(name: str, price: float) -> PricedMachine:
    return PricedMachine(name=name, host=name, price=price)


def offered(spread: float, *prices: float) -> tuple[Sureness, float | None, int]:
    names = [f"m{index}" for index in range(len(prices))]
    wide: Span = (100 / spread, 100, 100 * spread)
    runs = [run(name, case({"throughput": wide}, model="net")) for name in names]
    terms = Terms(machines=tuple(map(machine, names, prices)))
    (tender,) = tenders(runs, terms)
    award = award_of(tender)
    return award.kind, award.probability, len(award.level)


def test_what_offers_come_to() -> None:
    assert offered(1.01, 1000, 1500) == (Sureness.CLEAR, None, 1)
    kind, probability, level = offered(1.4, 1000, 1500)
    assert (kind, level) == (Sureness.PROBABLE, 2)
    assert probability is not None
    assert PROBABLE <= probability < 0.975
    kind, probability, level = offered(1.4, 1000, 1050)
    assert (kind, level) == (Sureness.TIE, 2)
    assert probability is not None
    assert 0.5 < probability < PROBABLE
    assert offered(1.4, 1000)[0] is Sureness.ALONE


def test_several_that_may_be_better_add_up() -> None:
    two, three = offered(1.4, 1000, 1500)[1], offered(1.4, 1000, 1500, 1500)[1]
    assert two is not None
    assert three is not None
    assert 1 - three == pytest.approx(2 * (1 - two))
