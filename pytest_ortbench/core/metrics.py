"""The one registry of metrics: names, units, directions. Marker, ini and command line share it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number that a case can have.

    Attributes:
        name: As written in limits: ``latency_p90``.
        column: As in exported rows: ``latency_p90_s``.
        unit: SI unit, a key of :data:`pytest_ortbench.core.units.FACTORS`.
        better: ``lower`` or ``higher``.
        description: One sentence: what it is and what it includes.
        counted: What a rate counts, ``items`` or ``requests``; empty for other units.
    """

    name: str
    column: str
    unit: str
    better: str
    description: str
    counted: str = ""


def _metric(
    name: str, column: str, unit: str, better: str, text: str, counted: str = ""
) -> tuple[str, Metric]:
    return name, Metric(
        name=name, column=column, unit=unit, better=better, description=text, counted=counted
    )


def _soak_metrics() -> Iterator[tuple[str, Metric]]:
    yield _metric(
        "memory_growth",
        "memory_growth_bytes",
        "bytes",
        "lower",
        "Growth of resident memory per thousand inferences of a soak, after its warm-up "
        "(--ort-soak).",
    )
    yield _metric(
        "leaks",
        "leaks",
        "1",
        "lower",
        "1 if memory was seen to grow on and on in a soak, 0 if not (--ort-soak).",
    )


#: Percentiles of a stage, and the samples that each needs.
_STAGE_PERCENTILES = {"p50": "median", "p90": "90th percentile", "p99": "99th percentile"}

_STAGES = {
    "preprocess": "the user's preprocessing of a frame",
    "frame_inference": "inference within a frame",
    "postprocess": "the user's postprocessing of a frame",
    "frame": "a whole frame: preprocessing, inference, postprocessing",
}


def _stage_metrics() -> Iterator[tuple[str, Metric]]:
    for stage, what in _STAGES.items():
        for name, percentile in _STAGE_PERCENTILES.items():
            text = f"Time of {what}, {percentile}; by the rules of latency (--ort-stages)."
            yield _metric(f"{stage}_{name}", f"{stage}_{name}_s", "s", "lower", text)
    yield _metric(
        "frame_rate",
        "frame_rate_per_s",
        "1/s",
        "higher",
        "Items per second through the stages, one frame after the other.",
        counted="items",
    )
    yield _metric(
        "pipeline_rate",
        "pipeline_rate_per_s",
        "1/s",
        "higher",
        "Items per second through the stages, a thread for each, so that they overlap.",
        counted="items",
    )


METRICS: dict[str, Metric] = dict(
    (
        _metric(
            "latency_p50",
            "latency_p50_s",
            "s",
            "lower",
            "Median time of one inference in steady state: the median of the workers' medians.",
        ),
        _metric(
            "latency_p90",
            "latency_p90_s",
            "s",
            "lower",
            "90th percentile over all samples of all workers; needs 36 samples.",
        ),
        _metric("latency_p95", "latency_p95_s", "s", "lower", "95th percentile; needs 72 samples."),
        _metric(
            "latency_p99", "latency_p99_s", "s", "lower", "99th percentile; needs 368 samples."
        ),
        _metric("latency_mean", "latency_mean_s", "s", "lower", "Mean time of one inference."),
        _metric("latency_min", "latency_min_s", "s", "lower", "Smallest time of one inference."),
        _metric(
            "throughput",
            "throughput_per_s",
            "1/s",
            "higher",
            "Items per second of all callers (one, if not asked otherwise): batch x inferences / "
            "timed seconds.",
            counted="items",
        ),
        _metric(
            "session_create",
            "session_create_s",
            "s",
            "lower",
            "Creating the session, reading the file included: median of the workers; where the "
            "provider caches engines, of those that had to build them.",
        ),
        _metric(
            "session_create_warm",
            "session_create_warm_s",
            "s",
            "lower",
            "Creating the session from engines that the provider had cached: median of the workers "
            "that found some.",
        ),
        _metric(
            "first_inference",
            "first_inference_s",
            "s",
            "lower",
            "The first call after creation: median of the workers.",
        ),
        _metric(
            "session_create_disk",
            "session_create_disk_s",
            "s",
            "lower",
            "Creating the session with the model's files out of the page cache, so that they come "
            "from disk: median of fresh processes (--ort-startup).",
        ),
        _metric(
            "session_create_cached",
            "session_create_cached_s",
            "s",
            "lower",
            "Creating the session with the model's files in the page cache: median of fresh "
            "processes (--ort-startup).",
        ),
        _metric(
            "first_inference_shape",
            "first_inference_shape_s",
            "s",
            "lower",
            "The first inference of a further shape in a session that has run another: the slowest "
            "of the shapes' medians over fresh processes (--ort-startup).",
        ),
        _metric(
            "warmup",
            "warmup_s",
            "s",
            "lower",
            "Time until no trend was left: median of the workers.",
        ),
        _metric(
            "peak_rss",
            "peak_rss_bytes",
            "bytes",
            "lower",
            "Rise of the resident size at its peak, session and runs, over the process with "
            "ONNX Runtime loaded: largest of the workers.",
        ),
        _metric(
            "process_peak_rss",
            "process_peak_rss_bytes",
            "bytes",
            "lower",
            "Absolute peak of the resident size of the measured process.",
        ),
        _metric(
            "session_rss",
            "session_rss_bytes",
            "bytes",
            "lower",
            "Rise of the resident size at the peak of session creation.",
        ),
        _metric(
            "device_memory",
            "device_memory_bytes",
            "bytes",
            "lower",
            "Device memory in use by the case; see its source.",
        ),
        _metric("model_size", "model_bytes", "bytes", "lower", "File plus external data."),
        _metric(
            "cpu_per_inference",
            "cpu_s_per_inference",
            "s",
            "lower",
            "CPU seconds of the process, all threads, per inference.",
        ),
        _metric("power", "power_w", "W", "lower", "Gross mean power of the device under load."),
        _metric(
            "energy_per_inference",
            "energy_per_inference_j",
            "J",
            "lower",
            "Gross energy of the device per inference.",
        ),
        _metric(
            "idle_power",
            "idle_power_w",
            "W",
            "lower",
            "Power of the device before the load, the session being open.",
        ),
        _metric(
            "energy_net_per_inference",
            "energy_net_per_inference_j",
            "J",
            "lower",
            "Energy of the device per inference above what it takes idle.",
        ),
        _metric(
            "placement",
            "placement_ratio",
            "ratio",
            "higher",
            "Share of executed computing nodes that ran on the asked provider.",
        ),
        _metric(
            "time_on_provider",
            "time_on_provider",
            "ratio",
            "higher",
            "Share of node time spent on the asked provider.",
        ),
        _metric(
            "accuracy_finite",
            "accuracy_finite",
            "1",
            "higher",
            "1 if no NaN or infinity appeared, else 0.",
        ),
        _metric(
            "accuracy_max_abs",
            "accuracy_max_abs",
            "1",
            "lower",
            "Largest absolute error against the reference.",
        ),
        _metric(
            "accuracy_cosine",
            "accuracy_cosine",
            "1",
            "higher",
            "Smallest cosine similarity with the reference.",
        ),
        _metric(
            "accuracy_sqnr",
            "accuracy_sqnr_db",
            "dB",
            "higher",
            "Smallest signal to noise ratio against the reference.",
        ),
        _metric(
            "accuracy_top1",
            "accuracy_top1",
            "ratio",
            "higher",
            "Share of rows whose class agrees with the reference.",
        ),
        _metric(
            "task_metric",
            "task_metric",
            "1",
            "higher",
            "Mean score on the labelled data of --ort-dataset: the share of right answers, or what "
            "its metric gives.",
        ),
        _metric(
            "task_ratio",
            "task_ratio",
            "ratio",
            "higher",
            "That metric as a share of the fp32 reference's on the same samples.",
        ),
        _metric(
            "task_kept",
            "task_kept",
            "ratio",
            "higher",
            "The share of the reference's task metric that is kept for certain: the lower end of "
            "the 95 % interval of the paired difference.",
        ),
        _metric(
            "load_valid",
            "load_valid",
            "1",
            "higher",
            "1 if MLPerf's load generator calls every load of the case VALID, else 0.",
        ),
        _metric(
            "load_rate",
            "load_rate_per_s",
            "1/s",
            "higher",
            "Requests answered a second in the first load of the case, if it is VALID.",
            counted="requests",
        ),
        _metric(
            "load_p50",
            "load_p50_s",
            "s",
            "lower",
            "Median latency of the first load, if it is VALID, counted from the scheduled arrival.",
        ),
        _metric("load_p90", "load_p90_s", "s", "lower", "90th percentile of the same latencies."),
        _metric("load_p99", "load_p99_s", "s", "lower", "99th percentile of the same latencies."),
        _metric(
            "load_peak",
            "load_peak_per_s",
            "1/s",
            "higher",
            "Highest rate of arrival that is VALID, as a search for the peak found it.",
            counted="requests",
        ),
        *_stage_metrics(),
        *_soak_metrics(),
    )
)

#: Metrics that only an energy pass gives.
ENERGY_METRICS = ("power", "energy_per_inference", "idle_power", "energy_net_per_inference")

#: Metrics that only a load pass gives.
LOAD_METRICS = ("load_valid", "load_rate", "load_p50", "load_p90", "load_p99", "load_peak")

#: Metrics that only a soak gives.
SOAK_METRICS = tuple(name for name, _ in _soak_metrics())

#: Metrics that only the start-up pass gives.
STARTUP_METRICS = ("session_create_disk", "session_create_cached", "first_inference_shape")

#: Metrics that only a pass over the user's stages gives.
STAGE_METRICS = tuple(name for name, _ in _stage_metrics())

#: Passes that are carried out for a test because it names one of their metrics, by metric.
PASS_OF_METRIC = {
    **dict.fromkeys(ENERGY_METRICS, "energy"),
    **dict.fromkeys(STARTUP_METRICS, "startup"),
}

#: What only a gate of two sides in one run has: how far their answers are apart.
SIDE_METRICS: dict[str, Metric] = dict(
    (
        _metric(
            "sides_sqnr",
            "sides_sqnr_db",
            "dB",
            "higher",
            "Smallest signal to noise ratio of the contender's outputs against the baseline's.",
        ),
        _metric(
            "sides_agreement",
            "sides_agreement",
            "ratio",
            "higher",
            "Share of rows whose class, or whole value, is the baseline's.",
        ),
    )
)
