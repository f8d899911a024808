"""From readings to the energy of a window, on readings that are written down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.passes.energy.worker.trace import (
    Least,
    Reading,
    Span,
    inferences_between,
    span_of,
)

MS = 1_000_000


def readings(
    *, every_ms: int = 20, length_ms: int = 2000, watts: float = 100.0, tick_ms: int = 100
) -> list[Reading]:
    """A counter that moves every ``tick_ms``, and power."""
    return [
        Reading(
            at_ns=at * MS,
            energy_j=(at + 30) // tick_ms * tick_ms * watts / 1000,
            power_w=watts,
        )
        for at in range(0, length_ms, every_ms)
    ]


def test_a_window_reaches_from_tick_to_tick() -> None:
    span = span_of(readings(), from_ns=500 * MS, to_ns=1900 * MS)
    # The counter moves at 70, 170, … ms, which is seen at 80, 180, …
    assert span == Span(
        start_ns=580 * MS,
        end_ns=1880 * MS,
        counter_j=130.0,
        integral_j=pytest.approx(130),
        ticks=13,
    )


def test_without_a_counter_that_moves_power_is_integrated() -> None:
    stuck = [Reading(at_ns=r.at_ns, energy_j=5.0, power_w=r.power_w) for r in readings()]
    span = span_of(stuck, from_ns=500 * MS, to_ns=1900 * MS)
    assert span == Span(
        start_ns=500 * MS, end_ns=1900 * MS, counter_j=None, integral_j=pytest.approx(140), ticks=0
    )


def test_a_ramp_is_integrated_by_trapezoids() -> None:
    ramp = [Reading(at_ns=at * MS, power_w=float(at)) for at in (0, 500, 1000)]
    span = span_of(ramp, from_ns=0, to_ns=1000 * MS)
    assert span is not None
    assert span.integral_j == pytest.approx(500.0)


def test_a_power_reading_that_failed_spoils_the_integral_only() -> None:
    holed = readings()
    holed[40] = Reading(at_ns=holed[40].at_ns, energy_j=holed[40].energy_j)
    span = span_of(holed, from_ns=0, to_ns=1900 * MS)
    assert span is not None
    assert span.integral_j is None
    assert span.counter_j == 180.0


def test_a_tick_behind_a_gap_is_not_where_a_window_ends() -> None:
    held_up = [r for r in readings() if not 1790 * MS <= r.at_ns < 1880 * MS]
    span = span_of(held_up, from_ns=500 * MS, to_ns=1890 * MS)
    assert span is not None
    # Between 1780 and 1880 ms nobody looked: the tick there may have come any time.
    assert (span.start_ns, span.end_ns, span.counter_j) == (580 * MS, 1780 * MS, 120.0)


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_readings_are_no_window(count: int) -> None:
    assert span_of(readings()[:count], from_ns=0, to_ns=10**12) is None


def test_inferences_at_the_ends_count_in_part() -> None:
    ends = [100, 200, 300, 400]
    assert inferences_between(ends, began_ns=0, start_ns=0, end_ns=400) == 4
    assert inferences_between(ends, began_ns=0, start_ns=50, end_ns=325) == pytest.approx(2.75)
    assert inferences_between(ends, began_ns=0, start_ns=210, end_ns=240) == pytest.approx(0.3)


@given(
    durations=st.lists(st.integers(1, 10_000), min_size=1, max_size=40),
    cuts=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
)
def test_parts_of_a_window_hold_as_many_inferences_as_the_whole(
    durations: list[int], cuts: tuple[float, float, float]
) -> None:
    ends = [sum(durations[: index + 1]) for index in range(len(durations))]
    start, middle, end = sorted(round(cut * ends[-1]) for cut in cuts)

    def count(low: int, high: int) -> float:
        return inferences_between(ends, began_ns=0, start_ns=low, end_ns=high)

    assert count(start, middle) + count(middle, end) == pytest.approx(count(start, end))
    assert count(0, ends[-1]) == len(durations)


@pytest.mark.parametrize(
    ("seconds", "ticks", "inferences", "enough"),
    [(5.0, 50, 32.0, True), (4.9, 50, 32.0, False), (5.0, 49, 32.0, False), (5.0, 50, 31.9, False)],
)
def test_a_window_must_be_long_enough_in_every_respect(
    seconds: float, ticks: int, inferences: float, enough: bool
) -> None:
    span = Span(
        start_ns=0, end_ns=round(seconds * 1e9), counter_j=1.0, integral_j=None, ticks=ticks
    )
    assert Least().met_by(span, inferences) is enough


def test_without_a_counter_ticks_do_not_matter() -> None:
    span = Span(start_ns=0, end_ns=5 * 10**9, counter_j=None, integral_j=1.0, ticks=0)
    assert Least().met_by(span, 32)
