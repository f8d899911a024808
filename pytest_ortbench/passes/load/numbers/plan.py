"""How long a load must last so that its verdict can be given, and whether that fits.

MLPerf's generator accepts a run once the queries seen suffice, at 99 % confidence, to say that the
percentile keeps its bound: with ``late`` queries over the bound, the smallest n with
``P(Binomial(n, 1 - percentile) <= late) <= 1 %``. A shorter run is INVALID however good it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_ortbench.core.units import format_amount, significant
from pytest_ortbench.passes.load.facts import LoadSpec
from pytest_ortbench.passes.load.numbers.spec import with_percent

#: Shorter runs say little about a machine, whatever the percentile needs.
LEAST_S = 10.0
#: Of MLPerf's rules.
OFFICIAL_S = 600.0
#: 1 - the confidence of the generator.
_DOUBT = 0.01
#: Late queries that a run should be able to take: one stall must not make it INVALID.
_LATE = 1
#: A little more than that, in round numbers: 662 → 700.
_MARGIN = 1.05
#: Tests that a search for the peak is planned for; one that meets stalls takes more, as long as the
#: timeout lasts.
PROBES = 10
#: What a search tries first, as a share of the capacity.
FIRST_PROBE = 0.7
#: Requests of one query.
REQUESTS = {"multi-stream": 8}
#: Percentiles that a message may propose.
_PROPOSED = (99.9, 99.0, 97.0, 95.0, 90.0, 80.0, 50.0)


def queries_needed(percent: float, late: int = _LATE) -> int:
    """Return the fewest queries with which ``late`` ones over the bound are still VALID.

    Args:
        percent: The percentile, from 50 to below 100.
        late: Queries over the bound.
    """
    low, high = late + 1, late + 2
    while _chance(high, late, percent) > _DOUBT:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _chance(middle, late, percent) > _DOUBT else (low, middle)
    return high if _chance(low, late, percent) > _DOUBT else low


def _chance(queries: int, late: int, percent: float) -> float:
    """P(at most ``late`` of the queries exceed the percentile)."""
    above = 1.0 - percent / 100.0
    if late >= queries:
        return 1.0
    log_below = math.log1p(-above)
    return math.fsum(
        math.comb(queries, k) * above**k * math.exp((queries - k) * log_below)
        for k in range(late + 1)
    )


def queries_asked(percent: float) -> int:
    """Return what we ask the generator for: a little more than needed, in round numbers."""
    wanted = queries_needed(percent) * _MARGIN
    step = 10.0 ** (math.floor(math.log10(wanted)) - 1)
    return int(math.ceil(round(wanted / step, 6)) * step)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """What the generator is asked for.

    Attributes:
        least_s: Least duration of a test.
        least_queries: Least number of queries of a test.
        expected_s: What all tests are expected to take.
    """

    least_s: float
    least_queries: int
    expected_s: float


def plan_load(
    spec: LoadSpec,
    *,
    capacity_per_s: float | None,
    timeout_s: float,
    official: bool,
    callers: int = 1,
) -> LoadPlan | str:
    """Say what to ask for, or why the load can't be had within the timeout.

    Args:
        spec: The load.
        capacity_per_s: Requests a second that the case can do; ``None`` if not known yet, where
            only what does not depend on it is checked.
        timeout_s: ``--ort-timeout``.
        official: Whether MLPerf's own durations are used.
        callers: Callers that make this capacity.
    """
    least_s = OFFICIAL_S if official else LEAST_S
    queries = queries_asked(spec.percent) if spec.scenario != "offline" else 1
    rate = _query_rate(spec, capacity_per_s, callers)
    each_s = max(least_s, queries / rate) if rate else least_s
    tests = PROBES if spec.scenario == "peak" else 1
    expected_s = tests * each_s
    if expected_s <= timeout_s:
        return LoadPlan(least_s=least_s, least_queries=queries, expected_s=expected_s)
    return _refusal(spec, each_s, tests, timeout_s, least_s, rate)


def _query_rate(spec: LoadSpec, capacity_per_s: float | None, callers: int) -> float | None:
    """Queries a second at least, as far as they are known."""
    if spec.rate_per_s is not None:
        return spec.rate_per_s
    if capacity_per_s is None or spec.scenario == "offline":
        return None
    if spec.scenario == "peak":
        return FIRST_PROBE * capacity_per_s
    # One query at a time keeps no more callers busy than it has requests. Of callers in each
    # other's way one alone does more than its share, so this is the least.
    requests = REQUESTS.get(spec.scenario, 1)
    return capacity_per_s * min(requests, callers) / callers / requests


def _refusal(
    spec: LoadSpec, each_s: float, tests: int, timeout_s: float, least_s: float, rate: float | None
) -> str:
    count = f"{tests} tests of " if tests > 1 else ""
    needs = f"{spec.text} needs {count}{format_amount(each_s, 's')}"
    longer = f"Use --ort-timeout={math.ceil(1.2 * tests * each_s)}"
    if rate is None or tests * least_s > timeout_s:
        rules = "MLPerf's rules require" if least_s == OFFICIAL_S else "each test takes at least"
        return (
            f"{needs} ({rules} {least_s:g} s), more than the timeout of {timeout_s:g} s. {longer}"
        )
    asked = queries_asked(spec.percent)
    why = f"{asked} queries for p{spec.percent:g} at {significant(rate)}/s"
    within = rate * timeout_s / tests
    percents = [p for p in _PROPOSED if p < spec.percent and queries_asked(p) <= within]
    lower = (
        f". If that takes too long, use a lower percentile: {with_percent(spec, percents[0])}"
        if percents
        else ""
    )
    return f"{needs} ({why}), more than the timeout of {timeout_s:g} s. {longer}{lower}"
