"""The queue against closed forms and against a simulation that shares no code with it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_ortbench.fleet.procurement.queueing import MOST_BUSY, capacity


def exponential(mean: float, points: int = 4000) -> list[float]:
    """Equally likely points of an exponential distribution."""
    middle = (np.arange(points) + 0.5) / points
    return list(-np.log1p(-middle) * mean)


def test_capacity_with_exponential_service() -> None:
    # µ - λ = ln(100) / limit.
    (found,) = capacity(exponential(0.01), 0.1)
    assert found == pytest.approx(100 - math.log(100) / 0.1, rel=0.01)


def test_slower_service_scales_time() -> None:
    service = exponential(0.01)
    found = capacity(service, 0.1, scales=(1.0, 1.1, 0.9))
    for scale, rate in zip((1.0, 1.1, 0.9), found, strict=True):
        (alone,) = capacity([value * scale for value in service], 0.1)
        assert rate == pytest.approx(alone, rel=2e-3)


def simulated(service: list[float], limit_s: float, rate: float, arrivals: int = 400_000) -> float:
    """Share on time by Lindley's recursion on random arrivals and resampled service times."""
    rng = np.random.default_rng(7)
    served = rng.choice(np.asarray(service), arrivals)
    between = rng.exponential(1 / rate, arrivals)
    sums = np.concatenate([[0.0], np.cumsum(served[:-1] - between[1:])])
    waiting = sums - np.minimum.accumulate(sums)
    return float(((waiting + served) <= limit_s).mean())


@pytest.mark.parametrize(
    ("service", "limit_s"),
    [
        ([0.01], 0.05),  # always the same: M/D/1
        ([0.001] * 90 + [0.02] * 10, 0.06),  # two kinds of requests
        (list(np.random.default_rng(1).lognormal(-6, 0.4, 300)), 0.012),
    ],
)
def test_capacity_is_where_a_simulation_has_one_per_cent_late(
    service: list[float], limit_s: float
) -> None:
    (rate,) = capacity(service, limit_s)
    assert simulated(service, limit_s, rate) == pytest.approx(0.99, abs=0.0015)


def test_a_limit_that_service_alone_breaks_can_be_kept_at_no_rate() -> None:
    assert capacity([0.01] * 97 + [0.1] * 3, 0.05) == [0.0]


def test_a_generous_limit_ends_at_the_busiest_that_is_planned() -> None:
    (rate,) = capacity([0.001], 10.0)
    assert rate == pytest.approx(MOST_BUSY / 0.001)


@pytest.mark.parametrize("percent", [90.0, 95.0, 99.0])
def test_of_the_queue_of_one_exponential_server_any_percentile_is_known(percent: float) -> None:
    """M/M/1: the time in the system is exponential with the rate that is left, μ - λ."""
    limit_s, service_s = 0.1, 0.01
    (found,) = capacity(exponential(service_s), limit_s, percent=percent)
    assert found == pytest.approx(1 / service_s + math.log(1 - percent / 100) / limit_s, rel=0.02)


def test_the_share_that_is_late_whatever_the_load_is_that_of_the_percentile() -> None:
    service = [0.01] * 97 + [0.1] * 3
    assert capacity(service, 0.05, percent=99) == [0.0]
    (rate,) = capacity(service, 0.05, percent=95)
    assert rate > 0
