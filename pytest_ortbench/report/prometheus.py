"""The numbers of a run in Prometheus' text format, for a node exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import OrtbenchError, says, supply_step
from pytest_ortbench.core.extras import install_command
from pytest_ortbench.core.metric import Metric
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.entries import Entry, ShownRun
from pytest_ortbench.report.escape import one_line

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import GaugeMetricFamily

#: Endings that Prometheus asks for, by our SI units (https://prometheus.io/docs/practices/naming/).
_ENDINGS = {
    "s": "seconds",
    "bytes": "bytes",
    "1/s": "per_second",
    "ratio": "ratio",
    "W": "watts",
    "J": "joules",
    "dB": "decibels",
    "1": "",
}

LABELS = ("case", "model", "precision", "provider", "role", "batch", "runtime", "host")


def render_prometheus(shown: ShownRun) -> str:
    """Write every number of every case as a gauge, with what the case is as labels.

    Besides: ``ortbench_case_measured`` (1, or 0 with the kind of the failure), ``ortbench_flag``
    for each validity flag, and ``ortbench_run_info``. A number that was not measured has no line.

    Args:
        shown: Any run with the numbers of its cases.

    Raises:
        OrtbenchError: if prometheus-client is not installed.
    """
    registry = registry_of(lambda: (shown,), place="--ort-prometheus")
    from prometheus_client import generate_latest

    return generate_latest(registry).decode("utf-8")


def registry_of(runs: Callable[[], Sequence[ShownRun]], *, place: str) -> CollectorRegistry:
    """Return a registry with the numbers of runs, which are asked for at each look at it.

    Args:
        runs: Gives the runs; no two of them have a case of one machine in common.
        place: What asks for it, for the message.

    Raises:
        OrtbenchError: if prometheus-client is not installed, or does not load.
    """
    try:
        from prometheus_client import CollectorRegistry
        from prometheus_client.registry import Collector
    except ImportError as error:
        raise OrtbenchError(
            "the package prometheus_client is not installed"
            if isinstance(error, ModuleNotFoundError)
            else f"the package prometheus_client can't be imported. {says('Python', str(error))}",
            place=place,
            hint=supply_step(error, install_command("prometheus"), "prometheus-client"),
        ) from error

    class OfRuns(Collector):
        """The families of these runs, made when they are asked for."""

        def collect(self) -> Iterator[GaugeMetricFamily]:
            return _families(runs())

    registry = CollectorRegistry(auto_describe=False)
    registry.register(OfRuns())
    return registry


def prometheus_name(metric: Metric) -> str:
    """Return Prometheus' name of a metric: ``ortbench_latency_p50_seconds``."""
    ending = _ENDINGS[metric.unit]
    if not ending or metric.name.endswith(ending):
        return f"ortbench_{metric.name}"
    return f"ortbench_{metric.name}_{ending}"


def _families(runs: Sequence[ShownRun]) -> Iterator[GaugeMetricFamily]:
    from prometheus_client.core import GaugeMetricFamily

    rows = [
        (entry, list(_labels(entry, shown.run).values()))
        for shown in runs
        for entry in shown.entries
    ]
    for name, metric in METRICS.items():
        family = GaugeMetricFamily(prometheus_name(metric), metric.description, labels=LABELS)
        for entry, labels in rows:
            quantity = entry.quantity(name)
            if quantity is not None:
                family.add_metric(labels, quantity.value)
        if family.samples:
            yield family
    status = GaugeMetricFamily(
        "ortbench_case_measured",
        "1 if the case gave a number, else 0; status names the kind of the failure.",
        labels=(*LABELS, "status"),
    )
    flags = GaugeMetricFamily(
        "ortbench_flag", "1 for each validity flag of a case.", labels=(*LABELS, "flag")
    )
    for entry, labels in rows:
        status.add_metric([*labels, entry.result.status], float(entry.measured))
        for flag in entry.flags:
            flags.add_metric([*labels, one_line(flag)], 1.0)
    info = GaugeMetricFamily(
        "ortbench_run_info",
        "Always 1; the labels name the run.",
        labels=("run_id", "started_at", "ortbench_version"),
    )
    for run in (shown.run for shown in runs):
        info.add_metric([one_line(run.run_id), run.started_at, run.ortbench_version], 1.0)
    yield from (family for family in (status, flags, info) if family.samples)


def _labels(entry: Entry, run: Run) -> Mapping[str, str]:
    case = entry.result.case
    values = {
        "case": case.case_id,
        "model": case.model.name,
        "precision": case.variant.precision,
        "provider": case.provider.label,
        "role": case.provider.role,
        "batch": str(case.batch),
        "runtime": case.runtime.label,
        "host": run.machine.host,
    }
    return {name: one_line(values[name]) for name in LABELS}
