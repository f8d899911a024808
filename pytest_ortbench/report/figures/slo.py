"""The latency that must be kept, which figures draw as a line, and whose percentile it bounds.

The bound of a load is none: it counts waiting, from the arrival of a request, and the figures show
latencies of a closed loop, where nothing waits. They would lie below the line under any load.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_ortbench.core.limits import Limit
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.units import format_amount

#: Percentiles that a latency can be bounded by, the usual one for a service first.
PERCENTILES = ("latency_p99", "latency_p95", "latency_p90", "latency_p50")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """A bound on a percentile of the latency.

    Attributes:
        latency_s: The bound.
        metric: One of :data:`PERCENTILES`.
    """

    latency_s: float
    metric: str = "latency_p50"

    @property
    def words(self) -> str:
        """``p99 of at most 20.0 ms``."""
        bound = format_amount(self.latency_s, METRICS[self.metric].unit)
        return f"{percentile_words(self.metric)} of at most {bound}"


def percentile_words(metric: str) -> str:
    """Return ``p99`` of ``latency_p99``."""
    return metric.removeprefix("latency_")


def slo_of_limits(limits: Iterable[Limit]) -> Slo | None:
    """Return the bound that tests set, that on the highest percentile.

    ``None`` where they set none, or different ones, of which none is *the* line of a figure.
    """
    of_metric: dict[str, set[float]] = {}
    for limit in limits:
        if limit.op in ("<=", "<") and limit.metric.name in PERCENTILES:
            of_metric.setdefault(limit.metric.name, set()).add(limit.value)
    for metric in PERCENTILES:
        values = of_metric.get(metric, set())
        if len(values) == 1:
            return Slo(latency_s=values.pop(), metric=metric)
        if values:
            return None
    return None
