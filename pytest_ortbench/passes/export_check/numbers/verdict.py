"""Whether an export answers what its source does: its judgement, its flag and its metric."""

from __future__ import annotations

from pytest_ortbench.analysis.accuracy_figures import is_equal
from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.nearness import holds_whole, is_compared
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.export_check.facts import ExportCheck
from pytest_ortbench.passes.export_check.numbers.evidence import (
    checked_outputs,
    why_unjudged,
    why_unknown,
)
from pytest_ortbench.passes.export_check.numbers.faults import export_faults
from pytest_ortbench.passes.export_check.numbers.words import (
    difference_words,
    differing_words,
    fault_words,
)

EXPORT = "export"
_METRICS = ("export_sqnr",)


def is_due(result: CaseResult) -> bool:
    """Whether a result has to answer what a source does: an ONNX file's, not the framework's."""
    return result.export_check is not None and result.case.provider.role != "framework"


def judge_export(result: CaseResult) -> Judgement | None:
    """Judge whether a case answers what its source does; ``None`` where nobody asked."""
    check = result.export_check
    if check is None or not is_due(result):
        return None
    faults = export_faults(check, result.case.model)
    if faults:
        return bad(EXPORT, "; ".join(map(fault_words, faults)))
    missing = why_unjudged(check, result.case.model)
    return unjudged(EXPORT, missing) if missing else good(EXPORT)


def wrong_export(result: CaseResult) -> str:
    """Say how a case answers something else than its source; empty if it does not."""
    judgement = judge_export(result)
    if judgement is None or not judgement.is_bad:
        return ""
    where = difference_words(result.export_check)
    return f"{judgement.reason}; {where}" if where else judgement.reason


def export_sqnr_db(check: ExportCheck) -> float | None:
    """Return how near the worst output is to the source's; ``None`` where none differs."""
    known = [output.sqnr_db for output in checked_outputs(check) if output.sqnr_db is not None]
    return min(known, default=None)


def add_export(collector: Collector, result: CaseResult) -> None:
    """Add how near the outputs are to the source's."""
    check = result.export_check
    if check is None or not is_due(result):
        reason = "it was exported from no source here, or nobody compared it with that"
        collector.reject(_METRICS, reason)
        return
    model = result.case.model
    missing = _why_no_ratio(check, model)
    value = export_sqnr_db(check)
    if missing:
        collector.reject(_METRICS, missing)
    elif value is not None:
        collector.add("export_sqnr", value, samples=check.samples)
    elif is_exact(check, model):
        collector.add_infinite("export_sqnr", reason="exact: no difference from the source")
    else:
        collector.reject(_METRICS, "no output has a signal to noise ratio")


def _why_no_ratio(check: ExportCheck, model: Model) -> str:
    """Why the ratio of some outputs, or at some sizes, would pass for that of the whole."""
    faults = export_faults(check, model)
    missing = why_unknown(check) if faults else why_unjudged(check, model)
    if missing:
        return missing
    if any(not output.finite for output in checked_outputs(check)):
        return "outputs hold NaN or infinity"
    refused = next((fault for fault in faults if fault.worst is None and fault.message), None)
    if refused is not None:
        return fault_words(refused)
    return differing_words(check, model)


def is_exact(check: ExportCheck, model: Model) -> bool:
    """Return whether every value of the source was compared and is given, and some are floats.

    Args:
        check: What both sides answered.
        model: The exported one.
    """
    outputs = [
        output
        for choice in check.choices
        for output in choice.outputs
        if output.name not in choice.empty
    ]
    return (
        not export_faults(check, model)
        and not why_unjudged(check, model)
        and all(is_equal(output) for output in outputs)
        and any(not holds_whole(output) and is_compared(output) for output in outputs)
    )
