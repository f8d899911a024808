"""How many queries and how long: MLPerf's early stopping, against its own published numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.passes.load.numbers.plan import (
    LoadPlan,
    plan_load,
    queries_asked,
    queries_needed,
)
from pytest_ortbench.passes.load.numbers.spec import parse_load
from pytest_ortbench.passes.load.planning.asked import refuse_loads_beyond_timeout
from pytest_ortbench.passes.load.run import announcements


def plan(
    text: str,
    *,
    capacity: float | None = None,
    timeout: float = 300.0,
    official: bool = False,
    callers: int = 1,
) -> LoadPlan | str:
    return plan_load(
        parse_load(text, place=""),
        capacity_per_s=capacity,
        timeout_s=timeout,
        official=official,
        callers=callers,
    )


@pytest.mark.parametrize(
    ("percent", "needed", "asked"),
    [(90.0, 64, 68), (95.0, 130, 140), (99.0, 662, 700), (99.9, 6636, 7000)],
)
def test_the_numbers_of_mlperf(percent: float, needed: int, asked: int) -> None:
    assert queries_needed(percent) == needed
    assert queries_asked(percent) == asked


def test_every_query_in_time_needs_fewer() -> None:
    # 0.99 ** 459 is the first power below 1 %.
    assert queries_needed(99.0, late=0) == 459
    # What the generator itself said of 4 late ones of 100 at p90: 13 more.
    assert queries_needed(90.0, late=4) == 113


@given(
    st.floats(min_value=50.0, max_value=99.9, allow_nan=False),
    st.integers(min_value=0, max_value=6),
)
def test_it_is_the_smallest_number_at_99_per_cent_confidence(percent: float, late: int) -> None:
    found = queries_needed(percent, late=late)
    above = 1.0 - percent / 100.0
    assert binom.cdf(late, found, above) <= 0.01 * (1 + 1e-9)
    assert binom.cdf(late, found - 1, above) > 0.01 * (1 - 1e-9)


@given(st.floats(min_value=50.0, max_value=99.9, allow_nan=False))
def test_what_is_asked_for_is_enough_and_not_much_more(percent: float) -> None:
    needed, asked = queries_needed(percent), queries_asked(percent)
    assert needed < asked <= 1.2 * needed + 2


@pytest.mark.parametrize(
    ("text", "capacity", "seconds"),
    [
        ("server:100:20ms", None, 10.0),
        ("server:70:20ms", None, 10.0),
        ("server:35:20ms", None, 20.0),
        ("server:35:20ms:p90", None, 10.0),
        ("single-stream", 1000.0, 10.0),
        ("single-stream", 3.4, 20.0),
        # Eight requests a query: 700 queries are 5600 requests.
        ("multi-stream", 280.0, 20.0),
        ("offline", 1.0, 10.0),
        # Ten tests, the first at seven tenths of the capacity.
        ("peak:p99:20ms", 100.0, 100.0),
        ("peak:p99:20ms", 50.0, 200.0),
    ],
)
def test_the_longer_of_ten_seconds_and_what_the_percentile_needs(
    text: str, capacity: float | None, seconds: float
) -> None:
    found = plan(text, capacity=capacity)
    assert isinstance(found, LoadPlan)
    assert found.expected_s == pytest.approx(seconds)
    assert found.least_s == 10.0


@pytest.mark.parametrize(
    ("text", "callers", "seconds"),
    [
        # One caller of four does a quarter of 13.6/s at least: 68 queries in 20 s, not in 5.
        ("single-stream", 4, 20.0),
        # 13.6/s are 1.7 queries of eight, with four callers; of sixteen no more than half is busy.
        ("multi-stream:p90", 4, 40.0),
        ("multi-stream:p90", 16, 80.0),
        # 68 queries at seven tenths of 13.6/s, ten times: all callers take them.
        ("peak:p90:1s", 16, 100.0),
    ],
)
def test_one_query_at_a_time_is_planned_for_the_callers_that_it_keeps_busy(
    text: str, callers: int, seconds: float
) -> None:
    found = plan(text, capacity=13.6, callers=callers)
    assert isinstance(found, LoadPlan)
    assert found.expected_s == pytest.approx(seconds)


def test_what_does_not_fit_is_refused_with_the_percentile_that_does() -> None:
    found = plan("server:1:20ms")
    assert found == (
        "server:1:20ms needs 700 s (700 queries for p99 at 1.00/s), more than the timeout of "
        "300 s. Use --ort-timeout=840. If that takes too long, use a lower percentile: "
        "server:1:20ms:p97"
    )
    # 230 queries for p97, 140 for p95, 68 for p90.
    assert proposed_in(plan("server:0.6:20ms")) == "p95"
    assert proposed_in(plan("server:0.3:20ms")) == "p90"
    assert proposed_in(plan("server:0.02:20ms")) == ""
    assert "--ort-timeout=" in str(plan("server:0.02:20ms"))
    assert proposed_load(plan("peak:p99:20ms", capacity=5.0)) == "peak:p90:20ms"


def proposed_in(found: LoadPlan | str) -> str:
    """Return the percentile that a refusal proposes; empty for none."""
    return next((part for part in proposed_load(found).split(":") if part[:1] == "p"), "")


def proposed_load(found: LoadPlan | str) -> str:
    """Return the load with a lower percentile that a refusal proposes; empty for none."""
    return str(found).partition("lower percentile: ")[2]


@given(
    st.floats(min_value=0.05, max_value=5.0), st.sampled_from(["p99", "p99.9", "p95"]),
    st.floats(min_value=30.0, max_value=1000.0),
)  # fmt: skip
def test_the_percentile_that_is_proposed_really_fits(
    rate: float, percent: str, timeout: float
) -> None:
    found = plan(f"server:{rate:.4f}:1s:{percent}", timeout=timeout)
    if isinstance(found, str) and proposed_in(found):
        fits = plan(proposed_load(found), timeout=timeout)
        assert isinstance(fits, LoadPlan)
        assert fits.expected_s <= timeout


def test_official_durations_need_a_longer_timeout() -> None:
    assert plan("server:100:20ms", official=True) == (
        "server:100:20ms needs 600 s (MLPerf's rules require 600 s), more than the timeout of "
        "300 s. Use --ort-timeout=720"
    )
    found = plan("server:100:20ms", official=True, timeout=720)
    assert isinstance(found, LoadPlan)
    assert (found.least_s, found.expected_s) == (600.0, 600.0)


def test_what_can_be_known_is_refused_before_anything_is_measured() -> None:
    refuse_loads_beyond_timeout(
        value=("offline", "single-stream"),
        timeout_s=300,
        load_official=False,
        place="--ort-load",
    )
    with pytest.raises(UsageError, match=r"^--ort-load: server:1:20ms needs 700 s "):
        refuse_loads_beyond_timeout(
            value=("offline", "server:1:20ms"),
            timeout_s=300,
            load_official=False,
            place="--ort-load",
        )
    with pytest.raises(UsageError, match=r"10 tests of 10\.0 s \(each test takes at least 10 s"):
        refuse_loads_beyond_timeout(
            value=("peak:p99:1s",), timeout_s=60, load_official=False, place="--ort-load"
        )


@pytest.mark.parametrize(
    ("text", "official", "said"),
    [
        (
            "server:50:20ms", False,
            "load server:50:20ms: 14.0 s per case, 700 queries for p99 (non-conforming: MLPerf "
                "requires 600 s)",
        ),
        (
            "server:50:20ms", True,
            "load server:50:20ms: 600 s per case, 700 queries for p99 (MLPerf's own durations)",
        ),
        (
            "peak:p99:20ms", False,
            "load peak:p99:20ms: about 10 tests of 10 s per case, within --ort-timeout, longer "
                "below 70.0 queries a second (700 queries for p99; non-conforming: MLPerf "
                "requires 600 s)",
        ),
        (
            "offline", False,
            "load offline: at least 10 s per case (non-conforming: MLPerf requires 600 s)",
        ),
    ],
)  # fmt: skip
def test_what_is_said_beforehand(text: str, official: bool, said: str) -> None:
    assert announcements(load=(text,), load_official=official) == [said]
