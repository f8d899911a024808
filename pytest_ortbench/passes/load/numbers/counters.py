"""Counters of requests in files of Prometheus, and those of services that are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CounterSeries:
    """The values of one counter.

    Attributes:
        name: Of the metric; empty for what a query has computed.
        labels: By name.
        points: Time (Unix, seconds; ``None`` where nobody tells it) and value, in their order.
    """

    name: str
    labels: Mapping[str, str]
    points: tuple[tuple[float | None, float], ...]


@dataclass(frozen=True, slots=True)
class RequestCounters:
    """Where requests are counted.

    Attributes:
        counters: Names of the counters that together count them.
        created: Names of what tells when these started.
        buckets: Name of the buckets of their times in seconds; empty where there are none.
    """

    counters: tuple[str, ...]
    created: tuple[str, ...]
    buckets: str = ""


def histogram(name: str) -> RequestCounters:
    """Return the counters of a histogram of times.

    Args:
        name: Of the histogram.
    """
    return RequestCounters((f"{name}_count",), (f"{name}_created",), f"{name}_bucket")


#: Metrics that are known, by the name that a user writes.
KNOWN: dict[str, RequestCounters] = {
    **{
        name: histogram(name)
        for name in ("ortbench_serve_request_seconds", "vllm:e2e_request_latency_seconds")
    },
    # Triton.
    "nv_inference_request_success": RequestCounters(
        ("nv_inference_request_success", "nv_inference_request_failure"), ()
    ),
    # MLServer.
    "model_infer_request_success": RequestCounters(
        ("model_infer_request_success_total", "model_infer_request_failure_total"),
        ("model_infer_request_success_created", "model_infer_request_failure_created"),
    ),
}


def bucket_names(metric: str) -> frozenset[str]:
    """Return names of the buckets of a metric; empty stands for each one that is known."""
    sources = [KNOWN.get(metric) or histogram(metric)] if metric else KNOWN.values()
    return frozenset(source.buckets for source in sources if source.buckets)


@dataclass(frozen=True, slots=True)
class NamedMetrics:
    """A file of metrics as a user named it, for messages.

    Attributes:
        place: The option, and the file.
        load: What was written, without a limit: ``from:m.prom:model=a``.
        has_limit: Whether a latency limit was written.
    """

    place: str
    load: str
    has_limit: bool
