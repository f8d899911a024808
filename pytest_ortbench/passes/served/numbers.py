"""The numbers of a service that a run has started, from its requests one after the other."""

from __future__ import annotations

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.order import order_statistic, samples_needed
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.served.declaration import PASS
from pytest_ortbench.passes.served.facts import INFERENCE, ServiceUse

_PERCENTS = (50, 90, 99)


def add_service(collector: Collector, result: CaseResult) -> None:
    """Add what a request to the service took, and what the service used for it."""
    use = result.served
    if use is None:
        reason = "the row asks no service that the run has started (--ort-serve)"
        collector.reject(PASS.metric_names, reason)
    elif not use.durations_ns:
        collector.reject(PASS.metric_names, use.reason or "no request was sent")
    else:
        _add_times(collector, use)
        _add_use(collector, use)


def _add_times(collector: Collector, use: ServiceUse) -> None:
    ordered, count = sorted(use.durations_ns), len(use.durations_ns)
    for percent in _PERCENTS:
        name = f"served_p{percent}"
        if count < samples_needed(percent):
            collector.need(name, samples_needed(percent))
            continue
        found = order_statistic(ordered, percent)
        assert found.low_ns is not None
        assert found.high_ns is not None
        low, high = found.low_ns * 1e-9, found.high_ns * 1e-9
        collector.add(name, found.value_ns * 1e-9, low=low, high=high, samples=count)
    inference_ns = use.steps_ns.get(INFERENCE)
    overhead_ns = (
        0 if inference_ns is None else order_statistic(ordered, 50).value_ns - inference_ns
    )
    reason = f"the service tells no step {INFERENCE!r} with a time that can be (Server-Timing)"
    if inference_ns is not None:
        reason = "the service tells more for the inference than the request took"
    collector.add(
        "served_overhead",
        overhead_ns * 1e-9 if overhead_ns > 0 else None,
        reason=reason,
        samples=count,
    )


def _add_use(collector: Collector, use: ServiceUse) -> None:
    count = len(use.durations_ns)
    collector.add(
        "served_cpu",
        use.cpu_ns * 1e-9 / count if use.cpu_ns else None,
        reason="the processor time of the service was too short to be read",
        samples=count,
    )
    collector.add(
        "served_memory",
        use.resident_bytes or None,
        reason="the memory of the service could not be read",
    )
