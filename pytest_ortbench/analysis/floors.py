"""How an output misses the floor of its precision."""

from __future__ import annotations

from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.core.accuracy import OutputAccuracy
from pytest_ortbench.core.precision import Floor

#: Outputs of these types are quantised numbers, not names of classes: a difference of one step is
#: rounding.
_QUANTISED_TYPES = ("tensor(uint8)", "tensor(int8)")


def miss(output: OutputAccuracy, type_name: str, floor: Floor) -> str:
    """Say how one output misses its floor; empty if it does not.

    Agreement of whole values is compared with its floor only where even the upper end of its exact
    interval lies below: eight rows with one flip prove nothing.

    Args:
        output: Its figures.
        type_name: Its type as the model declares it; empty if unknown.
        floor: What it must keep.
    """
    if is_within_a_step(output, type_name):
        return ""
    if output.adds_nonfinite:
        return f"{output.name}: {output.nan_count} NaN, {output.inf_count} infinite"
    if output.sqnr_db is not None:
        if output.sqnr_db >= floor.sqnr_db:
            return ""
        return (
            f"{output.name}: SQNR {output.sqnr_db:.1f} dB, below the minimum of {floor.sqnr_db:g} "
            f"dB for {floor.of}"
        )
    if not output.finite or output.exact or output.agree is None or not output.rows:
        return ""
    _, at_most = proportion_interval(output.agree, output.rows, tail=0.05)
    if at_most >= floor.agreement:
        return ""
    return (
        f"{output.name}: {output.agree} of {output.rows} rows agree, "
        f"floor of {floor.of} {100 * floor.agreement:.0f} %"
    )


def is_within_a_step(output: OutputAccuracy, type_name: str) -> bool:
    """Return whether an output is a quantised number that differs by its last step at most.

    Args:
        output: Its figures.
        type_name: Its type as the model declares it; empty if unknown.
    """
    return type_name in _QUANTISED_TYPES and output.max_abs is not None and output.max_abs <= 1
