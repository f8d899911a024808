"""The latency that must be kept, which figures draw as a line, and whose percentile it bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_ortbench.core.limits import Limit
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.report.entries import Entry

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
    """``p99`` of ``latency_p99``."""
    return metric.removeprefix("latency_")


def slo_of_limits(limits: Iterable[Limit]) -> Slo | None:
    """Return the bound that tests set, that on the highest percentile.

    ``None`` where they set none, or different ones, of which none is *the* line of a figure.
    """
    return _chosen(
        Slo(latency_s=limit.value, metric=limit.metric.name)
        for limit in limits
        if limit.op in ("<=", "<") and limit.metric.name in PERCENTILES
    )


def slo_of_loads(shown: Sequence[Entry]) -> Slo | None:
    """Return the bound that the loads of a run had to keep; ``None`` as above."""
    specs = [load.spec for entry in shown for load in entry.result.loads]
    return _chosen(
        Slo(latency_s=spec.latency_s, metric=f"latency_p{spec.percent:g}")
        for spec in specs
        if spec.latency_s is not None and f"latency_p{spec.percent:g}" in PERCENTILES
    )


def _chosen(found: Iterable[Slo]) -> Slo | None:
    of_metric: dict[str, set[float]] = {}
    for slo in found:
        of_metric.setdefault(slo.metric, set()).add(slo.latency_s)
    for metric in PERCENTILES:
        values = of_metric.get(metric, set())
        if len(values) == 1:
            return Slo(latency_s=values.pop(), metric=metric)
        if values:
            return None
    return None
