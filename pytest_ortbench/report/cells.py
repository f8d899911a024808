"""The columns that people see, in their units: one set for the terminal, Markdown and HTML.

Within one model a column keeps one unit and one number of decimals, so that eyes can compare it;
the unit stands in every cell, so that a line can be copied without its heading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pytest_ortbench.analysis.inaccuracy import ACCURACY
from pytest_ortbench.analysis.sentences import agreement_words, digits_for
from pytest_ortbench.core.interval import bounds_text
from pytest_ortbench.core.judgement import DRAWN_INPUTS
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.placing import placed
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.units import common_scale, significant
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.report.column import Column
from pytest_ortbench.report.entries import Entry, ModelGroup
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.legend import all_on_drawn_inputs

#: Below this, most of a number in full would be zeros.
_TINY = 1e-4
#: Below this, a number is read with effort in a unit that it shares with others.
_READABLE = 0.1
#: What stands for a number that was not measured and whose reason does not fit a cell.
NOTHING = "–"


COLUMNS: tuple[Column, ...] = (
    Column(
        key="case",
        heading="case",
        about="Precision, provider, batch size, further dimensions and settings.",
        row="case_id",
        right=False,
    ),
    Column(
        key="p50",
        heading="p50",
        about="Median latency of one inference: the median of the workers' medians.",
        row="latency_p50_s",
        metric="latency_p50",
    ),
    Column(
        key="interval",
        heading="95 % interval",
        about="95 % interval of the median over fresh processes, from the samples in each worker "
        "and the medians of the workers; with one or two workers it is widened by 5 % each "
        "way or more.",
        interval_of="latency_p50",
        rank=1,
        right=False,
    ),
    Column(
        key="p90",
        heading="p90",
        about="90th percentile over the samples of all workers; it can lie below p50 where slow "
        "workers have few samples.",
        row="latency_p90_s",
        metric="latency_p90",
        beside="latency_p50",
        rank=6,
        is_detail=True,
    ),
    Column(
        key="p99",
        heading="p99",
        about="99th percentile over all workers; n<368 means too few samples for it.",
        row="latency_p99_s",
        metric="latency_p99",
        beside="latency_p50",
        rank=3,
    ),
    Column(
        key="items",
        heading="items/s",
        about="Items per second of all callers of the case together (one by default): batch × "
        "inferences ÷ timed seconds.",
        row="throughput_per_s",
        metric="throughput",
        rank=2,
    ),
    Column(
        key="create",
        heading="create",
        about="Creating the session, including reading the file; compiling in advance by an "
        "engine is counted separately.",
        row="session_create_s",
        metric="session_create",
        rank=8,
        is_detail=True,
    ),
    Column(
        key="first",
        heading="first",
        about="First inference after creation.",
        row="first_inference_s",
        metric="first_inference",
        rank=9,
        is_detail=True,
    ),
    Column(
        key="rss",
        heading="peak RSS",
        about="Peak rise of resident memory over the process with ONNX Runtime (or the engine) "
        "loaded.",
        row="peak_rss_bytes",
        metric="peak_rss",
        rank=4,
    ),
    Column(
        key="placed",
        heading="placed",
        about="Share of computing nodes that ran on the requested provider.",
        row="placement_ratio",
        metric="placement",
        rank=7,
    ),
    Column(
        key="accuracy",
        heading="accuracy",
        about="Worst signal to noise ratio against the fp32 reference, or rows whose class agrees.",
        row="accuracy_sqnr_db",
        metric="accuracy_sqnr",
        rank=5,
    ),
    Column(
        key="status",
        heading="status",
        about="ok, the flags that limit the number, or the reason why there is none.",
        row="status",
        right=False,
    ),
)

_EXTRA: tuple[Column, ...] = (
    Column(
        key="p95",
        heading="p95",
        about="95th percentile over all workers.",
        row="latency_p95_s",
        metric="latency_p95",
        beside="latency_p50",
    ),
    Column(
        key="min",
        heading="min",
        about="Smallest latency.",
        row="latency_min_s",
        metric="latency_min",
        beside="latency_p50",
    ),
    Column(
        key="mean",
        heading="mean",
        about="Mean latency.",
        row="latency_mean_s",
        metric="latency_mean",
        beside="latency_p50",
    ),
    Column(
        key="undisturbed",
        heading="undisturbed",
        about="Latency in quiet minutes of this machine, from blocks of a yardstick that took "
        "turns with the model.",
        row="latency_undisturbed_s",
        metric="latency_undisturbed",
        beside="latency_p50",
    ),
    Column(
        key="relative",
        heading="relative",
        about="Latency as a multiple of the work of the yardstick: a product and passes over "
        "memory.",
        row="latency_relative",
        metric="latency_relative",
    ),
    Column(
        key="import",
        heading="import",
        about="Importing ONNX Runtime, or the engine that takes its place.",
        row="import_s",
        metric="import_time",
    ),
    Column(
        key="build",
        heading="build",
        about="Building the model from its source in its framework, weights included.",
        row="build_s",
        metric="build_time",
    ),
    Column(
        key="compile",
        heading="compile",
        about="Compiling the model in advance, for engines that do so.",
        row="compile_s",
        metric="compile_time",
        rank=10,
        is_detail=True,
    ),
    Column(
        key="ready",
        heading="ready",
        about="From the import to the first answer: all parts of a start together.",
        row="ready_s",
        metric="ready_time",
        rank=8,
    ),
    Column(
        key="process",
        heading="process",
        about="Resident memory of the whole process at its peak, which compares ONNX Runtime with "
        "engines and frameworks.",
        row="process_peak_rss_bytes",
        metric="process_peak_rss",
        rank=4,
    ),
    Column(
        key="compiled",
        heading="compiled",
        about="Size of what an engine or provider compiled the model to.",
        row="compiled_bytes",
        metric="compiled_size",
    ),
    Column(
        key="version",
        heading="version",
        about="Version of the engine or framework that runs the model in place of ONNX Runtime.",
        row="engine_version",
        right=False,
    ),
    Column(
        key="warmup",
        heading="warm-up",
        about="Time until no trend was left.",
        row="warmup_s",
        metric="warmup",
    ),
    Column(
        key="utilisation",
        heading="CPU use",
        about="CPU time as a share of what the CPUs of the process offer.",
        row="cpu_utilisation",
        metric="cpu_utilisation",
    ),
    Column(
        key="cpu",
        heading="CPU/inf",
        about="CPU seconds per inference, all threads.",
        row="cpu_s_per_inference",
        metric="cpu_per_inference",
    ),
    Column(
        key="device",
        heading="device mem",
        about="Device memory in use by the case.",
        row="device_memory_bytes",
        metric="device_memory",
    ),
    Column(
        key="size",
        heading="model size",
        about="File plus external data.",
        row="model_bytes",
        metric="model_size",
    ),
    Column(
        key="zeros",
        heading="zeros",
        about="Share of zeros among the weights with two axes or more.",
        row="weight_zeros",
        metric="weight_zeros",
    ),
    Column(
        key="samples",
        heading="samples",
        about="Steady-state inferences over all workers.",
        row="samples",
    ),
    Column(
        key="workers",
        heading="workers",
        about="Fresh processes that finished.",
        row="workers",
    ),
)

#: Shown only when asked for: more of what was measured.
EXTRA_COLUMNS: tuple[Column, ...] = placed(
    _EXTRA,
    [
        (place, column)
        for entry in PASSES
        if entry.shown_columns
        for place, column in entry.load(entry.shown_columns)
    ],
    lambda column: column.key,
)

ALL_COLUMNS: dict[str, Column] = {column.key: column for column in (*COLUMNS, *EXTRA_COLUMNS)}

#: Metrics whose interval is a column.
_WITH_INTERVAL = {column.interval_of for column in ALL_COLUMNS.values()} - {""}


def texts(
    group: ModelGroup, columns: Sequence[Column], groups: Sequence[ModelGroup] = ()
) -> list[dict[str, str]]:
    """Return the cells of one model's cases, by the key of the column.

    Columns of numbers get one unit each, and those of latencies one together.

    Args:
        group: The model.
        columns: The columns of its table.
        groups: All models of the table, which share units where numbers stay readable.
    """
    scales = _scales(group, columns, groups or (group,))
    made: list[dict[str, str]] = [{} for _ in group.entries]
    for column in columns:
        for cells, text in zip(made, _column(group, column, scales), strict=True):
            cells[column.key] = text
    return made


#: A factor, and the name of the unit that it stands for.
_Scale = tuple[float, str]


def _scales(
    group: ModelGroup, columns: Sequence[Column], groups: Sequence[ModelGroup]
) -> dict[str, _Scale]:
    """Return the unit of each kind of number, by the metric that columns of it are read beside."""
    kinds: dict[str, list[str]] = {}
    for column in columns:
        if column.metric:
            kinds.setdefault(column.beside or column.metric, []).append(column.metric)
        if column.interval_of:
            kinds.setdefault(column.interval_of, []).append(column.interval_of)
    scales = {}
    for kind, metrics in kinds.items():
        shared = _scale(_quantities(groups, metrics))
        own = _quantities((group,), metrics)
        least = min((abs(quantity.value) for quantity in own if quantity.value), default=0.0)
        # A model that is much faster than the others is read in its own unit.
        scales[kind] = shared if least >= _READABLE * shared[0] else _scale(own)
    return scales


def _quantities(groups: Sequence[ModelGroup], metrics: Sequence[str]) -> list[Quantity]:
    found = (
        entry.quantity(metric) for group in groups for entry in group.entries for metric in metrics
    )
    return [quantity for quantity in found if quantity is not None]


def leading_columns(columns: Sequence[Column]) -> set[str]:
    """Return the keys of the columns whose interval stands beside them."""
    metrics = {column.interval_of for column in columns} - {""}
    return {column.key for column in columns if column.metric in metrics}


def _column(group: ModelGroup, column: Column, scales: Mapping[str, _Scale]) -> list[str]:
    if column.key == "case":
        return [one_line(label) for label in group.labels]
    special: dict[str, Callable[[Entry], str]] = {
        "status": status,
        "accuracy": accuracy_text if all_on_drawn_inputs(group.entries) else accuracy_with_inputs,
    }
    if column.key in special:
        return [special[column.key](entry) for entry in group.entries]
    if column.interval_of:
        return _intervals(group, column.interval_of, scales[column.interval_of][0])
    if not column.metric:
        cells = [entry.row[column.row] for entry in group.entries]
        return ["" if cell is None else str(cell) for cell in cells]
    quantities = [entry.quantity(column.metric) for entry in group.entries]
    # A rate keeps one unit in all tables: the heading names it.
    is_rate = METRICS[column.metric].unit == "1/s"
    factor, unit = (1.0, "") if is_rate else scales[column.beside or column.metric]
    beside_interval = column.metric in _WITH_INTERVAL
    return [
        missing(entry, column)
        if quantity is None
        else f"{_number(quantity.value / factor, _digits(quantity) if beside_interval else 3)} "
        f"{unit}".rstrip()
        for entry, quantity in zip(group.entries, quantities, strict=True)
    ]


def _number(value: float, digits: int) -> str:
    """Return a number in few characters; one with more zeros than digits as a power of ten."""
    return f"{value:.2e}" if 0 < abs(value) < _TINY else significant(value, digits)


def _scale(quantities: Sequence[Quantity]) -> _Scale:
    if not quantities:
        return 1.0, ""
    return common_scale([quantity.value for quantity in quantities], quantities[0].unit)


def _intervals(group: ModelGroup, metric: str, factor: float) -> list[str]:
    medians = [entry.quantity(metric) for entry in group.entries]
    return ["" if quantity is None else _interval(quantity, factor) for quantity in medians]


def _interval(quantity: Quantity, factor: float) -> str:
    digits = _digits(quantity)
    return bounds_text(
        quantity.value,
        quantity.low,
        quantity.high,
        lambda value: significant(value / factor, digits),
    )


def _digits(quantity: Quantity) -> int:
    """As many digits as the answer shows of the same number."""
    return digits_for(quantity.value, quantity.low, quantity.high)


def missing(entry: Entry, column: Column) -> str:
    """Return what stands in a cell without a number: ``n<368``, or a dash where it says no more."""
    if not entry.measured:
        return ""
    needed = entry.summary.needed.get(column.metric)
    return NOTHING if needed is None else f"n<{needed}"


def status(entry: Entry) -> str:
    """Return ``ok``, the names of the flags, or the kind of the failure."""
    if not entry.measured:
        return entry.failed_as
    return " ".join(entry.flags) or "ok"


def accuracy_text(entry: Entry) -> str:
    """Return the accuracy in a few characters: ``exact``, ``96.3 dB``, ``top-1 8/8 (≥63 %)``,
    ``NaN/Inf``, ``3/60 differ``, ``not judged``.

    Behind it what passes know of the answers, as scores: ``34.1 dB, task 0.912``.
    """
    against = _against_reference(entry)
    further = [own.load(own.beside_accuracy)(entry.result) for own in PASSES if own.beside_accuracy]
    words = ", ".join(filter(None, (against, *further)))
    return words or (NOTHING if entry.measured else "")


def accuracy_with_inputs(entry: Entry) -> str:
    """Return the accuracy, and that it was judged on random inputs where it was."""
    drawn = DRAWN_INPUTS if entry.summary.on_drawn_inputs else ""
    return ", ".join(filter(None, (accuracy_text(entry), drawn)))


def _against_reference(entry: Entry) -> str:
    finite = entry.quantity("accuracy_finite")
    if finite is not None and not finite.value:
        return "NaN/Inf"
    worst_db = entry.summary.worst_db
    if worst_db is not None:
        return f"{significant(worst_db, 3)} dB"
    if entry.summary.exact:
        return "exact"
    agreement = entry.quantity("accuracy_top1")
    if agreement is not None:
        return f"top-1 {agreement_words(agreement)}"
    if any(
        judgement.of == ACCURACY and judgement.is_unjudged for judgement in entry.summary.judgements
    ):
        return "not judged"
    return "" if finite is None else _whole_values(entry)


def _whole_values(entry: Entry) -> str:
    """Say how many values of the worst output differ, where values are compared whole."""
    outputs = entry.result.accuracy.outputs if entry.result.accuracy is not None else ()
    counted = [
        (output.rows, output.agree)
        for output in outputs
        if output.rows and output.agree is not None
    ]
    if not counted:
        return ""
    rows, agree = max(counted, key=lambda pair: (pair[0] - pair[1]) / pair[0])
    return f"{rows - agree}/{rows} differ" if agree < rows else "equal"
