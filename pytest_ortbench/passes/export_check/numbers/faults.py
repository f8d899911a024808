"""What is wrong with an export: outputs that are swapped, frozen dimensions, other differences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_ortbench.core.accuracy import OutputAccuracy
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.nearness import is_compared
from pytest_ortbench.passes.export_check.facts import CheckedSizes, Confusion, ExportCheck
from pytest_ortbench.passes.export_check.numbers.evidence import why_open, why_unknown
from pytest_ortbench.passes.export_check.numbers.rounding import is_drawn, is_wrong


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
        is_drawn: Whether the file gives other outputs for the same inputs each time, and the source
            does not.
    """

    kind: str
    outputs: tuple[str, ...] = ()
    dimension: str = ""
    right_at: tuple[int, ...] = ()
    wrong_at: tuple[int, ...] = ()
    confusion: Confusion | None = None
    worst: OutputAccuracy | None = None
    message: str = ""
    is_drawn: bool = False


#: Outputs that are wrong by the number of the choice of sizes; none where the file did not run.
Wrong = Mapping[int, tuple[OutputAccuracy, ...]]


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
    names = {output.name for outputs in wrong.values() for output in outputs}
    confusions = [entry for entry in check.confusions if _holds(entry, names)]
    faults = [
        ExportFault(kind="swapped", outputs=(confusion.output,), confusion=confusion)
        for confusion in confusions
    ]
    swapped = {name for entry in confusions for name in names if _holds(entry, {name})}
    left = {
        index: outputs
        for index, outputs in wrong.items()
        if not outputs or any(output.name not in swapped for output in outputs)
    }
    right = [
        index
        for index, choice in enumerate(check.choices)
        if index not in wrong
        and any(map(is_compared, choice.outputs))
        and not why_open(choice, check, model)
    ]
    frozen, explained = _frozen(check.choices, left, right)
    faults += frozen
    rest = {index: outputs for index, outputs in left.items() if index not in explained}
    refused = [check.choices[index].file_reason for index, outputs in rest.items() if not outputs]
    if refused:
        faults.append(ExportFault(kind="refused", message=refused[0]))
    far = [output for outputs in rest.values() for output in outputs if output.name not in swapped]
    if far:
        faults.append(
            ExportFault(
                kind="different",
                outputs=tuple(dict.fromkeys(output.name for output in far)),
                worst=min(far, key=_order),
                is_drawn=any(is_drawn(output, check, model) for output in far),
            )
        )
    return tuple(faults)


def _holds(confusion: Confusion, names: Iterable[str]) -> bool:
    """Whether any of these is the output of a confusion, or a part of that: ``output[0]``."""
    start = f"{confusion.output}["
    return any(name == confusion.output or name.startswith(start) for name in names)


def _wrong(
    choice: CheckedSizes, check: ExportCheck, model: Model
) -> tuple[OutputAccuracy, ...] | None:
    """Outputs that are wrong at a choice of sizes; none where the file does not run.

    ``None`` where nothing is wrong, or the source does not take these sizes.
    """
    outputs = tuple(output for output in choice.outputs if is_wrong(output, check, model))
    if not outputs and choice.file_reason and not choice.source_reason:
        return ()
    return outputs or None


def _frozen(
    choices: Sequence[CheckedSizes], wrong: Wrong, right: Sequence[int]
) -> tuple[list[ExportFault], set[int]]:
    """Dimensions at some sizes of which the file is right, and at others wrong; and by which."""
    faults: list[ExportFault] = []
    explained: set[int] = set()
    names = dict.fromkeys(name for choice in choices for name in choice.changed)
    for name in names:
        alone = [index for index, choice in enumerate(choices) if set(choice.changed) <= {name}]
        right_ones = [index for index in alone if index in right]
        # One that takes some input sets and refuses others is not wrong by its size.
        wrong_ones = [
            index
            for index in alone
            if index in wrong and (wrong[index] or not choices[index].samples)
        ]
        if not right_ones or not wrong_ones:
            continue
        outputs = [output for index in wrong_ones for output in wrong[index]]
        faults.append(
            ExportFault(
                kind="frozen",
                outputs=tuple(dict.fromkeys(output.name for output in outputs)),
                dimension=name,
                right_at=_sizes(choices, right_ones, name),
                wrong_at=_sizes(choices, wrong_ones, name),
                worst=min(outputs, key=_order, default=None),
                message=next(
                    (choices[index].file_reason for index in wrong_ones if not wrong[index]), ""
                ),
            )
        )
        explained |= set(wrong_ones)
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
    sizes = (choices[index].sizes.get(name) for index in indexes)
    return tuple(sorted({size for size in sizes if size is not None}))


def _order(output: OutputAccuracy) -> float:
    return -math.inf if output.sqnr_db is None else output.sqnr_db
