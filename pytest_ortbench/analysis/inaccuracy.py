"""When the answers of a case are wrong: by its labels, or by the floors of its precision.

Labels go before floors, since they say what the user wants to know: a quantised model of 12 dB
that answers as well as fp32 is accurate, and one of 20 dB that does not is none. A floor that the
user set for a recipe holds beside them, and NaN and infinity are wrong whatever the labels say.
Where the labelled samples are too few to tell, the floors judge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.analysis.task import judge_task
from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged
from pytest_ortbench.core.outcome import Accuracy, CaseResult, OutputAccuracy, OutputCheck
from pytest_ortbench.core.precision import FLOOR, Floor, floor_of

ACCURACY = "accuracy"

#: Outputs of these types are quantised numbers, not names of classes: a difference of one step is
#: rounding.
_QUANTISED_TYPES = ("tensor(uint8)", "tensor(int8)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What speaks for and against the answers of a case, a sentence each; empty where nothing does.

    Attributes:
        nonfinite: NaN and infinity in what the case gives, whatever its reference gives.
        wrong: How labels or floors are missed.
        missing: Why outputs can't be held against a reference.
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
    if against:
        return bad(ACCURACY, "; ".join(against))
    if evidence.missing and not evidence.by_labels:
        return unjudged(ACCURACY, evidence.missing)
    return good(ACCURACY)


def evidence_of(result: CaseResult) -> Evidence:
    """Collect what is known of the answers of a case."""
    nonfinite = _nonfinite(result)
    labels = judge_task(result.task)
    own_floor = FLOOR in result.case.variant.recipe
    missing = _why_not_compared(result)
    reasons: list[str] = []
    if result.accuracy is not None and not missing:
        floor = floor_of(result.case)
        if labels.is_good and not own_floor:
            floor = replace(floor, sqnr_db=-math.inf, agreement=0.0)
        reasons += _below_floors(result, result.accuracy, floor)
        if result.accuracy.repeatable is False and not any(
            check.nonfinite for check in _checks(result)
        ):
            reasons.append(result.accuracy.repeat_note)
    if labels.is_bad:
        reasons.append(labels.reason)
    return Evidence(
        nonfinite=nonfinite,
        wrong="; ".join(reason for reason in reasons if reason),
        missing=missing,
        by_labels=labels.is_good and not own_floor,
    )


def _checks(result: CaseResult) -> list[OutputCheck]:
    return [check for worker in result.measurements for check in worker.output_checks]


def _nonfinite(result: CaseResult) -> str:
    """How many values are NaN or infinite: in the measured loop, else in the compared outputs."""
    checks = _checks(result)
    worst = max(checks, key=lambda check: check.nonfinite, default=None)
    if worst is not None and worst.nonfinite:
        text = f"{worst.nonfinite} values in the {worst.run} run"
    else:
        outputs = result.accuracy.outputs if result.accuracy is not None else ()
        text = ", ".join(
            f"{output.nonfinite} values of {output.name} in the compared runs"
            for output in outputs
            if output.nonfinite
        )
    fed = max((check.nonfinite_inputs for check in checks), default=0)
    if not text or not fed:
        return text
    return f"{text}; the inputs hold {fed} NaN or infinite values themselves"


def _why_not_compared(result: CaseResult) -> str:
    """Why a case has no outputs that are held against a reference; empty if it has."""
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
        return "no value could be compared: every output is empty, or not finite in the reference"
    for output in accuracy.outputs:
        if output.reference_nonfinite and not output.nonfinite:
            return (
                f"the reference gives {output.reference_nonfinite} NaN or infinite values of "
                f"{output.name}, where the case gives none"
            )
    return ""


def _is_compared(output: OutputAccuracy) -> bool:
    """Whether any value of an output was held against the reference."""
    figures = (output.sqnr_db, output.max_abs, output.cosine)
    if any(figure is not None and not math.isfinite(figure) for figure in figures):
        return False
    if output.compared is None:
        # A document of an earlier version, which did not count the values.
        return (
            output.exact
            or not output.finite
            or bool(output.rows)
            or any(figure is not None for figure in figures)
        )
    return output.compared > 0 or output.sqnr_db is not None or not output.finite


def _below_floors(result: CaseResult, accuracy: Accuracy, floor: Floor) -> Iterator[str]:
    types = {output.name: output.type for output in result.case.model.outputs}
    for output in accuracy.outputs:
        if not (types.get(output.name) in _QUANTISED_TYPES and _is_within_a_step(output)):
            yield _below_floor(output, floor)


def _is_within_a_step(output: OutputAccuracy) -> bool:
    return output.max_abs is not None and output.max_abs <= 1


def _below_floor(output: OutputAccuracy, floor: Floor) -> str:
    """How one output misses its floor; empty if it does not.

    Agreement of whole values is held against its floor only where even the upper end of its exact
    interval lies below: eight rows with one flip prove nothing.
    """
    if not output.finite:
        return f"{output.name}: {output.nan_count} NaN, {output.inf_count} infinite"
    if output.sqnr_db is not None:
        if output.sqnr_db >= floor.sqnr_db:
            return ""
        return (
            f"{output.name}: SQNR {output.sqnr_db:.1f} dB, floor of {floor.of} {floor.sqnr_db:g} dB"
        )
    if output.exact or output.agree is None or not output.rows:
        return ""
    _, at_most = proportion_interval(output.agree, output.rows, tail=0.05)
    if at_most >= floor.agreement:
        return ""
    return (
        f"{output.name}: {output.agree} of {output.rows} rows agree, "
        f"floor of {floor.of} {100 * floor.agreement:.0f} %"
    )
