"""One flat row a case: what tables, exports and spreadsheets are made of."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_ortbench.analysis.chains import nodes_by_link
from pytest_ortbench.analysis.input_sizes import resolved_sizes
from pytest_ortbench.analysis.judgements import unjudged_words
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.judgement import DRAWN_INPUTS
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.outcome import CaseResult, Placement
from pytest_ortbench.core.placement import is_whole
from pytest_ortbench.core.placing import placed
from pytest_ortbench.core.run import Run
from pytest_ortbench.passes.registry import PASSES

#: What a cell may hold; ``None`` where nothing was measured.
Cell = int | float | str | None

#: Columns of a row without those of passes. The order of the first block is fixed; more may follow
#: it, and none ever changes its meaning.
_STANDARD: tuple[str, ...] = (
    "case_id",
    "model",
    "precision",
    "provider",
    "device",
    "runtime",
    "batch",
    "dims",
    "threads",
    "concurrency",
    "status",
    "workers",
    "samples",
    "latency_p50_s",
    "latency_p50_low_s",
    "latency_p50_high_s",
    "latency_p90_s",
    "latency_p95_s",
    "latency_p99_s",
    "latency_mean_s",
    "latency_min_s",
    "throughput_per_s",
    "session_create_s",
    "first_inference_s",
    "warmup_s",
    "peak_rss_bytes",
    "process_peak_rss_bytes",
    "session_rss_bytes",
    "device_memory_bytes",
    "model_bytes",
    "cpu_utilisation",
    "cpu_s_per_inference",
    "nodes_on_provider",
    "nodes_total",
    "partitions",
    "ops_elsewhere",
    "time_on_provider",
    "precision_executed",
    "accuracy_finite",
    "accuracy_max_abs",
    "accuracy_cosine",
    "accuracy_sqnr_db",
    "accuracy_top1",
    "flags",
    "message",
    # Appended.
    "placement_ratio",
    "latency_spread",
    "io",
    "session_providers",
    "runtime_version",
    "stop",
    "hint",
    "case_s",
    "host",
    "run_id",
    "sessions",
    "session_create_warm_s",
    "unjudged",
    "weight_zeros",
    "accuracy_inputs",
    "role",
    "engine_version",
    "import_s",
    "build_s",
    "compile_s",
    "ready_s",
    "compiled_bytes",
    "latency_relative",
    "latency_relative_low",
    "latency_relative_high",
    "latency_undisturbed_s",
    "latency_undisturbed_low_s",
    "latency_undisturbed_high_s",
    "yardstick",
    "accuracy_slices_db",
    "nodes_by_link",
    "fixed_dims",
    "product_bits",
)

#: Columns of a row.
COLUMNS: tuple[str, ...] = placed(
    _STANDARD,
    [
        (place, column)
        for entry in PASSES
        for place, columns in entry.placed_columns
        for column in columns
    ],
    str,
)

#: Metrics whose intervals are columns, and these.
_ENDS: tuple[tuple[str, str, str], ...] = (
    ("latency_p50", "latency_p50_low_s", "latency_p50_high_s"),
    ("latency_relative", "latency_relative_low", "latency_relative_high"),
    ("latency_undisturbed", "latency_undisturbed_low_s", "latency_undisturbed_high_s"),
)

#: Metrics whose numbers are whole.
_WHOLE_UNITS = ("bytes",)


def row(result: CaseResult, run: Run, summary: Summary) -> dict[str, Cell]:
    """Return one case as a flat row with exactly :data:`COLUMNS`, in that order, in SI units.

    ``dims`` and ``ops_elsewhere`` are written ``name:value`` with blanks between, ``flags`` as
    names with blanks between. ``dims`` holds every symbolic dimension but the batch, also those
    that nobody set. ``message`` says why there is no number, empty columns of a
    measured case stay ``None``. ``role`` says what ``provider`` names: an execution ``provider``,
    another ``engine`` or a ``framework``, whose version is ``engine_version``; its process has no
    ``runtime_version``. ``unjudged`` names the judgements that
    could not be made, each with its reason. ``accuracy_inputs`` is ``random inputs`` where the
    verdict on the answers rests on these alone, and empty otherwise. ``yardstick`` says what
    ``latency_relative`` is a multiple of; rows of different ones do not compare.

    Args:
        result: The case.
        run: The run that it belongs to.
        summary: Its numbers.
    """
    case = result.case
    first = result.measurements[0] if result.measurements else None
    cells: dict[str, Cell] = dict.fromkeys(COLUMNS)
    cells.update(
        case_id=case.case_id,
        model=case.model.name,
        precision=case.variant.precision,
        provider=case.provider.label if case.provider.then else case.provider.alias,
        role=case.provider.role,
        device=None if case.provider.then else case.provider.device or None,
        runtime=case.runtime.label,
        batch=case.batch,
        dims=_pairs({name: resolved.size for name, resolved in resolved_sizes(case).items()})
        or None,
        fixed_dims=_pairs(case.session.fixed_dims) or None,
        threads=(first.threads or None) if first else case.session.intra_op_num_threads,
        concurrency=case.concurrency,
        sessions=case.sessions,
        status=result.status,
        workers=summary.workers,
        samples=summary.samples,
        flags=" ".join(flag.name for flag in result.flags) or None,
        message=result.failure.message if result.failure else None,
        latency_spread=summary.spread if result.failure is None else None,
        io=case.io,
        runtime_version=(first.runtime.version if first else _version_of(result, run)) or None,
        engine_version=(first.runtime.engine_version if first else "") or None,
        stop=" ".join(dict.fromkeys(entry.stop for entry in result.measurements)) or None,
        hint=(result.failure.hint or None) if result.failure else None,
        case_s=result.wall_s or None,
        host=run.host_of(result),
        run_id=run.run_id,
        unjudged=unjudged_words(summary.judgements) or None,
        accuracy_inputs=DRAWN_INPUTS if summary.on_drawn_inputs else None,
        yardstick=_yardstick(result),
        product_bits=result.kept_bits,
    )
    cells.update(numbers(summary))
    for entry in PASSES:
        if entry.cells:
            cells.update(entry.load(entry.cells)(result))
    if result.placement is not None:
        cells.update(_placement_cells(result.placement))
    return cells


def _yardstick(result: CaseResult) -> str | None:
    """Name what took turns with the model, so that numbers of one yardstick can be told."""
    identities = {
        measurement.yardstick.yardstick.identity
        for measurement in result.measurements
        if measurement.yardstick is not None and measurement.yardstick.yardstick is not None
    }
    return " / ".join(sorted(identities)) or None


def numbers(summary: Summary) -> dict[str, Cell]:
    """Return the columns of a row that are metrics, without those that were not measured."""
    cells: dict[str, Cell] = {}
    for name, quantity in summary.quantities.items():
        metric = METRICS[name]
        whole = metric.unit in _WHOLE_UNITS or metric.is_yes_or_no
        cells[metric.column] = round(quantity.value) if whole else quantity.value
    for name, low, high in _ENDS:
        interval = summary.quantities.get(name)
        if interval is not None:
            cells[low], cells[high] = interval.low, interval.high
    return cells


def _placement_cells(placement: Placement) -> dict[str, Cell]:
    # Where the profile proves nothing, nobody shall compute a share from what was planned.
    whole = is_whole(placement)
    return {
        "nodes_on_provider": placement.nodes_on_provider if whole else None,
        "nodes_total": placement.nodes_total if whole else None,
        "partitions": placement.partitions,
        "ops_elsewhere": _pairs(placement.ops_elsewhere) or None,
        "precision_executed": placement.precision_executed,
        "session_providers": " ".join(placement.session_providers) or None,
        "nodes_by_link": _pairs(nodes_by_link(placement)) or None,
    }


def _pairs(values: Mapping[str, int]) -> str:
    return " ".join(f"{name}:{value}" for name, value in values.items())


def _version_of(result: CaseResult, run: Run) -> str | None:
    info = run.runtimes.get(result.case.runtime.label)
    return info.version if info and result.case.provider.is_execution_provider else None
