"""What a check of an export rests on, and what it leaves open.

What was not compared, or was cut short, is never good.
"""

from __future__ import annotations

from collections.abc import Iterable

from pytest_ortbench.analysis.floors import is_within_a_step
from pytest_ortbench.analysis.sentences import first_names
from pytest_ortbench.core.accuracy import OutputAccuracy
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.nearness import (
    NEAR_DB,
    differs_whole,
    hides_nonfinite,
    holds_whole,
    is_compared,
    nearness_db,
)
from pytest_ortbench.core.units import counted
from pytest_ortbench.passes.export_check.facts import CheckedSizes, ExportCheck
from pytest_ortbench.passes.export_check.numbers.rounding import doubt, type_of

#: Remarks that are told in full.
_TOLD = 4


def why_unknown(check: ExportCheck) -> str:
    """Say why a source can't judge an export at all; empty if it can.

    Args:
        check: What both sides answered.
    """
    if check.reason:
        return check.reason
    if check.interrupted:
        return "it was stopped before it was over"
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
    if differs(check) and (check.repeats is None or check.rebuilds is None):
        why = f": {check.again_reason}" if check.again_reason else ""
        return f"whether the source gives the same outputs when it is asked again is not known{why}"
    return ""


def why_unjudged(check: ExportCheck, model: Model) -> str:
    """Say why an export that has no fault can't be called good; empty if it can.

    Args:
        check: What both sides answered.
        model: The exported one.
    """
    unknown = why_unknown(check)
    if unknown:
        return unknown
    if check.choices[0].source_reason:
        return f"the source fails at the usual sizes: {check.choices[0].source_reason}"
    open_points = (why_open(choice, check, model) for choice in check.choices)
    hidden = next(filter(None, open_points), "")
    if hidden:
        return hidden
    compared, empty = _compared_names(check), always_empty(check)
    if empty and not compared:
        return "no output has any value, so nothing but shapes was compared"
    names = dict.fromkeys(
        output.name
        for output in checked_outputs(check)
        if output.name not in compared and output.name not in empty
    )
    if names:
        return f"no value of {quoted(names)} could be compared: all are empty, NaN or infinite"
    return ""


def why_open(choice: CheckedSizes, check: ExportCheck, model: Model) -> str:
    """Say why the file can't be called right at some sizes; empty if it can, or is wrong there.

    Sizes that the source refuses, and outputs that are empty there, leave nothing open: the check
    tells them apart.

    Args:
        choice: The sizes.
        check: What they are of.
        model: The exported one.
    """
    if not choice.samples and not choice.file_reason and not choice.source_reason:
        sizes = _sizes_in_words(choice)
        return f"nothing was compared at {sizes}" if sizes else "nothing was compared"
    for output in choice.outputs:
        if hides_nonfinite(output):
            values = counted(output.reference_nonfinite, "NaN or infinite value")
            return f"the source gives {values} of {output.name!r}, where the file gives fewer"
    doubts = (doubt(output, check, model) for output in choice.outputs)
    return next(filter(None, doubts), "")


def differs(check: ExportCheck) -> bool:
    """Return whether any output differs by so much that the source has to be asked again."""
    return any(
        is_compared(output) and nearness_db(output) < NEAR_DB for output in checked_outputs(check)
    )


def spread_decides(check: ExportCheck) -> bool:
    """Return whether outputs differ so that only the file's own spread tells if it is rounding."""
    return not why_unknown(check) and any(
        (output.sqnr_db is not None and output.sqnr_db < NEAR_DB) or differs_whole(output)
        for output in checked_outputs(check)
    )


def left_out(check: ExportCheck) -> tuple[str, ...]:
    """Say what the comparison does not cover, a sentence each; nothing where it covers nothing."""
    if why_unknown(check):
        return ()
    compared, nothing_but_empty = _compared_names(check), always_empty(check)
    places: dict[tuple[str, str], list[str]] = {}
    for number, choice in enumerate(check.choices):
        remarks = [(choice.note, "")] if choice.note else []
        if number and choice.source_reason:
            remarks.append(("the source fails", f": {choice.source_reason}"))
        empty = [
            output.name
            for output in choice.outputs
            if output.name in compared and not is_compared(output)
        ]
        if empty:
            remarks.append((f"no value of {quoted(empty)} could be compared", ""))
        for remark in remarks:
            places.setdefault(remark, []).append(_sizes_in_words(choice) if number else "")
    sentences = [
        f"{start} at {first_names(sizes)}{end}" if all(sizes) else f"{start}{end}"
        for (start, end), sizes in places.items()
    ]
    if nothing_but_empty:
        were = "is" if len(nothing_but_empty) == 1 else "are"
        text = f"{quoted(nothing_but_empty)} {were} always empty, so only the shape was compared"
        sentences.insert(0, text)
    more = len(sentences) - _TOLD
    return (*sentences[:_TOLD], *([f"and {counted(more, 'remark')} more"] if more > 0 else []))


def quoted(names: Iterable[str]) -> str:
    """Spell out some names in quotes, and count the rest."""
    return first_names([repr(name) for name in names])


def always_empty(check: ExportCheck) -> tuple[str, ...]:
    """Return the outputs that have no value at any sizes, on either side.

    Args:
        check: What both sides answered.
    """
    answered = [choice for choice in check.choices if choice.samples]
    names = dict.fromkeys(name for choice in answered for name in choice.empty)
    return tuple(name for name in names if all(name in choice.empty for choice in answered))


def _compared_names(check: ExportCheck) -> frozenset[str]:
    return frozenset(output.name for output in checked_outputs(check) if is_compared(output))


def _sizes_in_words(choice: CheckedSizes) -> str:
    """Name the sizes of a choice that differ from the usual ones: ``batch 2``."""
    names = choice.changed or tuple(choice.sizes)
    return ", ".join(f"{name} {choice.sizes[name]}" for name in names if name in choice.sizes)


def checked_outputs(check: ExportCheck) -> list[OutputAccuracy]:
    """Return the outputs of all choices of sizes."""
    return [output for choice in check.choices for output in choice.outputs]


def differing_whole(check: ExportCheck, model: Model) -> dict[str, tuple[int, int]]:
    """Return how many values of each output of whole values are the source's, of how many.

    Those that are all equal, or within a step of a quantised type, are left out.

    Args:
        check: What both sides answered.
        model: The exported one.
    """
    agree: dict[str, tuple[int, int]] = {}
    for output in checked_outputs(check):
        if holds_whole(output):
            right, rows = agree.get(output.name, (0, 0))
            within = is_within_a_step(output, type_of(output, model))
            right += (output.rows or 0) if within else (output.agree or 0)
            agree[output.name] = (right, rows + (output.rows or 0))
    return {name: (right, rows) for name, (right, rows) in agree.items() if right != rows}
