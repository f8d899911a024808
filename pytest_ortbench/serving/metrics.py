"""What a service counts and times of its requests, in Prometheus' text format."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prometheus_client import Counter

#: Bounds of the buckets of seconds: a null model takes microseconds, a large one seconds.
_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025),
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
#: Bounds of the buckets of rows.
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128)

#: Every metric of a service and what it says; the page about it and its test read them here.
SERVICE_METRICS: dict[str, str] = {
    "ortbench_serve_requests_total": "Requests for an inference, by status code.",
    "ortbench_serve_request_seconds": "Time from the head of a request to its response.",
    "ortbench_serve_queue_seconds": "Time that a request waited for its inference.",
    "ortbench_serve_inference_seconds": "Time of the inference that a request took part in.",
    "ortbench_serve_batch_rows": "Rows of the inference that a request took part in.",
    "ortbench_serve_requests_inside": "Requests that are read, wait or run now.",
    "ortbench_serve_time_seconds": "When this was written, in seconds since 1970.",
    "ortbench_serve_model_info": "The model that is served, as labels.",
}


class Observer(Protocol):
    """Hears of every request for an inference."""

    def came(self) -> None:
        """Hear of a request that begins."""

    def ran(self, queue_s: float, inference_s: float, rows: int) -> None:
        """Hear of an inference that a request took part in."""

    def went(self, status: int, seconds: float) -> None:
        """Hear of a request that has its response."""


class Unobserved:
    """Counts nothing: the service without being watched."""

    def came(self) -> None:
        """Hear of a request that begins."""

    def ran(self, queue_s: float, inference_s: float, rows: int) -> None:
        """Hear of an inference that a request took part in."""

    def went(self, status: int, seconds: float) -> None:
        """Hear of a request that has its response."""


class ServiceMetrics:
    """Counts and times, and writes them down when it is asked.

    Args:
        model: Name of the model.
        provider: What it runs on.
    """

    def __init__(self, model: str, provider: str) -> None:
        from prometheus_client import (
            CollectorRegistry,
            Counter,
            Gauge,
            Histogram,
            Info,
            ProcessCollector,
        )

        self._registry = registry = CollectorRegistry()
        # Memory and processor time of this process, where the system has them.
        ProcessCollector(registry=registry)

        def seconds(name: str) -> Histogram:
            return Histogram(name, SERVICE_METRICS[name], buckets=_SECONDS, registry=registry)

        name = "ortbench_serve_requests"
        self._requests = Counter(
            name, SERVICE_METRICS[f"{name}_total"], ["code"], registry=registry
        )
        self._by_code: dict[int, Counter] = {}
        self._request_s = seconds("ortbench_serve_request_seconds")
        self._queue_s = seconds("ortbench_serve_queue_seconds")
        self._inference_s = seconds("ortbench_serve_inference_seconds")
        name = "ortbench_serve_batch_rows"
        self._rows = Histogram(name, SERVICE_METRICS[name], buckets=_ROWS, registry=registry)
        name = "ortbench_serve_requests_inside"
        self._inside = Gauge(name, SERVICE_METRICS[name], registry=registry)
        # A rate can be told from one scrape then, however late it is read.
        name = "ortbench_serve_time_seconds"
        Gauge(name, SERVICE_METRICS[name], registry=registry).set_function(time.time)
        name = "ortbench_serve_model"
        info = Info(name, SERVICE_METRICS[f"{name}_info"], registry=registry)
        info.info({"model": model, "provider": provider})

    def came(self) -> None:
        """Hear of a request that begins."""
        self._inside.inc()

    def ran(self, queue_s: float, inference_s: float, rows: int) -> None:
        """Hear of an inference that a request took part in."""
        self._queue_s.observe(queue_s)
        self._inference_s.observe(inference_s)
        self._rows.observe(rows)

    def went(self, status: int, seconds: float) -> None:
        """Hear of a request that has its response."""
        self._inside.dec()
        counter = self._by_code.get(status)
        if counter is None:
            counter = self._by_code[status] = self._requests.labels(str(status))
        counter.inc()
        self._request_s.observe(seconds)

    def text(self) -> tuple[bytes, str]:
        """Return all of it as Prometheus reads it, and the type of that content."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self._registry), CONTENT_TYPE_LATEST
