"""When the answers of a case are wrong: by its labels, or by the floors of its precision.

Labels go before floors, since they say what the user wants to know: a quantised model of 12 dB
that answers as well as fp32 is accurate, and one of 20 dB that does not is none. A floor that the
user set for a recipe holds beside them, and NaN and infinity are wrong whatever the labels say.
Where the labelled samples are too few to tell, the floors judge. Where there is nothing to hold
outputs against, or only a reference that differs from itself by more than the floor, nothing does.
What a model was exported from is right where both differ, since its export is compared with it; but
it must answer the same twice, and where nothing was compared nothing is known of it either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pytest_ortbench.analysis.floors import miss
from pytest_ortbench.analysis.labels import judge_labels, nonfinite_answers
from pytest_ortbench.analysis.reference_spread import (
    differs_when_repeated,
    is_as_near_as_itself,
    is_plain,
    self_difference,
    was_run,
)
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.judgement import DRAWN_INPUTS, Judgement, bad, good, unjudged
from pytest_ortbench.core.outcome import Accuracy, CaseResult, OutputAccuracy
from pytest_ortbench.core.precision import FLOOR, Floor, floor_of
from pytest_ortbench.core.units import counted
from pytest_ortbench.passes.registry import PASSES

ACCURACY = "accuracy"
#: What is said of runs of the measured loop that differ, where nobody says how.
_UNREPEATABLE = "the runs of the measured loop gave different outputs for the same inputs"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvidence:
    """What speaks for and against the answers of a case, a sentence each; empty where nothing does.

    Attributes:
        nonfinite: NaN and infinity in what the case gives, whatever its reference gives.
        wrong: How labels or floors are missed.
        missing: Why outputs can't be compared with a reference.
        by_labels: Whether labelled data shows that the task is still done, and no floor is left
            to be held.
    """

    nonfinite: str = ""
    wrong: str = ""
    missing: str = ""
    by_labels: bool = False


def judge_accuracy(result: CaseResult) -> Judgement:
    """Judge whether the answers of a case are right.

    What is wrong counts before what is missing: one verdict a case.
    """
    evidence = evidence_of(result)
    against = [reason for reason in (evidence.nonfinite, evidence.wrong) if reason]
    if not against and evidence.missing and not evidence.by_labels:
        return unjudged(ACCURACY, evidence.missing)
    unlabelled = judge_labels(result).is_unjudged
    on_drawn = result.case.draws_inputs and unlabelled
    if not against:
        judgement = good(ACCURACY)
    else:
        judgement = bad(ACCURACY, "; ".join(against) + (f" ({DRAWN_INPUTS})" if on_drawn else ""))
    if on_drawn:
        return judgement.on_drawn_inputs()
    return judgement.without_labels() if unlabelled else judgement


def evidence_of(result: CaseResult) -> AnswerEvidence:
    """Collect what is known of the answers of a case."""
    nonfinite = _nonfinite(result)
    labels = judge_labels(result)
    own_floor = FLOOR in result.case.variant.recipe
    missing = _why_not_compared(result)
    floor = _floor(result.case, by_labels=labels.is_good)
    wrong: list[str] = []
    doubts: list[str] = []
    if result.accuracy is not None and not missing:
        wrong, doubts = _against_reference(result, result.accuracy, floor)
    for missed, doubt in _seen_by_passes(result, floor):
        wrong += [missed] if missed else []
        doubts += [doubt] if doubt else []
    if not wrong and not missing:
        missing = "; ".join(dict.fromkeys(doubts))
    if labels.is_bad:
        wrong.append(labels.reason)
    return AnswerEvidence(
        nonfinite=nonfinite,
        wrong="; ".join(wrong),
        missing=missing,
        by_labels=labels.is_good and not own_floor,
    )


def _seen_by_passes(result: CaseResult, floor: Floor) -> list[tuple[str, str]]:
    """Return how answers that passes saw miss the floor, and why that can't be told."""
    return [entry.load(entry.misses)(result, floor) for entry in PASSES if entry.misses]


def needs_spread(result: CaseResult) -> bool:
    """Whether a case would be called inaccurate by a reference that nobody has run again yet."""
    accuracy = result.accuracy
    if result.status != "measured" or accuracy is None or accuracy.spread is not None:
        return False
    if _nonfinite(result) or _why_not_compared(result):
        return False
    floor = _floor(result.case, by_labels=judge_labels(result).is_good)
    return bool(_against_reference(result, accuracy, floor)[0])


def _floor(case: Case, *, by_labels: bool) -> Floor:
    """The floor that holds: none but the user's own where labels say that the task is done."""
    floor = floor_of(case)
    if by_labels and FLOOR not in case.variant.recipe:
        return replace(floor, sqnr_db=-math.inf, agreement=0.0)
    return floor


def _against_reference(
    result: CaseResult, accuracy: Accuracy, floor: Floor
) -> tuple[list[str], list[str]]:
    """What is wrong by the reference, and why the reference can't tell, a sentence each."""
    types = {output.name: output.type for output in result.case.model.outputs}
    spread = accuracy.spread
    wrong: list[str] = []
    doubts: list[str] = []
    # Where a file and its source differ the source is right, whatever the file's outputs are.
    for output in () if result.case.is_source else accuracy.outputs:
        type_name = types.get(output.name, "")
        missed = miss(output, type_name, floor)
        if not missed:
            continue
        doubt = self_difference(spread, output, type_name, floor)
        if not doubt and is_as_near_as_itself(result.case, spread, output):
            continue
        if not doubt and spread is not None and not was_run(spread) and is_plain(result.case):
            doubt = f"{missed}, and the reference could not be run again: {spread.reason}"
        (doubts if doubt else wrong).append(doubt or missed)
    if accuracy.repeatable is False and not any(check.nonfinite for check in result.output_checks):
        doubt = differs_when_repeated(spread, floor)
        (doubts if doubt else wrong).append(doubt or accuracy.repeat_note or _UNREPEATABLE)
    return wrong, doubts


def _nonfinite(result: CaseResult) -> str:
    """How many values are NaN or infinite: in the measured loop, else in the compared outputs.

    Else in the answers that a pass saw.
    """
    checks = result.output_checks
    worst = max(checks, key=lambda check: check.nonfinite, default=None)
    if worst is not None and worst.nonfinite:
        text = f"{counted(worst.nonfinite, 'value')} in the {worst.run} run"
    else:
        outputs = result.accuracy.outputs if result.accuracy is not None else ()
        text = ", ".join(
            f"{counted(output.nonfinite, 'value')} of {output.name} in the compared runs"
            for output in outputs
            if output.nonfinite
        )
    fed = max((check.nonfinite_inputs for check in checks), default=0)
    if not text:
        text, fed = nonfinite_answers(result)
    if not text or not fed:
        return text
    return f"{text}; the inputs themselves hold {fed} NaN or infinite values"


def _why_not_compared(result: CaseResult) -> str:
    """Why a case has no outputs that are compared with a reference; empty if it has."""
    accuracy = result.accuracy
    if result.case.model.random_ops:
        names = ", ".join(result.case.model.random_ops)
        return f"the graph draws random numbers ({names})"
    if accuracy is None:
        return "outputs were not compared with a reference"
    if accuracy.reason:
        return accuracy.reason
    if not accuracy.outputs:
        return "the reference has no outputs"
    if accuracy.samples < 1:
        return "no input set was compared"
    if not any(map(_is_compared, accuracy.outputs)):
        return (
            "no value could be compared: every output is empty, or the reference is not "
            "finite there"
        )
    for output in accuracy.outputs:
        if output.reference_nonfinite and not output.nonfinite:
            return (
                f"the reference gives {output.reference_nonfinite} NaN or infinite values of "
                f"{output.name}, where the case gives finite ones"
            )
    return ""


def _is_compared(output: OutputAccuracy) -> bool:
    """Whether any value of an output was compared with the reference."""
    figures = (output.sqnr_db, output.max_abs, output.cosine)
    if any(figure is not None and not math.isfinite(figure) for figure in figures):
        return False
    if output.compared is None:
        # A document of an earlier version, which did not count the values.
        return (
            output.exact
            or output.adds_nonfinite
            or bool(output.rows)
            or any(figure is not None for figure in figures)
        )
    return output.compared > 0 or output.sqnr_db is not None or output.adds_nonfinite
