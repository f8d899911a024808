"""What facts of an export must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_ortbench.core.nearness import differs_whole, holds_whole, is_compared
from pytest_ortbench.core.outcome import CaseResult, OutputAccuracy
from pytest_ortbench.passes.export_check.facts import (
    CheckedSizes,
    ExportCheck,
    FirstDifference,
    FixedSize,
)
from pytest_ortbench.schema.bound_kinds import FROM_ONE, Bound, Numbers

#: Differences smaller than this have no square in 64 bits, and so no ratio.
_LEAST_RELATIVE, _LEAST = 1e-50, 1e-100

#: What single values may be, beside what their units say. A dimension may have no size: an empty
#: past is a workload of its own.
BOUNDS: dict[tuple[type, str], Bound] = {
    (CheckedSizes, "samples"): Numbers(0, 10**6),
    (CheckedSizes, "sizes"): Numbers(0, 2**53),
    (FixedSize, "size"): FROM_ONE,
    (FixedSize, "tried"): FROM_ONE,
}


def _choice(choice: CheckedSizes) -> Iterator[tuple[str, str]]:
    if not set(choice.changed) <= set(choice.sizes):
        yield "changed", "must name some of sizes"
    if choice.outputs and not choice.samples:
        yield "outputs", "must be empty: no input set was answered"
    if choice.samples and not choice.outputs:
        yield "outputs", "must not be empty: input sets were answered"
    names = [output.name for output in choice.outputs]
    if len(set(names)) < len(names):
        yield "outputs", "must be of an output each"
    if choice.empty and not choice.samples:
        yield "empty", "must be empty: no input set was answered"
    elif len(set(choice.empty)) < len(choice.empty):
        yield "empty", "must name an output once"
    elif {output.name for output in choice.outputs if _has_values(output)} & set(choice.empty):
        yield "empty", "must name no output that has values"
    for number, output in enumerate(choice.outputs):
        for field, rule in _figures(output):
            yield f"outputs[{number}].{field}", rule


def _has_values(output: OutputAccuracy) -> bool:
    return is_compared(output) or bool(output.nonfinite or output.reference_nonfinite)


def _figures(output: OutputAccuracy) -> Iterator[tuple[str, str]]:
    """Figures of an output whose values at the measured magnitude are all counted.

    One of another shape or type is not looked at further: it counts as zeros, 0 dB at most.
    """
    counts = (output.nan_count, output.inf_count, output.nonfinite, output.reference_nonfinite)
    is_unfit = differs_whole(output) or (output.sqnr_db is not None and output.sqnr_db <= 0)
    if not output.finite and not any(counts) and not is_unfit:
        yield "finite", "must be true: no value is NaN or infinite"
    if output.finite and output.adds_nonfinite:
        yield "finite", "must be false: there are NaN or infinite values"
    if output.compared is None:
        yield "compared", "must not be null"
    if holds_whole(output):
        if output.agree is None or output.rows is None:
            yield "agree", "must not be null, nor rows: whole values are counted"
        return
    if output.sqnr_db is None and not output.exact and _has_noise(output):
        yield "sqnr_db", "must not be null: there is a difference"
    if output.exact and (output.sqnr_db is not None or output.max_abs):
        yield "exact", "must be false: there is a difference"


def _has_noise(output: OutputAccuracy) -> bool:
    if output.max_rel is not None:
        return output.max_rel > _LEAST_RELATIVE
    return output.max_abs is not None and output.max_abs > _LEAST


def _fixed(fixed: FixedSize) -> Iterator[tuple[str, str]]:
    if fixed.tried == fixed.size:
        yield "tried", "must be another one than size"
    if not fixed.inputs:
        yield "inputs", "must not be empty"


def _first_difference(first: FirstDifference) -> Iterator[tuple[str, str]]:
    if not first.node and not first.reason:
        yield "node", "must be named where no reason says why it is not"
    if first.matched > first.compared:
        yield "matched", f"must not be above {first.compared}, the parts that were compared"
    elif first.node and first.matched == first.compared:
        yield (
            "matched",
            f"must be below {first.compared}, the parts that were compared",
        )


def _check(check: ExportCheck) -> Iterator[tuple[str, str]]:
    for word in ("interrupted", "reason"):
        if getattr(check, word) and check.choices:
            yield "choices", f"must be empty: {word} says that nothing was compared"
    if not check.choices:
        for name in ("fixed", "confusions", "spread", "first_difference"):
            if getattr(check, name):
                yield name, "must be empty or null: nothing was compared"
        return
    if check.choices[0].changed:
        yield "choices[0].changed", "must be empty: the first sizes are the usual ones"
    if check.again_reason and check.repeats is not None and check.rebuilds is not None:
        yield "again_reason", "must be empty: the source answered again"
    for number, choice in enumerate(check.choices):
        if choice.sizes.keys() != check.choices[0].sizes.keys():
            yield f"choices[{number}].sizes", "must be of the dimensions of the first choice"


def _result(result: CaseResult) -> Iterator[tuple[str, str]]:
    check = result.export_check
    if check is None:
        return
    model = result.case.model
    if check.choices and (model.exported_from is None or result.case.provider.role == "framework"):
        yield "export_check", "must be null: the case runs no file that was exported from a source"
    names = {info.name for info in model.outputs}
    for number, confusion in enumerate(check.confusions):
        for field in ("output", "source_output"):
            if getattr(confusion, field) not in names:
                yield f"export_check.confusions[{number}].{field}", "must be an output of the model"
        if confusion.output == confusion.source_output:
            yield (
                f"export_check.confusions[{number}].source_output",
                "must be another output than the file's",
            )


#: What must agree within each type: the field that does not, and the rule that it breaks.
RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {
    CaseResult: _result,
    CheckedSizes: _choice,
    ExportCheck: _check,
    FixedSize: _fixed,
    FirstDifference: _first_difference,
}
