"""From the raw facts of one case to its numbers, and to a reason for each number it lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from pytest_ortbench.analysis.accuracy_figures import add_accuracy
from pytest_ortbench.analysis.between_processes import OfProcess, over_processes
from pytest_ortbench.analysis.chains import idle_in
from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.cpu_time import TURN_S, CpuTime, lacked_cpus
from pytest_ortbench.analysis.judgements import judgements_of
from pytest_ortbench.analysis.order import DEVIATE, interval_ranks, samples_needed
from pytest_ortbench.analysis.relative_latency import NoRelativeLatency, relative_latency
from pytest_ortbench.analysis.samples import (
    between_runs,
    elapsed_ns,
    median_latency,
    pooled_percentiles,
    statistic_of,
)
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.judgement import Judgement
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.outcome import CaseResult, Flag, Measurement, Samples
from pytest_ortbench.core.placement import missing_evidence, placement_ratio, time_ratio
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.passes.registry import PASSES

#: What a cached engine does not change.
_OF_ALL_STARTS = ("import_time", "build_time", "warmup")
#: Parts of a start that not every row has, and why one has none.
_ABSENT = {
    "build_time": "the model is read from a file and not built from its source",
    "compile_time": "nothing is compiled in advance",
    "first_inference": "no first inference was timed",
    "ready_time": "no first inference was timed",
}
_PERCENTILES = {"latency_p90": 90.0, "latency_p95": 95.0, "latency_p99": 99.0}

#: Metrics of the memory of a worker, and the field of ``Memory`` that each is read from.
MEMORY_FIELDS = {
    "peak_rss": "peak_bytes",
    "process_peak_rss": "whole_process_bytes",
    "session_rss": "session_bytes",
    "device_memory": "device_bytes",
}

#: Metrics that a process reads of itself.
_OF_THE_PROCESS = (
    "cpu_per_inference",
    "cpu_utilisation",
    "import_time",
    "session_create",
    "first_inference",
    "ready_time",
    "warmup",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The numbers of one case.

    Attributes:
        case: What was asked.
        status: ``measured`` or the kind of the failure.
        quantities: Numbers in SI units by name of the metric, in the registry's order.
        missing: The reason for each metric of the registry that has no number: ``n<368``.
        needed: Samples that a number asks for, of those that are missing for want of samples.
        notes: What stands behind a number by name of the metric: which load is INVALID, and why.
        flags: Reasons to trust the numbers less, as stored with the result.
        judgements: What could be judged of it, and what could not.
        infinite: What is beyond every number, since nothing differs, by name of the metric;
            ``missing`` says so.
        workers: Worker processes that finished.
        samples: Steady-state inferences over all workers.
        timed_s: Seconds that passed meanwhile.
        spread: Range of the workers' medians as a share of the smallest; ``None`` for one worker.
        idle_links: Links of a chain of providers that computed nothing, as they are written.
        lacked: What the case got of its CPUs, where other programs had a part of them; ``None``
            where that is not so, or not known.
    """

    case: Case
    status: str
    quantities: dict[str, Quantity] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    needed: dict[str, int] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    infinite: dict[str, Quantity] = field(default_factory=dict)
    workers: int = 0
    samples: int = 0
    timed_s: float = 0.0
    spread: float | None = None
    idle_links: tuple[str, ...] = ()
    lacked: CpuTime | None = None

    @property
    def key(self) -> tuple[str, str]:
        """(case id, runtime label)."""
        return self.case.key

    @property
    def exact(self) -> bool:
        """Whether every output is the reference's: a signal to noise ratio beyond every number."""
        return "accuracy_sqnr" in self.infinite

    @property
    def worst_db(self) -> float | None:
        """The smallest signal to noise ratio of an output, or of channels that are much smaller
        than its others; ``None`` where no output has one."""
        known = [self.quantities.get(name) for name in ("accuracy_sqnr", "accuracy_slices")]
        return min((quantity.value for quantity in known if quantity is not None), default=None)

    @property
    def on_drawn_inputs(self) -> bool:
        """Whether the verdict on its answers rests on random inputs alone."""
        return any(judgement.drawn_inputs for judgement in self.judgements)

    @property
    def is_unlabelled(self) -> bool:
        """Whether the verdict on its answers rests on no labels."""
        return any(judgement.unlabelled for judgement in self.judgements)


def summarise(result: CaseResult, *, percentiles: bool = True) -> Summary:
    """Compute every metric of the registry for one case.

    A case that failed has no time, memory or energy, even if some of its workers finished: what
    they measured was not what was asked for. Its size, placement and accuracy stand if known.

    Args:
        result: The case.
        percentiles: Whether to compute p90, p95 and p99, which sort all samples and take nearly
            all of the time; without them they are missing.
    """
    collector = Collector()
    size = result.case.variant.size_bytes
    collector.add("model_size", size or None, reason="the file does not exist")
    _add_zeros(collector, result.case)
    _add_placement(collector, result)
    add_accuracy(collector, result, failed=_reason(result))
    for entry in PASSES:
        if entry.keeps_numbers:
            entry.load(entry.add_numbers)(collector, result)
            lacking = [name for name in entry.metric_names if name in collector.missing]
            if _reason(result):
                collector.reject(lacking, _reason(result))
    measurements = result.measurements
    workers = tuple(measurement.samples for measurement in measurements)
    failed = _reason(result)
    if not failed and not workers:
        failed = "no worker finished"
    if failed:
        rest = [name for name in METRICS if name not in collector.quantities]
        collector.reject([name for name in rest if name not in collector.missing], failed)
    else:
        _add_latency(collector, workers, percentiles=percentiles)
        _add_relative_latency(collector, result)
        _add_rates(collector, workers, result.case)
        _reach_to_all_cpus(collector, lacked_cpus(result))
        _add_utilisation(collector, measurements)
        _add_startup(collector, result.case, measurements)
        _add_memory(collector, measurements)
        for entry in PASSES:
            if entry.add_numbers and not entry.keeps_numbers:
                entry.load(entry.add_numbers)(collector, result)
        if result.case.provider.is_endpoint:
            _drop_those_of_the_client(collector)
    medians = tuple(statistic_of(samples, 50).value_ns * 1e-9 for samples in workers)
    return Summary(
        case=result.case,
        status=result.status,
        quantities={
            name: collector.quantities[name] for name in METRICS if name in collector.quantities
        },
        missing={name: collector.missing[name] for name in METRICS if name in collector.missing},
        needed=collector.needed,
        notes=collector.notes,
        flags=result.flags,
        judgements=judgements_of(result),
        infinite=collector.infinite,
        workers=len(workers),
        samples=sum(samples.count for samples in workers),
        timed_s=sum(elapsed_ns(result.case, samples) for samples in workers) * 1e-9,
        spread=(max(medians) - min(medians)) / min(medians) if len(medians) > 1 else None,
        idle_links=tuple(link.label for link in idle_in(result.placement)),
        lacked=lacked_cpus(result),
    )


def _reason(result: CaseResult) -> str:
    """Why a case gave no number; empty if it did."""
    if result.failure is not None:
        return f"{result.failure.kind}: {result.failure.message}"
    return "" if result.status == "measured" else result.status


def _add_latency(collector: Collector, workers: Sequence[Samples], *, percentiles: bool) -> None:
    count = sum(samples.count for samples in workers)
    statistics = {"latency_p50": median_latency(workers)}
    if percentiles:
        statistics |= zip(
            _PERCENTILES, pooled_percentiles(workers, tuple(_PERCENTILES.values())), strict=True
        )
    else:
        collector.reject(tuple(_PERCENTILES), "not computed")
    for name, statistic in statistics.items():
        needed = samples_needed(statistic.percent)
        if count < needed or statistic.low_ns is None or statistic.high_ns is None:
            collector.need(name, needed)
            continue
        collector.add(
            name,
            statistic.value_ns * 1e-9,
            low=statistic.low_ns * 1e-9,
            high=statistic.high_ns * 1e-9,
            samples=count,
        )
    value = sum(samples.sum_ns for samples in workers) * 1e-9 / count
    own = [mean for mean in map(_mean, workers) if mean is not None]
    low = high = None
    if len(own) == len(workers):
        low, high = over_processes(own, (value, value), between_runs=between_runs(workers))
    collector.add("latency_mean", value, low=low, high=high, samples=count)
    collector.add("latency_min", min(samples.min_ns for samples in workers) * 1e-9, samples=count)


def _reach_to_all_cpus(collector: Collector, lacked: CpuTime | None) -> None:
    """Move the better end of each interval to where the case could be with all of its CPUs.

    Of many short inferences some had them: then the fastest one is that end.
    """
    if lacked is None:
        return
    quantities = collector.quantities
    mean, fastest = quantities["latency_mean"].value, quantities["latency_min"].value
    floor = fastest if mean < TURN_S else 0.0
    for name in ("latency_p50", *_PERCENTILES, "latency_mean"):
        known = quantities.get(name)
        if known is not None and known.low is not None:
            low = min(known.low, max(floor, known.low * lacked.share))
            quantities[name] = replace(known, low=low)
    rate, least = quantities.get("throughput"), quantities["latency_mean"].low
    if rate is not None and rate.high is not None and least:
        quantities["throughput"] = replace(rate, high=max(rate.high, rate.value * mean / least))


def _add_relative_latency(collector: Collector, result: CaseResult) -> None:
    names = ("latency_relative", "latency_undisturbed")
    relative = relative_latency(result)
    if isinstance(relative, NoRelativeLatency):
        collector.reject(names, relative.reason)
        return
    rounds = sum(
        len(measurement.yardstick.model_mean_ns)
        for measurement in result.measurements
        if measurement.yardstick is not None
    )
    factors = (1.0, relative.best_s)
    for name, factor in zip(names, factors, strict=True):
        if factor is None:
            collector.reject([name], "no quiet minute of the yardstick is known on this machine")
            continue
        collector.add(
            name,
            factor * relative.value,
            low=factor * relative.low,
            high=factor * relative.high,
            samples=rounds,
        )


def _mean(samples: Samples) -> OfProcess | None:
    """One worker's mean in seconds with its normal 95 % interval; ``None`` for a single sample."""
    if samples.count < 2:
        return None
    mean = samples.sum_ns * 1e-9 / samples.count
    variance = max(0.0, samples.sum_of_squares_s2 - samples.count * mean**2) / (samples.count - 1)
    half = DEVIATE * math.sqrt(variance / samples.count)
    return OfProcess(mean - half, mean, mean + half)


def _add_rates(collector: Collector, workers: Sequence[Samples], case: Case) -> None:
    count = sum(samples.count for samples in workers)
    batch = case.batch
    mean = collector.quantities["latency_mean"]
    low = high = None
    if case.callers > 1:
        # Side by side, so the times of single inferences do not add up to that of all.
        rates = [batch * s.count / (s.wall_ns * 1e-9) for s in workers if s.wall_ns]
        wall_s = sum(samples.wall_ns for samples in workers) * 1e-9
        rate = batch * count / wall_s if wall_s else None
        if rate:
            low, high = over_processes(
                [OfProcess.alone(alone) for alone in rates],
                (rate, rate),
                between_runs=between_runs(workers),
            )
    else:
        if mean.low is not None and mean.high is not None and mean.low > 0:
            low, high = batch / mean.high, batch / mean.low
        rate = batch / mean.value if mean.value > 0 else None
    collector.add(
        "throughput", rate, reason="no time was measured", low=low, high=high, samples=count
    )
    used = sum(samples.cpu_ns for samples in workers)
    collector.add(
        "cpu_per_inference",
        used * 1e-9 / count if used else None,
        reason="CPU time was not read",
        samples=count,
    )


def _drop_those_of_the_client(collector: Collector) -> None:
    """Drop what the process says of itself where it only asked a service."""
    for name in _OF_THE_PROCESS:
        collector.quantities.pop(name, None)
    collector.reject(_OF_THE_PROCESS, "a service runs the model, and only its client was seen")


def _add_utilisation(collector: Collector, measurements: Sequence[Measurement]) -> None:
    """CPU time of all workers by what their CPUs offered in the timed blocks."""
    offered = sum(measurement.samples.wall_ns * measurement.cpus for measurement in measurements)
    used = sum(measurement.samples.cpu_ns for measurement in measurements)
    is_known = bool(used and offered and all(measurement.cpus for measurement in measurements))
    collector.add(
        "cpu_utilisation",
        used / offered if is_known else None,
        reason="the number of CPUs is not known" if used else "CPU time was not read",
        samples=len(measurements),
    )


def _add_startup(collector: Collector, case: Case, measurements: Sequence[Measurement]) -> None:
    read: dict[str, Callable[[Measurement], int | None]] = {
        "import_time": lambda measurement: measurement.startup.import_ns,
        "build_time": lambda measurement: measurement.startup.build_ns,
        "compile_time": lambda measurement: measurement.startup.compile_ns,
        "session_create": lambda measurement: measurement.startup.session_create_ns,
        "first_inference": lambda measurement: measurement.startup.answer_ns,
        "ready_time": lambda measurement: measurement.startup.ready_ns,
        "warmup": lambda measurement: measurement.warm_up.total_ns,
    }
    compiled = [worker.startup.compiled_bytes for worker in measurements]
    sizes = [size for size in compiled if size is not None]
    made = case.variant.compilation
    if made is not None:
        collector.add("compile_time", made.compile_ns * 1e-9)
        sizes = [made.size_bytes]
    collector.add(
        "compiled_size",
        max(sizes, default=None),
        reason="the size of what was compiled in advance is not known",
        samples=len(sizes),
    )
    warm = [worker for worker in measurements if worker.startup.cache == "warm"]
    if warm:
        loaded = sorted(worker.startup.session_create_ns * 1e-9 for worker in warm)
        collector.add("session_create_warm", median(loaded), samples=len(loaded))
    else:
        collector.add("session_create_warm", None, reason="no worker found a cached engine")
    for name, value_of in read.items():
        if name in collector.quantities:
            continue
        # An engine that was built before is another thing: neither its loading nor its first run
        # is that of a cold start.
        cold = (
            measurements if name in _OF_ALL_STARTS else [m for m in measurements if m not in warm]
        )
        if not cold:
            collector.add(name, None, reason="every worker found a cached engine")
            continue
        known = [value for value in map(value_of, cold) if value is not None]
        if not known:
            collector.add(name, None, reason=_ABSENT[name])
            continue
        values = sorted(value * 1e-9 for value in known)
        ranks = interval_ranks(50, len(values))
        collector.add(
            name,
            median(values),
            low=None if ranks is None else values[ranks[0] - 1],
            high=None if ranks is None else values[ranks[1] - 1],
            samples=len(values),
        )


def _add_memory(collector: Collector, measurements: Sequence[Measurement]) -> None:
    """The largest of the workers: a peak is what has to fit."""
    memories = [measurement.memory for measurement in measurements]
    for name, source_field in MEMORY_FIELDS.items():
        values = (getattr(memory, source_field) for memory in memories)
        known = [value for value in values if value is not None]
        source = memories[0].device_source if name == "device_memory" else memories[0].source
        collector.add(
            name,
            max(known, default=None),
            reason=f"not measured: {source or 'no source'}",
            samples=len(known),
        )


def _add_zeros(collector: Collector, case: Case) -> None:
    """Add the share of zeros, which the file as it is was looked at for."""
    converted = bool(case.variant.recipe)
    share = None if converted else case.model.zero_share
    reason = "a converted file" if converted else "no weights were counted"
    collector.add("weight_zeros", share, reason=reason)


def _add_placement(collector: Collector, result: CaseResult) -> None:
    placement, provider = result.placement, result.case.provider
    missing = (
        missing_evidence(placement)
        if provider.is_execution_provider
        else f"{provider.name} has no execution providers"
    )
    if placement is None or missing:
        collector.reject(("placement", "time_on_provider"), _reason(result) or missing)
        return
    collector.add(
        "placement",
        placement_ratio(placement),
        reason="no computing node was seen, or nodes inside a partition are hidden",
    )
    collector.add("time_on_provider", time_ratio(placement), reason="the node events hold no times")
