"""The source of an export, on what the file was fed, compared with what the file answered.

Its process never loads ONNX Runtime.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_ortbench.core.accuracy import OutputAccuracy
from pytest_ortbench.engines.seam import InnerValue
from pytest_ortbench.passes.fidelity.facts import CheckedSizes, Confusion, FixedSize
from pytest_ortbench.passes.fidelity.questions import (
    AskSource,
    SizeTrial,
    SourceAnswered,
    SourcePart,
)
from pytest_ortbench.worker.accuracy import Collected
from pytest_ortbench.worker.called import Session
from pytest_ortbench.worker.engine_case import EngineCase
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.measured import MeasuredCase
from pytest_ortbench.worker.sample_file import Sample, SampleFile, SampleWriter, open_samples

#: An output that is as near as this to one of the source's, and far from its own, is that one.
_CONFUSED_DB = 60.0


def ask_source(question: AskSource, measured: MeasuredCase) -> SourceAnswered:
    """Let the source answer what the file was asked, and say how far the file is from it."""
    measured.enter("fidelity")
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
        far = any(nearness_db(output) < question.near_db for output in choice.outputs)
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
    outputs = [output for choice in choices for output in choice.outputs]
    if any(nearness_db(output) < question.near_db for output in outputs):
        confusions = confused_outputs(pairs, stored.names, question.near_db)
        again = pairs[0] if pairs else None
        if again is not None:
            repeats = _is_same(session, again, stored.names, question.near_db)
            rebuilds = _is_same(another(), again, stored.names, question.near_db)
    return SourceAnswered(
        choices=tuple(choices),
        fixed=tuple(_tried(trial, session, seed=seed) for trial in question.trials),
        confusions=confusions,
        repeats=repeats,
        rebuilds=rebuilds,
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
        reason, answered = "", 0
        taken = list(itertools.islice(samples, count))
        if not taken:
            # The file refused it. Whether the source takes it decides who is wrong.
            feeds = make_feeds(choice.inputs, seed=seed)
            _, reason = _answer(session, feeds)
        for sample in taken:
            outputs, reason = _answer(session, sample.feeds)
            if reason:
                break
            answered += 1
            right = replace(sample, outputs=outputs)
            collected.add(right, sample.outputs, stored.names)
            if answered == 1:
                first_pairs.append(AnsweredPair(sample=sample, outputs=outputs))
        accuracy = collected.accuracy(stored, "")
        choices.append(
            CheckedSizes(
                samples=answered,
                outputs=accuracy.outputs,
                note=accuracy.note,
                source_reason=reason,
            )
        )
    return choices, first_pairs


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
    for name in names:
        own_db = _likeness_db(pairs, names, name, name)
        if own_db >= near_db:
            continue
        likenesses = {
            other: _likeness_db(pairs, names, name, other) for other in names if other != name
        }
        nearest = max(likenesses, key=lambda other: likenesses[other], default="")
        nearest_db = likenesses.get(nearest, -math.inf)
        if nearest_db >= max(_CONFUSED_DB, own_db):
            sqnr_db = nearest_db if math.isfinite(nearest_db) else None
            confusions.append(Confusion(output=name, source_output=nearest, sqnr_db=sqnr_db))
    return tuple(confusions)


def _likeness_db(
    pairs: Sequence[AnsweredPair], names: Sequence[str], name: str, other: str
) -> float:
    """How near an output of the file is to any output of the source, in the worst pair."""
    worst_db = math.inf if pairs else -math.inf
    for pair in pairs:
        output = pair.sample.outputs[names.index(name)]
        right = pair.outputs[names.index(other)]
        collected = Collected()
        collected.add(replace(pair.sample, outputs=[right]), [output], [name])
        worst_db = min(worst_db, *map(nearness_db, collected.outputs()), math.inf)
    return worst_db


def nearness_db(output: OutputAccuracy) -> float:
    """Return how near an output is to what is right: infinite where it is equal.

    Whole values have no ratio: where one of them differs it is the lowest.
    """
    if output.adds_nonfinite:
        return -math.inf
    if output.sqnr_db is not None:
        return output.sqnr_db
    if output.exact or output.agree is None or output.agree == output.rows:
        return math.inf
    return -math.inf


def _is_same(
    session: Session, known: AnsweredPair, names: Sequence[str], near_db: float
) -> bool | None:
    """Whether a source answers as it did before; ``None`` where it does not answer."""
    outputs, reason = _answer(session, known.sample.feeds)
    if reason:
        return None
    collected = Collected()
    collected.add(replace(known.sample, outputs=known.outputs), outputs, names)
    return all(nearness_db(output) >= near_db for output in collected.outputs())


def _tried(trial: SizeTrial, session: Session, *, seed: int) -> FixedSize:
    _, reason = _answer(session, make_feeds(trial.inputs, seed=seed))
    return replace(trial.fixed, taken=not reason)


def _answer(session: Session, feeds: Mapping[str, object]) -> tuple[list[object], str]:
    """Outputs of a source, or why it gives none."""
    try:
        return list(session.run(None, feeds)), ""
    except Exception as error:  # noqa: BLE001 - the source may raise anything
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return [], lines[0] if lines else type(error).__name__
