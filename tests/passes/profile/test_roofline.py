"""Achieved rates against ceilings, computed by hand."""

from __future__ import annotations

import pytest

from pytest_ortbench.passes.profile.facts import OperatorProfile, OperatorTime, Peak
from pytest_ortbench.passes.profile.numbers.roofline import (
    Rate,
    model_rate,
    operator_rate,
    rate_of,
    ridge,
)

#: 100 G multiply-accumulates and 20 GB a second: they meet at 5 a byte.
PEAK = Peak(macs_per_s=100e9, bytes_per_s=20e9, provider="P", element="float")


def operator(op: str, time_ns: int, macs: int | None, moved: int | None, where: str = "P"):
    return OperatorTime(
        op=op, provider=where, time_ns=time_ns, nodes=1, macs=macs, moved_bytes=moved
    )


def test_rates_shares_and_intensity():
    """1 ms with 80 M multiply-accumulates over 4 MB."""
    found = rate_of(1_000_000, 80_000_000, 4_000_000, PEAK)
    assert found.macs_per_s == pytest.approx(80e9)
    assert found.bytes_per_s == pytest.approx(4e9)
    assert found.intensity == 20.0
    assert found.compute_share == pytest.approx(0.8)
    assert found.memory_share == pytest.approx(0.2)
    assert (found.bound, found.share) == ("compute", pytest.approx(0.8))


@pytest.mark.parametrize(
    ("macs", "moved", "bound", "share"),
    [
        (0, 16_000_000, "memory", 0.8),  # elementwise
        (10_000_000, 10_000_000, "memory", 0.5),  # left of the ridge
        (50_000_000, 5_000_000, "compute", 0.5),  # right of it
        (1_000_000, 100_000, "neither", 0.01),
        (0, 40_000_000, "memory", 2.0),  # from caches
    ],
)
def test_the_nearer_ceiling_bounds(macs, moved, bound, share):
    found = rate_of(1_000_000, macs, moved, PEAK)
    assert found.bound == bound
    assert found.share == pytest.approx(share)


def test_what_is_not_known_is_none():
    assert rate_of(0, 5, 5, PEAK) == Rate()
    assert rate_of(10, None, None, PEAK) == Rate()
    alone = rate_of(1000, 5000, 100, None)
    assert (alone.compute_share, alone.memory_share, alone.bound) == (None, None, "")
    assert alone.macs_per_s == pytest.approx(5e9)
    half = rate_of(1000, 5000, 100, Peak(macs_per_s=10e9, reason="pass over memory: none"))
    assert (half.compute_share, half.memory_share, half.bound) == (pytest.approx(0.5), None, "")
    assert rate_of(1000, 5000, 0, PEAK).intensity is None


def test_operators_of_another_provider_are_not_held_against_this_peak():
    profile = OperatorProfile(peak=PEAK)
    there = operator_rate(profile, operator("Conv", 1000, 100, 10, "Other"))
    assert (there.compute_share, there.macs_per_s) == (None, pytest.approx(1e8))
    here = operator_rate(profile, operator("Conv", 1000, 50_000, 10))
    assert here.compute_share == pytest.approx(0.5)


def test_times_of_starting_kernels_are_no_rates():
    profile = OperatorProfile(
        peak=PEAK,
        asynchronous=True,
        plain_ns=1_000_000,
        run_ns=2_000_000,
        macs=50_000_000,
        moved_bytes=1_000_000,
    )
    assert operator_rate(profile, operator("Conv", 1000, 100, 10)) == Rate()
    assert model_rate(profile).compute_share == pytest.approx(0.5)


@pytest.mark.parametrize("plain_ns", [0, 3_000_000])
def test_a_model_without_a_better_plain_time_has_that_of_the_profiled_run(plain_ns):
    profile = OperatorProfile(
        peak=PEAK, run_ns=2_000_000, plain_ns=plain_ns, macs=50_000_000, moved_bytes=1
    )
    assert model_rate(profile).compute_share == pytest.approx(0.25)


def test_without_any_time_there_is_no_rate():
    assert model_rate(OperatorProfile(peak=PEAK, macs=5, moved_bytes=1)) == Rate()


def test_both_ceilings_meet_at_the_ridge():
    assert ridge(PEAK) == 5.0
    assert ridge(Peak(macs_per_s=1.0)) is None
