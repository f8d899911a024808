"""The framework's side of an export check: it runs the source on what the file was fed.

What the file answered is held against what the source does. The process never loads ONNX Runtime.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pytest_ortbench.core.accuracy import OutputAccuracy
from pytest_ortbench.core.errors import first_line
from pytest_ortbench.core.nearness import is_compared, is_repeated, nearness_db
from pytest_ortbench.engines.seam import InnerValue
from pytest_ortbench.passes.export_check.facts import CheckedSizes, Confusion, FixedSize
from pytest_ortbench.passes.export_check.questions import (
    AskSource,
    SizeTrial,
    SourceAnswered,
    SourcePart,
)
from pytest_ortbench.passes.export_check.worker.likeness import figures_of, likeness_db
from pytest_ortbench.passes.export_check.worker.sets import feeds_of, magnitudes_of
from pytest_ortbench.worker.accuracy import Collected
from pytest_ortbench.worker.called import Session
from pytest_ortbench.worker.engine_case import EngineCase
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.measured import MeasuredCase
from pytest_ortbench.worker.outputs import flatten
from pytest_ortbench.worker.sample_file import Sample, SampleFile, SampleWriter, open_samples

#: An output that is as near as this to another one of the source's, and so much nearer than to its
#: own, is that one.
_CONFUSED_DB = 60.0
_CLEARLY_DB = 20.0


def ask_source(question: AskSource, measured: MeasuredCase) -> SourceAnswered:
    """Let the source answer what the file was asked, and say how far the file is from it."""
    measured.enter("export-check")
    assert isinstance(measured, EngineCase)
    answered = held_against(question, measured.live(), measured.another, seed=measured.case.seed)
    inner: Sequence[InnerValue] = ()
    stored = open_samples(Path(question.path))
    sample = _first_far(question, stored, answered)
    if question.inner and sample is not None and not answered.confusions:
        inner = measured.inner_values(sample.feeds)
    if question.inner:
        with SampleWriter(Path(question.inner), "", tuple(part.path for part in inner)) as writer:
            if sample is not None:
                writer.add(replace(sample, outputs=[part.value for part in inner]))
    return replace(
        answered,
        version=measured.describe().engine_version,
        parts=tuple(SourcePart(path=part.path, kind=part.kind) for part in inner),
    )


def _first_far(question: AskSource, stored: SampleFile, answered: SourceAnswered) -> Sample | None:
    """The first input set of the first sizes at which outputs differ."""
    number = 0
    for choice, count in zip(answered.choices, question.samples, strict=True):
        far = any(
            is_compared(output) and nearness_db(output) < question.near_db
            for output in choice.outputs
        )
        if far and choice.samples:
            return next(itertools.islice(stored.samples(), number, None), None)
        number += count
    return None


def held_against(
    question: AskSource, session: Session, another: Callable[[], Session], *, seed: int
) -> SourceAnswered:
    """Hold what a file answered against a source.

    Args:
        question: What the file was fed, and where its answers are.
        session: The source.
        another: Loads the source a second time.
        seed: Seed of inputs that the file does not take.
    """
    stored = open_samples(Path(question.path))
    choices, pairs = _compared(question, stored, session, seed=seed)
    confusions: tuple[Confusion, ...] = ()
    repeats = rebuilds = None
    again_reason = ""
    differing = [
        output
        for choice in choices
        for output in choice.outputs
        if output.name not in choice.empty and nearness_db(output) < question.near_db
    ]
    if differing:
        confusions = confused_outputs(pairs, stored.names, question.near_db)
        again = pairs[0] if pairs else None
        if again is not None:
            compare = partial(_is_same, again, stored.names, question.near_db)
            repeats, again_reason = compare(lambda: session)
            rebuilds, reason = compare(another)
            again_reason = again_reason or reason
    return SourceAnswered(
        choices=tuple(choices),
        fixed=tuple(_tried(trial, session, seed=seed) for trial in question.trials),
        confusions=confusions,
        repeats=repeats,
        rebuilds=rebuilds,
        again_reason=again_reason,
    )


@dataclass(slots=True, kw_only=True)
class AnsweredPair:
    """What both sides answered to one input set: the file's sample, and the source's outputs."""

    sample: Sample
    outputs: list[object] = field(default_factory=list)


def _compared(
    question: AskSource, stored: SampleFile, session: Session, *, seed: int
) -> tuple[list[CheckedSizes], list[AnsweredPair]]:
    """Return how each choice of sizes compares, and what was answered to the first set of each."""
    samples = stored.samples()
    choices: list[CheckedSizes] = []
    first_pairs: list[AnsweredPair] = []
    for choice, count in zip(question.choices, question.samples, strict=True):
        collected = Collected()
        values_of = OutputValues(stored.names)
        reason = ""
        for number, sample in enumerate(itertools.islice(samples, count)):
            # Those after one that the source refuses are passed over.
            if not reason:
                outputs, reason = _answer(session, sample.feeds)
            if reason:
                continue
            collected.add(replace(sample, outputs=outputs), sample.outputs, stored.names)
            values_of.count(sample.outputs, outputs)
            if not number:
                first_pairs.append(AnsweredPair(sample=sample, outputs=outputs))
        if not reason and count < len(magnitudes_of(choice)):
            # The file refused this set. Whether the source takes it decides who is wrong.
            _, reason = _answer(session, feeds_of(choice, count, seed=seed))
        accuracy = collected.accuracy(stored, "")
        # Answers without any value are none.
        answered = accuracy.samples if accuracy.outputs else 0
        if accuracy.samples and not answered:
            reason = reason or accuracy.reason
        choices.append(
            CheckedSizes(
                samples=answered,
                outputs=accuracy.outputs,
                empty=values_of.without(accuracy.outputs) if answered else (),
                note=accuracy.note,
                source_reason=reason,
            )
        )
    return choices, first_pairs


class OutputValues:
    """How many values each output has on both sides together, over all input sets.

    Args:
        names: Names of the outputs in the order of the file, which is that of the source.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._parts: dict[str, Counter[str]] = {name: Counter() for name in names}

    def count(self, *sides: Sequence[object]) -> None:
        """Count what the sides gave; an output that one of them lacks has no place here.

        Args:
            sides: Outputs of each side, in the order of the names.
        """
        names = list(self._parts)[min(map(len, sides)) :]
        for name in names:
            del self._parts[name]
        for outputs in sides:
            for (name, parts), output in zip(self._parts.items(), outputs, strict=False):
                parts.update({leaf.label: leaf.values.size for leaf in flatten([output], [name])})

    def without(self, outputs: Sequence[OutputAccuracy]) -> tuple[str, ...]:
        """Return the outputs, or parts of them, that have no value and no other shape.

        Args:
            outputs: Figures of all of them.
        """
        told = {output.name for output in outputs if is_compared(output)}
        return tuple(
            label
            for name, parts in self._parts.items()
            for label in (parts or (name,))
            if not parts[label] and label not in told
        )


def confused_outputs(
    pairs: Sequence[AnsweredPair], names: Sequence[str], near_db: float
) -> tuple[Confusion, ...]:
    """Return the outputs of the file that are another output of the source in every pair.

    Args:
        pairs: What both sides answered.
        names: Names of the outputs in the order of the file, which is that of the source.
        near_db: An output this near to its own is no other one.
    """
    confusions = []
    for own, name in enumerate(names):
        own_db = _worst_likeness_db(pairs, own, own)
        if own_db >= near_db:
            continue
        likenesses = {
            other: _worst_likeness_db(pairs, own, other)
            for other in range(len(names))
            if other != own
        }
        nearest = max(likenesses, key=lambda other: likenesses[other], default=own)
        if likenesses.get(nearest, -math.inf) >= max(_CONFUSED_DB, own_db + _CLEARLY_DB):
            confusions.append(Confusion(output=name, source_output=names[nearest]))
    return tuple(confusions)


def _worst_likeness_db(pairs: Sequence[AnsweredPair], own: int, other: int) -> float:
    """How near an output of the file is to any output of the source, in the worst pair.

    The lowest where the source returns no such output.
    """
    return min(
        (
            likeness_db(pair.sample.outputs[own], pair.outputs[other])
            if other < len(pair.outputs)
            else -math.inf
            for pair in pairs
        ),
        default=-math.inf,
    )


def _is_same(
    known: AnsweredPair, names: Sequence[str], near_db: float, source: Callable[[], Session]
) -> tuple[bool | None, str]:
    """Whether a source answers as it did before; ``None`` and why where that can't be told."""
    try:
        session = source()
    except Exception as error:  # noqa: BLE001 - loading runs the source's own program
        return None, first_line(error)
    outputs, reason = _answer(session, known.sample.feeds)
    if reason:
        return None, reason
    repeated = figures_of(outputs, known.outputs, names)
    if not all(is_repeated(output, near_db) for output in repeated):
        return False, ""
    if not any(map(is_compared, repeated)):
        return None, "no value of its outputs could be compared"
    return True, ""


def _tried(trial: SizeTrial, session: Session, *, seed: int) -> FixedSize:
    _, reason = _answer(session, make_feeds(trial.inputs, seed=seed))
    return replace(trial.fixed, taken=not reason)


def _answer(session: Session, feeds: Mapping[str, object]) -> tuple[list[object], str]:
    """Outputs of a source, or why it gives none."""
    try:
        return list(session.run(None, feeds)), ""
    except Exception as error:  # noqa: BLE001 - the source may raise anything
        return [], first_line(error)
