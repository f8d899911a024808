"""When the answers of a case are wrong: by its labels, or by the floors of its precision.

Labels go before floors, since they say what the user wants to know: a quantised model of 12 dB
that answers as well as fp32 is accurate, and one of 20 dB that does not is none. A floor that the
user set for a recipe holds beside them, and NaN and infinity are wrong whatever the labels say.
Where the labelled samples are too few to tell, the floors judge.
"""

from __future__ import annotations

import math
from dataclasses import replace

from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.analysis.task import verdict
from pytest_ortbench.core.outcome import CaseResult, OutputAccuracy
from pytest_ortbench.core.precision import FLOOR, Floor, floor_of

#: Outputs of these types are quantised numbers, not names of classes: a difference of one step is
#: rounding.
_QUANTISED_TYPES = ("tensor(uint8)", "tensor(int8)")


def inaccurate(result: CaseResult) -> str:
    """Return why the answers of a case are wrong; empty if they are not known to be."""
    keeps, lost = (None, "") if result.task is None else verdict(result.task)
    reasons = [*_against_reference(result, by_labels=keeps is not None), lost]
    return "; ".join(reason for reason in reasons if reason)


def _against_reference(result: CaseResult, *, by_labels: bool) -> list[str]:
    accuracy = result.accuracy
    if accuracy is None or result.case.model.random_ops:
        return []
    floor = floor_of(result.case)
    if by_labels and FLOOR not in result.case.variant.recipe:
        floor = replace(floor, sqnr_db=-math.inf, agreement=0.0)
    types = {output.name: output.type for output in result.case.model.outputs}
    reasons = [
        _below_floor(output, floor)
        for output in accuracy.outputs
        if not (types.get(output.name) in _QUANTISED_TYPES and _is_within_a_step(output))
    ]
    checks = [check for worker in result.measurements for check in worker.output_checks]
    if accuracy.repeatable is False and not any(check.nonfinite for check in checks):
        reasons.append(accuracy.repeat_note)
    return reasons


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
