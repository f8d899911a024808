"""Whether an export answers what its source does, and how near.

Both compute in float32, in another order and with other kernels, so they are never expected to be
equal. How far rounding may take them shows in the file alone, which is run again with one thread,
in float64, and on inputs moved by one unit in the last place: a difference ten times as large as
all of these is none of rounding. A wrong epsilon is seen by that (66 to 107 dB from its source),
and not by the floor of 60 dB that a provider has to keep.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.floors import miss
from pytest_ortbench.analysis.reference_spread import is_within_spread
from pytest_ortbench.core.accuracy import OutputAccuracy
from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.precision import SQNR_FLOOR_DB, Floor, precision_of
from pytest_ortbench.core.units import significant
from pytest_ortbench.passes.fidelity.facts import CheckedSizes, Confusion, ExportCheck

EXPORT = "export"
_METRICS = ("export_sqnr",)
#: As near as this to its source an fp32 export is in order, whatever its own spread: four units in
#: the last place of float32 in every value.
NEAR_DB = 120.0
#: Likewise where the file can't be run in float64, so that its spread says little of rounding: the
#: 1e-5 that converters promise.
_NEAR_UNKNOWN_DB = 100.0
#: Share of whole values that must agree: labels flip at ties.
_AGREEMENT = 0.99
#: Values inside may be three times as far off as the outputs are from themselves.
_INNER_DB = 10.0
#: Outputs that a sentence names.
_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFault:
    """One way in which an export answers something else than its source.

    Attributes:
        kind: ``swapped``, ``frozen``, ``refused`` or ``different``.
        outputs: Outputs of the file that are wrong; all of them where it did not run.
        dimension: The dimension that is frozen, empty otherwise.
        right_at: Sizes of it at which the file is right.
        wrong_at: Sizes of it at which it is wrong or does not run.
        confusion: Which output it is instead, where outputs are swapped.
        worst: The worst output, ``None`` where the file did not run.
        message: What the file said where it did not run.
    """

    kind: str
    outputs: tuple[str, ...] = ()
    dimension: str = ""
    right_at: tuple[int, ...] = ()
    wrong_at: tuple[int, ...] = ()
    confusion: Confusion | None = None
    worst: OutputAccuracy | None = None
    message: str = ""


def export_faults(check: ExportCheck, model: Model) -> tuple[ExportFault, ...]:
    """Return what is wrong with an export; nothing where nothing is, or where that is not known.

    Args:
        check: What both sides answered.
        model: The exported one.
    """
    if why_unknown(check):
        return ()
    wrong = {
        index: outputs
        for index, choice in enumerate(check.choices)
        if (outputs := _wrong(choice, check, model)) is not None
    }
    faults = [
        ExportFault(kind="swapped", outputs=(confusion.output,), confusion=confusion)
        for confusion in check.confusions
    ]
    swapped = {confusion.output for confusion in check.confusions}
    left = {
        index: outputs
        for index, outputs in wrong.items()
        if not outputs or any(output.name not in swapped for output in outputs)
    }
    frozen, explained = _frozen(check.choices, left)
    faults += frozen
    rest = {index: outputs for index, outputs in left.items() if index not in explained}
    refused = [check.choices[index].file_reason for index, outputs in rest.items() if not outputs]
    if refused:
        faults.append(ExportFault(kind="refused", message=refused[0]))
    far = [output for outputs in rest.values() for output in outputs if output.name not in swapped]
    if far:
        names = tuple(dict.fromkeys(output.name for output in far))
        worst = min(far, key=_order)
        faults.append(ExportFault(kind="different", outputs=names, worst=worst))
    return tuple(faults)


def _wrong(
    choice: CheckedSizes, check: ExportCheck, model: Model
) -> tuple[OutputAccuracy, ...] | None:
    """Outputs that are wrong at a choice of sizes; none where the file does not run.

    ``None`` where nothing is wrong, or the source does not take these sizes.
    """
    if choice.file_reason and not choice.samples:
        return None if choice.source_reason else ()
    outputs = tuple(output for output in choice.outputs if _is_wrong(output, check, model))
    return outputs or None


def _is_wrong(output: OutputAccuracy, check: ExportCheck, model: Model) -> bool:
    """Whether the difference of an output from the source's is none of rounding."""
    types = {info.name: info.type for info in model.outputs}
    floor = Floor(sqnr_db=near_db(check, model), agreement=_AGREEMENT, of="rounding")
    if not miss(output, types.get(output.name, ""), floor):
        return False
    return not is_within_spread(check.spread, output)


def near_db(check: ExportCheck, model: Model) -> float:
    """Return how near to its source an export is in order, whatever its own spread."""
    precision = precision_of(model)
    if precision != "fp32":
        return SQNR_FLOOR_DB.get(precision, SQNR_FLOOR_DB["int8-static"])
    trials = check.spread.trials if check.spread is not None else ()
    wide = any(trial.name == "float64" and trial.outputs for trial in trials)
    return NEAR_DB if wide else _NEAR_UNKNOWN_DB


def inner_near_db(check: ExportCheck, model: Model) -> float:
    """Return how near values inside the model have to be to agree.

    Rounding adds up on the way to the outputs, so what these may lose, inner values may, too.
    """
    trials = check.spread.trials if check.spread is not None else ()
    spread = [
        output.sqnr_db for trial in trials for output in trial.outputs if output.sqnr_db is not None
    ]
    return min([near_db(check, model), *(value - _INNER_DB for value in spread)])


def _frozen(
    choices: Sequence[CheckedSizes], wrong: dict[int, tuple[OutputAccuracy, ...]]
) -> tuple[list[ExportFault], set[int]]:
    """Dimensions at some sizes of which the file is right, and at others wrong; and by which."""
    faults: list[ExportFault] = []
    explained: set[int] = set()
    names = dict.fromkeys(name for choice in choices for name in choice.changed)
    for name in names:
        alone = [index for index, choice in enumerate(choices) if set(choice.changed) <= {name}]
        right = [index for index in alone if index not in wrong and choices[index].samples]
        bad_ones = [index for index in alone if index in wrong]
        if not right or not bad_ones:
            continue
        outputs = [output for index in bad_ones for output in wrong[index]]
        faults.append(
            ExportFault(
                kind="frozen",
                outputs=tuple(dict.fromkeys(output.name for output in outputs)),
                dimension=name,
                right_at=_sizes(choices, right, name),
                wrong_at=_sizes(choices, bad_ones, name),
                worst=min(outputs, key=_order, default=None),
                message=next(
                    (choices[index].file_reason for index in bad_ones if not wrong[index]), ""
                ),
            )
        )
        explained |= set(bad_ones)
    for fault in faults:
        # Where the usual size is a wrong one, all choices that keep it are wrong by it.
        explained |= {
            index
            for index in wrong
            if fault.dimension in choices[index].changed
            or choices[index].sizes.get(fault.dimension) in fault.wrong_at
        }
    return faults, explained


def _sizes(choices: Sequence[CheckedSizes], indexes: Iterable[int], name: str) -> tuple[int, ...]:
    return tuple(sorted({choices[index].sizes[name] for index in indexes}))


def _order(output: OutputAccuracy) -> float:
    return -math.inf if output.sqnr_db is None else output.sqnr_db


def why_unknown(check: ExportCheck) -> str:
    """Say why an export can't be judged; empty if it can."""
    if check.reason:
        return check.reason
    if check.repeats is False:
        return (
            "the source gives other outputs for the same inputs each time, as dropout does in "
            "training mode; its function should return a model in evaluation mode"
        )
    if check.rebuilds is False:
        return (
            "the source is another model each time it is loaded; its function should set a seed, "
            "or load weights"
        )
    compared = [choice for choice in check.choices if choice.samples and choice.outputs]
    refused = [
        choice for choice in check.choices if choice.file_reason and not choice.source_reason
    ]
    if not compared and not refused:
        reasons = [choice.source_reason for choice in check.choices if choice.source_reason]
        return reasons[0] if reasons else "nothing was compared"
    if any(choice.source_reason for choice in check.choices[:1]):
        return f"the source fails at the usual sizes: {check.choices[0].source_reason}"
    return ""


def is_due(result: CaseResult) -> bool:
    """Whether a result has to answer what a source does: an ONNX file's, not the framework's."""
    return result.fidelity is not None and result.case.provider.role != "framework"


def judge_export(result: CaseResult) -> Judgement | None:
    """Judge whether a case answers what its source does; ``None`` where nobody asked."""
    check = result.fidelity
    if check is None or not is_due(result):
        return None
    faults = export_faults(check, result.case.model)
    if faults:
        return bad(EXPORT, "; ".join(map(fault_words, faults)))
    missing = why_unknown(check)
    return unjudged(EXPORT, missing) if missing else good(EXPORT)


def wrong_export(result: CaseResult) -> str:
    """Say how a case answers something else than its source; empty if it does not."""
    judgement = judge_export(result)
    if judgement is None or not judgement.is_bad:
        return ""
    where = parting_words(result.fidelity)
    return f"{judgement.reason}; {where}" if where else judgement.reason


def fault_words(fault: ExportFault) -> str:
    """Say what is wrong with an export."""
    if fault.kind == "swapped" and fault.confusion is not None:
        return (
            f"output {fault.confusion.output!r} holds what the source returns as "
            f"{fault.confusion.source_output!r}"
        )
    how = _how(fault)
    if fault.kind == "frozen":
        return (
            f"dimension {fault.dimension!r} is frozen at {_listed(fault.right_at)}: at "
            f"{_listed(fault.wrong_at)} {how}"
        )
    return how


def _how(fault: ExportFault) -> str:
    if fault.worst is None:
        return f"the file fails where the source does not: {fault.message}"
    worst = fault.worst
    names = ", ".join(map(repr, fault.outputs[:_NAMED]))
    more = len(fault.outputs) - _NAMED
    which = f"output{'s' if len(fault.outputs) > 1 else ''} {names}"
    which += f" and {more} more" if more > 0 else ""
    if worst.adds_nonfinite:
        return f"{which}: NaN or infinity where the source has none"
    if worst.sqnr_db is not None:
        near = f"{significant(worst.sqnr_db, 3)} dB"
        return f"{which}: only {near} from the source's, which rounding does not explain"
    return f"{which}: only {worst.agree} of {worst.rows} values are the source's"


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))


def parting_words(check: ExportCheck | None) -> str:
    """Say where in the graph values part from the source's; empty where outputs do not."""
    parting = None if check is None else check.parting
    if parting is None:
        return ""
    if parting.reason:
        return f"where in the graph is not known: {parting.reason}"
    node = f"{parting.op_type} {parting.node!r}" if parting.node else parting.op_type
    part = f"{parting.kind} {parting.module!r} of the source" if parting.module else parting.kind
    if parting.is_fed_wrong:
        after = f", after {parting.after!r}" if parting.after else ""
        return (
            f"the first part that differs is {part} ({node}), which is fed other values already: "
            f"the cause stands before it{after}"
        )
    return f"the first node that differs is {node}, {part}"


def export_sqnr_db(check: ExportCheck) -> float | None:
    """Return how near the worst output is to the source's; ``None`` where none differs."""
    known = [
        output.sqnr_db
        for choice in check.choices
        for output in choice.outputs
        if output.sqnr_db is not None
    ]
    return min(known, default=None)


def add_export(collector: Collector, result: CaseResult) -> None:
    """Add how near the outputs are to the source's."""
    check = result.fidelity
    if check is None or not is_due(result):
        reason = "it was exported from no source here, or nobody compared it with that"
        collector.reject(_METRICS, reason)
        return
    missing = why_unknown(check)
    if missing or not check.samples:
        collector.reject(_METRICS, missing or "nothing was compared")
        return
    value = export_sqnr_db(check)
    reason = "exact: no difference from the source"
    if any(not output.finite for choice in check.choices for output in choice.outputs):
        reason = "outputs hold NaN or infinity"
        value = None
    collector.add("export_sqnr", value, reason=reason, samples=check.samples)
