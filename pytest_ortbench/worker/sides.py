"""Two sides of a gate on the same inputs: one writes outputs, the other is compared with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.accuracy import Accuracy
from pytest_ortbench.core.case import Case, InputSpec
from pytest_ortbench.core.errors import first_line
from pytest_ortbench.schema.side_questions import (
    CompareSides,
    OutputsCompared,
    OutputsWritten,
    WriteOutputs,
)
from pytest_ortbench.worker.accuracy import Collected, fitting, write_reference
from pytest_ortbench.worker.called import Session
from pytest_ortbench.worker.sample_file import SampleFile, open_samples

if TYPE_CHECKING:
    from pytest_ortbench.worker.measured import MeasuredCase


def write_outputs(question: WriteOutputs, measured: MeasuredCase) -> OutputsWritten:
    """Write the outputs of this side for the other one."""
    measured.enter("accuracy")
    return write_side(
        measured.for_any_input(),
        measured.case,
        Path(question.path),
        inputs=question.inputs,
        magnitudes=question.magnitudes,
    )


def compare_sides(question: CompareSides, measured: MeasuredCase) -> OutputsCompared:
    """Compare the outputs of this side with those of the other one."""
    measured.enter("accuracy")
    session = measured.for_any_input()
    return compare_side(session, Path(question.path), is_baseline=question.is_baseline)


def write_side(
    session: Session,
    case: Case,
    path: Path,
    *,
    inputs: Sequence[InputSpec],
    magnitudes: Sequence[float],
) -> OutputsWritten:
    """Run input sets through a side, and store inputs and outputs together.

    Args:
        session: The side.
        case: Its case.
        path: The file to make.
        inputs: What both sides are fed; values from files are those of the side's own case.
        magnitudes: Factors on drawn float inputs.
    """
    own = {spec.name: spec for spec in case.inputs if spec.path}
    write_reference(
        path,
        session=session,
        specs=[own.get(spec.name, spec) for spec in inputs],
        seed=case.seed,
        magnitudes=magnitudes,
        label=case.case_id,
    )
    return OutputsWritten(types=_types(session))


def compare_side(session: Session, path: Path, *, is_baseline: bool) -> OutputsCompared:
    """Run the stored input sets through a side, and compare with the outputs of the other one.

    Args:
        session: The side.
        path: What :func:`write_side` made of the other side.
        is_baseline: Whether this side is the baseline, whose outputs the others are compared with.
    """
    stored = open_samples(path)
    types = _types(session)
    own = tuple(types)
    baseline, contender = (own, stored.names) if is_baseline else (stored.names, own)
    names, reason = _compared(baseline, contender)
    if reason:
        return OutputsCompared(types=types, accuracy=Accuracy(reason=reason))
    places = [
        list(range(len(names)))
        if side == names or len(baseline) == len(contender)
        else [side.index(name) for name in names]
        for side in (baseline, contender)
    ]
    accuracy = _collect(session, stored, names, places, is_baseline=is_baseline)
    return OutputsCompared(types=types, accuracy=accuracy)


def _collect(
    session: Session,
    stored: SampleFile,
    names: Sequence[str],
    places: Sequence[Sequence[int]],
    *,
    is_baseline: bool,
) -> Accuracy:
    collected = Collected()
    for sample in stored.samples():
        feeds, missing = fitting(session, sample.feeds)
        if missing:
            return Accuracy(reason=f"the other side has no value for the input {missing!r}")
        try:
            own = list(session.run(None, feeds))
        except Exception as error:  # noqa: BLE001 - native errors have no common base class
            reason = f"the run at magnitude {sample.magnitude:g} failed: {first_line(error)}"
            return Accuracy(reason=reason)
        sides = (own, sample.outputs) if is_baseline else (sample.outputs, own)
        right, left = (
            [outputs[place] for place in order]
            for outputs, order in zip(sides, places, strict=True)
        )
        collected.add(replace(sample, outputs=right), left, names)
    return collected.accuracy(stored, "")


def _types(session: Session) -> dict[str, str]:
    return {output.name: output.type for output in session.get_outputs()}


def _compared(baseline: Sequence[str], contender: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Names of the outputs to compare, or why there are none.

    As many outputs are compared in order, since they may only be called otherwise; else those of
    the same name.
    """
    if len(baseline) == len(contender):
        return tuple(baseline), ""
    common = tuple(name for name in baseline if name in contender)
    if common:
        return common, ""
    return (), (
        f"no output has the same name: {', '.join(baseline)} of the baseline, "
        f"{', '.join(contender)} of the contender"
    )
