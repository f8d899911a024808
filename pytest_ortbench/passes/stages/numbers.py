"""The numbers of a user's stages, by the rules that hold for latency."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.analysis.between_processes import OfProcess, over_processes
from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.order import samples_needed
from pytest_ortbench.analysis.samples import median_latency, pooled_percentiles
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.samples import Samples
from pytest_ortbench.passes.stages.declaration import PASS
from pytest_ortbench.passes.stages.facts import StageWorker

_PERCENTILES = {"p90": 90.0, "p99": 99.0}


def add_stages(collector: Collector, result: CaseResult) -> None:
    """Add percentiles of each stage and of whole frames, and the rates of both ways."""
    stages = result.stages
    if stages is None or not stages.workers:
        reason = "no stages were given (--ort-stages)" if stages is None else stages.reason
        collector.reject(PASS.metric_names, reason or "no frame was measured")
        return
    workers = stages.workers
    _add_times(collector, "frame", [worker.frame for worker in workers])
    _add_times(collector, "frame_inference", [worker.inference for worker in workers])
    for name in ("preprocess", "postprocess"):
        timed = [samples for worker in workers if (samples := getattr(worker, name)) is not None]
        if timed:
            _add_times(collector, name, timed)
        else:
            names = [metric for metric in PASS.metric_names if metric.startswith(f"{name}_")]
            collector.reject(names, f"{stages.file} has no {name}")
    _add_rates(collector, workers, result.case.batch)


def workers_finished(result: CaseResult) -> int:
    """Return how many workers sent frames through."""
    return 0 if result.stages is None else len(result.stages.workers)


def _add_times(collector: Collector, stage: str, workers: Sequence[Samples]) -> None:
    count = sum(samples.count for samples in workers)
    statistics = {"p50": median_latency(workers)} | dict(
        zip(_PERCENTILES, pooled_percentiles(workers, tuple(_PERCENTILES.values())), strict=True)
    )
    for name, statistic in statistics.items():
        needed, low, high = samples_needed(statistic.percent), statistic.low_ns, statistic.high_ns
        if count < needed or low is None or high is None:
            collector.need(f"{stage}_{name}", needed)
            continue
        collector.add(
            f"{stage}_{name}",
            statistic.value_ns * 1e-9,
            low=low * 1e-9,
            high=high * 1e-9,
            samples=count,
        )


def _add_rates(collector: Collector, workers: Sequence[StageWorker], batch: int) -> None:
    in_turn = [(worker.frame.count, worker.frame.sum_ns) for worker in workers]
    overlapped = [
        (worker.overlapped, worker.overlapped_ns) for worker in workers if worker.overlapped_ns
    ]
    for name, pairs in (("frame_rate", in_turn), ("pipeline_rate", overlapped)):
        if not pairs:
            collector.add(name, None, reason="frames were not overlapped")
            continue
        frames, total_ns = (sum(values) for values in zip(*pairs, strict=True))
        rates = [1e9 * batch * count / spent for count, spent in pairs]
        value = 1e9 * batch * frames / total_ns
        low, high = over_processes([OfProcess.alone(rate) for rate in rates], (value, value))
        collector.add(name, value, low=low, high=high, samples=frames)
