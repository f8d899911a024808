"""What labelled data says of answers: asked of the passes that score some."""

from __future__ import annotations

from typing import Any

from pytest_ortbench.core.judgement import Judgement, Outcome
from pytest_ortbench.core.outcome import Answers, CaseResult
from pytest_ortbench.passes.registry import PASSES

#: One that is bad decides, then one that is good.
_ORDER = (Outcome.BAD, Outcome.GOOD, Outcome.UNJUDGED)


def judge_labels(answers: CaseResult | Answers) -> Judgement:
    """Judge by labels the answers of a case, or those of two sides against each other."""
    judgements: list[Judgement] = [
        entry.load(entry.judge_labels)(getattr(answers, entry.result_field))
        for entry in PASSES
        if entry.judge_labels
    ]
    return min(judgements, key=lambda judgement: _ORDER.index(judgement.outcome))


def scores_of(result: CaseResult) -> dict[str, Any]:
    """Return what a case scored on labelled data, by the field of a result that holds it."""
    return {
        entry.result_field: getattr(result, entry.result_field)
        for entry in PASSES
        if entry.judge_labels
    }


def nonfinite_answers(result: CaseResult) -> tuple[str, int]:
    """Return how many answers that passes saw are NaN or infinite, and how many they were fed.

    Returns:
        A number with words, empty if all are finite; and the number of such values in the inputs.
    """
    for entry in PASSES:
        if entry.nonfinite:
            text, fed = entry.load(entry.nonfinite)(result)
            if text:
                return text, fed
    return "", 0
