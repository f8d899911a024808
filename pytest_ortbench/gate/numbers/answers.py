"""Whether the contender answers as the baseline does, on the same inputs.

Labels go before floors, as they do everywhere. A floor of the user's for the pair is held beside
them. What could not be compared is not judged. That fails a gate, but where no two answers can be
alike (random numbers), where there is nothing to compare (every output is empty on both sides), or
where the user lets the answers differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_ortbench.analysis.floors import miss, shortfall
from pytest_ortbench.analysis.labels import judge_labels
from pytest_ortbench.analysis.reference_spread import is_within_spread, self_difference
from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import FLOAT_TYPES
from pytest_ortbench.core.gate import MetricVerdict
from pytest_ortbench.core.judgement import Judgement, Outcome, bad, good, unjudged
from pytest_ortbench.core.limits import Limit
from pytest_ortbench.core.outcome import Accuracy, Answers, OutputAccuracy
from pytest_ortbench.core.precision import Floor
from pytest_ortbench.core.units import digits_apart, format_amount

SQNR, AGREEMENT = "sides_sqnr", "sides_agreement"

_OF = "gate"

#: An output that is missing, new, moved, called otherwise or of another type is as wrong as zeros.
_MISSING_DB = 0.0

_VERDICTS = {
    Outcome.GOOD: "same",
    Outcome.BAD: "less accurate",
    Outcome.UNJUDGED: "unjudged",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersJudged:
    """What the answers of two sides come to.

    Attributes:
        judgement: Good, bad or not judged, and why.
        excused: Whether a gate passes although they could not be judged.
        side_is_known: Whether it is known that the contender is the wrong side: by labelled data,
            or since it gives NaN or infinity where the baseline does not.
        metrics: The numbers, and what was allowed.
    """

    judgement: Judgement
    excused: bool = False
    side_is_known: bool = False
    metrics: tuple[MetricVerdict, ...] = ()

    @property
    def fails(self) -> bool:
        """Whether a gate fails for them."""
        return self.judgement.is_bad or (self.judgement.is_unjudged and not self.excused)


def judge_answers(
    answers: Answers | None, limits: Mapping[str, Limit] | None = None
) -> AnswersJudged:
    """Judge the answers of two sides.

    Args:
        answers: What both answered; ``None`` where that is not known.
        limits: Floors of the user's for this pair, by metric.
    """
    if answers is None:
        return AnswersJudged(judgement=unjudged(_OF, "the outputs of the sides were not compared"))
    held = _held(answers, limits or {})
    wrong, doubts = _other_values(answers, held)
    reasons = [*_other_outputs(answers, held), *wrong]
    labels = judge_labels(answers)
    if labels.is_bad and not held.may_differ:
        reasons.append(labels.reason)
    excused = held.may_differ or bool(answers.random_ops)
    if reasons:
        judgement = bad(_OF, "; ".join([*reasons, *_own_accuracies(answers)]))
    elif labels.is_good and not any(map(_is_nonfinite, answers.compared.outputs)):
        judgement = good(_OF)
    else:
        missing = _why_not(answers) or "; ".join(dict.fromkeys(doubts))
        judgement = unjudged(_OF, missing) if missing else good(_OF)
        excused = excused or bool(doubts) or _is_empty(answers.compared)
    return AnswersJudged(
        judgement=judgement,
        excused=excused,
        side_is_known=is_contender_wrong(answers),
        metrics=tuple(_metrics(answers, held, judgement)),
    )


def is_contender_wrong(answers: Answers) -> bool:
    """Whether it is known which of two sides that differ is wrong, and it is the contender."""
    added = any(output.adds_nonfinite for output in answers.compared.outputs)
    return added or judge_labels(answers).is_bad


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What the outputs are held to.

    Attributes:
        sqnr_db: Smallest signal to noise ratio.
        agreement: Smallest share of whole values, where an output has no such ratio.
        of: Whose floor it is, for people.
        classes: The user's own floor for classes and whole values, if there is one.
        by_labels: Whether labelled data decides, so that the difference is only shown.
        by_user: Whether the ratio is the user's own floor for the pair.
    """

    sqnr_db: float
    agreement: float
    of: str
    classes: Limit | None
    by_labels: bool
    by_user: bool = False

    @property
    def may_differ(self) -> bool:
        """Whether the user lets anything pass."""
        return not self.by_labels and self.sqnr_db <= _MISSING_DB

    @property
    def text(self) -> str:
        """For people: ``>= 60 dB (floor of native)``."""
        if self.by_labels:
            return "shown only, because labelled data decides"
        return f">= {format_amount(self.sqnr_db, 'dB')} (floor of {self.of})"


def _held(answers: Answers, limits: Mapping[str, Limit]) -> _Held:
    floor, limit = answers.floor, limits.get(SQNR)
    if limit is not None:
        return _Held(
            sqnr_db=limit.value,
            agreement=floor.agreement if limit.value > _MISSING_DB else 0.0,
            of="the pair (--ort-gate)",
            classes=limits.get(AGREEMENT),
            by_labels=False,
            by_user=True,
        )
    by_labels = judge_labels(answers).is_good
    return _Held(
        sqnr_db=-math.inf if by_labels else floor.sqnr_db,
        agreement=0.0 if by_labels else floor.agreement,
        of=floor.of,
        classes=limits.get(AGREEMENT),
        by_labels=by_labels,
    )


def _other_outputs(answers: Answers, held: _Held) -> Iterator[str]:
    """How names, order, number and types of the outputs differ."""
    if held.may_differ:
        return
    before, after = answers.baseline_outputs, answers.contender_outputs
    if not before or not after:
        return
    lost = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    if lost:
        yield f"the contender has no output {', '.join(lost)}"
    if new:
        yield f"the baseline has no output {', '.join(new)}"
    if not lost and not new and list(before) != list(after):
        yield f"the order of the outputs changed: {', '.join(before)} → {', '.join(after)}"
    for name, kind in before.items():
        other = after.get(name, kind)
        widths = answers.retyped and {kind, other} <= set(FLOAT_TYPES)
        if kind != other and not widths:
            yield f"{name}: {kind} → {other}"


def is_below_floor(answers: Answers) -> bool:
    """Whether an output of the sides is further apart than their floor, but for NaN."""
    return any(
        not output.adds_nonfinite
        and miss(output, answers.baseline_outputs.get(output.name, ""), answers.floor)
        for output in answers.compared.outputs
    )


def _other_values(answers: Answers, held: _Held) -> tuple[list[str], list[str]]:
    """What is wrong with the values, and where the references can't tell, a sentence each."""
    wrong: list[str] = []
    doubts: list[str] = []
    floor = Floor(sqnr_db=held.sqnr_db, agreement=held.agreement, of=held.of)
    for output in answers.compared.outputs:
        missed = shortfall(output, answers.baseline_outputs.get(output.name, ""), floor)
        unknown = _is_no_number(output) or (not output.adds_nonfinite and _is_nonfinite(output))
        if missed and not unknown:
            missed = _difference(output, missed, floor)
            within = not held.by_user and _is_within_spread(answers, output)
            unclear = _doubts(answers, output, floor) if within else []
            doubts += unclear
            if not unclear and not (within and answers.plain):
                wrong.append(missed)
        share = _share(output)
        if held.classes is not None and share is not None and not held.classes.holds(share):
            wrong.append(
                f"{output.name}: {output.agree} of {output.rows} rows agree between the two "
                f"sides, and the gate requires {held.classes.op} "
                f"{format_amount(held.classes.value, 'ratio')}"
            )
    return wrong, doubts


def _difference(output: OutputAccuracy, missed: str, floor: Floor) -> str:
    """How an output differs: the values that are farthest apart, and the floor that it misses."""
    farthest = output.farthest
    in_slices = output.sqnr_db is not None and output.sqnr_db >= floor.sqnr_db
    if farthest is None or output.adds_nonfinite or output.mismatch or in_slices:
        return f"{output.name} differs: {missed}"
    sides = (farthest.value, farthest.reference)
    digits = digits_apart(*sides, _with_digits, 3)
    now, before = (_with_digits(value, digits) for value in sides)
    place = f"{output.name}{list(farthest.index) if farthest.index else ''}"
    return f"{place} is {now}, and {before} in the baseline, the largest difference ({missed})"


def _with_digits(value: float, digits: int) -> str:
    return f"{value:.{digits}g}"


def _spreads(answers: Answers) -> Iterator[ReferenceSpread]:
    """How far the references of the two sides differ from themselves, where that is known."""
    for accuracy in (answers.baseline_accuracy, answers.contender_accuracy):
        if accuracy is not None and accuracy.spread is not None:
            yield accuracy.spread


def _is_within_spread(answers: Answers, output: OutputAccuracy) -> bool:
    """Whether the sides are no further apart than ten times what a reference is from itself."""
    return any(is_within_spread(spread, output) for spread in _spreads(answers))


def _doubts(answers: Answers, output: OutputAccuracy, floor: Floor) -> list[str]:
    """How a reference differs from itself by more than the floor, so that nobody can tell."""
    kind = answers.baseline_outputs.get(output.name, "")
    differences = (self_difference(spread, output, kind, floor) for spread in _spreads(answers))
    return [text for text in differences if text]


def _why_not(answers: Answers) -> str:
    """Why the answers can't be compared; empty if they were."""
    if answers.random_ops:
        return f"the graph draws random numbers ({', '.join(answers.random_ops)})"
    compared = answers.compared
    if compared.reason:
        return compared.reason
    if not compared.outputs or compared.samples < 1:
        return "no output of the two sides was compared"
    for output in compared.outputs:
        if _is_no_number(output):
            return f"the comparison of {output.name} gave no number"
        if _is_nonfinite(output):
            sides = "both sides give" if output.nonfinite else "the baseline gives"
            return f"{sides} NaN or infinite values of {output.name}"
    if _is_empty(compared):
        return "every output of both sides is empty on these inputs"
    return ""


def _is_no_number(output: OutputAccuracy) -> bool:
    figures = (output.sqnr_db, output.max_abs, output.cosine)
    return any(figure is not None and not math.isfinite(figure) for figure in figures)


def _is_nonfinite(output: OutputAccuracy) -> bool:
    return bool(output.nonfinite or output.reference_nonfinite)


def _is_empty(compared: Accuracy) -> bool:
    return bool(compared.outputs) and not any(
        output.compared or _is_nonfinite(output) for output in compared.outputs
    )


def _share(output: OutputAccuracy) -> float | None:
    return output.agree / output.rows if output.agree is not None and output.rows else None


def _metrics(answers: Answers, held: _Held, judgement: Judgement) -> Iterator[MetricVerdict]:
    """The difference of the sides, in decibels and as agreement."""
    outputs = answers.compared.outputs
    ratios = [output.sqnr_db for output in outputs if output.sqnr_db is not None]
    ratios = [ratio for ratio in ratios if math.isfinite(ratio)]
    if list(answers.baseline_outputs) != list(answers.contender_outputs):
        ratios.append(_MISSING_DB)
    reason = judgement.reason
    if not reason and not ratios:
        reason = "no difference" if all(output.exact for output in outputs) else ""
    verdict = _VERDICTS[judgement.outcome]
    shown_only = judgement.is_good and held.by_labels
    yield MetricVerdict(
        metric=SQNR,
        verdict="informs" if shown_only else verdict,
        contender=min(ratios, default=None),
        allowed=held.text,
        reason=reason,
    )
    shares = [share for share in map(_share, outputs) if share is not None]
    if not shares:
        return
    limit = held.classes
    if limit is not None:
        verdict = "same" if limit.holds(min(shares)) else "less accurate"
    yield MetricVerdict(
        metric=AGREEMENT,
        verdict="informs" if limit is None else verdict,
        contender=min(shares),
        allowed="" if limit is None else f"{limit.op} {format_amount(limit.value, 'ratio')}",
    )


def _own_accuracies(answers: Answers) -> Iterator[str]:
    """Whether each side computes its own file as its reference does, where that is known."""
    sides = {"contender": answers.contender_accuracy, "baseline": answers.baseline_accuracy}
    known = {name: accuracy for name, accuracy in sides.items() if accuracy and accuracy.outputs}
    inaccurate = [
        f"{name} {_worst(accuracy)}"
        for name, accuracy in known.items()
        if not _keeps(accuracy, answers.floor)
    ]
    if inaccurate:
        yield f"compared with the reference of its own file: {', '.join(inaccurate)}"
    elif len(known) == len(sides):
        yield "each side computes its own file correctly, so the files differ"


def _keeps(accuracy: Accuracy, floor: Floor) -> bool:
    """Whether all outputs of a side are those of its reference, within a floor."""
    return all(output.finite and not miss(output, "", floor) for output in accuracy.outputs)


def _worst(accuracy: Accuracy) -> str:
    ratios = [output.sqnr_db for output in accuracy.outputs if output.sqnr_db is not None]
    if ratios:
        return f"{min(ratios):.1f} dB"
    if any(map(_is_nonfinite, accuracy.outputs)) or not all(o.finite for o in accuracy.outputs):
        return "NaN or infinity"
    return "not in dB"
