"""Every metric by name: names, units, directions. Marker, ini and command line share it."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_ortbench.core.errors import first_of_several, nearest
from pytest_ortbench.core.metric import FROM_ZERO, Metric, Reach, metric
from pytest_ortbench.core.placing import placed
from pytest_ortbench.passes.registry import PASSES

#: Metrics of the standard pass.
_STANDARD: tuple[Metric, ...] = (
    metric(
        "latency_p50",
        "latency_p50_s",
        "s",
        "lower",
        "Median time of one inference in steady state: the median of the workers' medians.",
    ),
    metric(
        "latency_p90",
        "latency_p90_s",
        "s",
        "lower",
        "90th percentile over all samples of all workers; needs 36 samples.",
    ),
    metric("latency_p95", "latency_p95_s", "s", "lower", "95th percentile; needs 72 samples."),
    metric("latency_p99", "latency_p99_s", "s", "lower", "99th percentile; needs 368 samples."),
    metric("latency_mean", "latency_mean_s", "s", "lower", "Mean time of one inference."),
    metric("latency_min", "latency_min_s", "s", "lower", "Smallest time of one inference."),
    metric(
        "latency_relative",
        "latency_relative",
        "1",
        "lower",
        "Time of one inference as a multiple of the work of the yardstick, whose blocks take "
        "turns with the model's: a matrix product and half a pass over memory, or a whole one for "
        "models of 2 ms and more on one thread; the median of the workers.",
        reach=Reach(low=0.0, has_low=False),
    ),
    metric(
        "latency_undisturbed",
        "latency_undisturbed_s",
        "s",
        "lower",
        "latency_relative times what that work of the yardstick takes in quiet minutes of this "
        "machine.",
    ),
    metric(
        "throughput",
        "throughput_per_s",
        "1/s",
        "higher",
        "Items per second of all callers (one by default): batch x inferences / timed seconds.",
        counted="items",
    ),
    metric(
        "import_time",
        "import_s",
        "s",
        "lower",
        "Importing ONNX Runtime, or the engine or framework that runs the case: median of the "
        "workers.",
    ),
    metric(
        "build_time",
        "build_s",
        "s",
        "lower",
        "Building the model from its source in its framework, weights included: median of the "
        "workers.",
    ),
    metric(
        "compile_time",
        "compile_s",
        "s",
        "lower",
        "Compiling the model in advance: by an engine that does so, median of the workers that "
        "found nothing compiled; by a provider (--ort-compiled), once, in a process of its own.",
    ),
    metric(
        "session_create",
        "session_create_s",
        "s",
        "lower",
        "Creating the session, reading the file included: median of the workers; where the "
        "provider caches engines, of those that had to build them.",
    ),
    metric(
        "session_create_warm",
        "session_create_warm_s",
        "s",
        "lower",
        "Creating the session from engines that the provider had cached: median of the workers "
        "that found some.",
    ),
    metric(
        "first_inference",
        "first_inference_s",
        "s",
        "lower",
        "The first call after creation: median of the workers.",
    ),
    metric(
        "ready_time",
        "ready_s",
        "s",
        "lower",
        "From the import to the first answer: import, provider, building, compiling, session and "
        "first inference together; median of the workers that found nothing compiled.",
    ),
    metric(
        "warmup",
        "warmup_s",
        "s",
        "lower",
        "Time until no trend was left: median of the workers.",
        reach=FROM_ZERO,
    ),
    metric(
        "peak_rss",
        "peak_rss_bytes",
        "bytes",
        "lower",
        "Peak rise of the resident size by the session and its runs, over the process with ONNX "
        "Runtime (or the engine or framework) loaded: largest of the workers.",
    ),
    metric(
        "process_peak_rss",
        "process_peak_rss_bytes",
        "bytes",
        "lower",
        "Absolute peak of the resident size of the measured process, which alone compares "
        "ONNX Runtime with engines and frameworks: largest of the workers.",
    ),
    metric(
        "session_rss",
        "session_rss_bytes",
        "bytes",
        "lower",
        "Rise of the resident size at the peak of session creation.",
    ),
    metric(
        "device_memory",
        "device_memory_bytes",
        "bytes",
        "lower",
        "Device memory in use by the case; see its source.",
    ),
    metric("model_size", "model_bytes", "bytes", "lower", "File plus external data."),
    metric(
        "compiled_size",
        "compiled_bytes",
        "bytes",
        "lower",
        "Size of what an engine compiled the model to in advance, largest of the workers; of an "
        "EPContext model that a provider compiled, file plus external data.",
    ),
    metric(
        "cpu_utilisation",
        "cpu_utilisation",
        "ratio",
        "lower",
        "CPU time of the process, all threads, as a share of what its CPUs offer in that time: "
        "100 % is all of them.",
    ),
    metric(
        "weight_zeros",
        "weight_zeros",
        "ratio",
        "higher",
        "Share of zeros among the weights with two axes or more, of the file as it is.",
    ),
    metric(
        "cpu_per_inference",
        "cpu_s_per_inference",
        "s",
        "lower",
        "CPU seconds of the process, all threads, per inference.",
    ),
    metric(
        "placement",
        "placement_ratio",
        "ratio",
        "higher",
        "Share of executed computing nodes that ran on the requested provider.",
    ),
    metric(
        "time_on_provider",
        "time_on_provider",
        "ratio",
        "higher",
        "Share of node time spent on the requested provider.",
    ),
    metric(
        "accuracy_finite",
        "accuracy_finite",
        "1",
        "higher",
        "1 if no NaN or infinity appeared, else 0.",
        is_yes_or_no=True,
    ),
    metric(
        "accuracy_max_abs",
        "accuracy_max_abs",
        "1",
        "lower",
        "Largest absolute error against the reference.",
        reach=FROM_ZERO,
    ),
    metric(
        "accuracy_cosine",
        "accuracy_cosine",
        "1",
        "higher",
        "Smallest cosine similarity with the reference.",
        reach=Reach(low=-1.0, high=1.0),
    ),
    metric(
        "accuracy_sqnr",
        "accuracy_sqnr_db",
        "dB",
        "higher",
        "Smallest signal to noise ratio against the reference.",
    ),
    metric(
        "accuracy_slices",
        "accuracy_slices_db",
        "dB",
        "higher",
        "The same over channels of an output that are much smaller than its others.",
    ),
    metric(
        "accuracy_top1",
        "accuracy_top1",
        "ratio",
        "higher",
        "Share of rows whose class agrees with the reference.",
    ),
)

METRICS: dict[str, Metric] = {
    entry.name: entry
    for entry in placed(
        _STANDARD,
        [(entry.metrics_place, own) for entry in PASSES for own in entry.metrics],
        lambda entry: entry.name,
    )
}

#: Passes that are carried out for a test because it names one of their metrics, by metric.
PASS_OF_METRIC: dict[str, str] = {
    own.name: entry.name for entry in PASSES if entry.is_asked_by_metrics for own in entry.metrics
}

#: What only a gate of two sides in one run has: how far their answers are apart.
SIDE_METRICS: dict[str, Metric] = {
    entry.name: entry
    for entry in (
        metric(
            "sides_sqnr",
            "sides_sqnr_db",
            "dB",
            "higher",
            "Smallest signal to noise ratio of the contender's outputs against the baseline's.",
        ),
        metric(
            "sides_agreement",
            "sides_agreement",
            "ratio",
            "higher",
            "Share of rows whose class, or whole value, is the baseline's.",
        ),
    )
}

#: What most people hold a model to, for those who look for a name.
_OFTEN_MEANT = ("latency_p50", "latency_p99", "throughput", "peak_rss", "model_size", "placement")

#: What people call a metric whose name is another word.
_OTHER_WORDS: dict[str, str] = {
    "accuracy": "accuracy_sqnr",
    "agreement": "accuracy_top1",
    "cold_start": "ready_time",
    "fps": "throughput",
    "ips": "throughput",
    "median": "latency_p50",
    "memory": "peak_rss",
    "qps": "throughput",
    "ram": "peak_rss",
    "speed": "latency_p50",
    "sqnr": "accuracy_sqnr",
    "time": "latency_p50",
    "vram": "device_memory",
}


def metric_hint(written: str, more: Iterable[str] = ()) -> str:
    """Return the nearest name of a metric, or some names and where the list of all stands.

    Args:
        written: What was written.
        more: What may stand in place of a metric.
    """
    others = list(more)
    known = [*others, *METRICS]
    first = first_of_several(written, known)
    if first:
        return f"Write only one, e.g. {first}"
    near = _other_word(written) or _with_part(written, known) or nearest(written, known)
    if near:
        return f"Did you mean {near!r}?"
    listed = ", ".join([*others, *(name for name in _OFTEN_MEANT if name not in others)])
    return (
        f"Write e.g. one of: {listed}. To see all {len(METRICS)} metrics, run 'ortbench export': "
        "they are columns"
    )


def _other_word(written: str) -> str:
    """Return the metric that a word of people stands for; empty for any other text."""
    name = _OTHER_WORDS.get(written.lower(), "")
    return name if name in METRICS else ""


def _with_part(written: str, known: Iterable[str]) -> str:
    """Return the first name that what was written is a part of: ``latency_p99`` for ``p99``."""
    parts = written.lower().split("_")
    for name in known:
        of_name = name.split("_")
        starts = range(len(of_name) - len(parts) + 1)
        if any(of_name[start : start + len(parts)] == parts for start in starts):
            return name
    return ""
