"""How an output misses the floor of its precision."""

from __future__ import annotations

from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.core.accuracy import OutputAccuracy, SliceAccuracy
from pytest_ortbench.core.precision import Floor
from pytest_ortbench.core.units import counted, decimals_apart, significant

#: Outputs of these types are quantised numbers, not names of classes: a difference of one step is
#: rounding.
_QUANTISED_TYPES = ("tensor(uint8)", "tensor(int8)")

#: Slices that are much smaller than the others may lie so far below the floor of the whole output,
#: since some of them are often of no use to anybody; and nowhere need they keep more than this:
#: noise of a tenth, where the rest of the output is right.
SLICES_BELOW_DB = 10.0
SLICES_MOST_DB = 20.0
#: With so few different values slices must keep the whole floor: they say yes or no, not how much.
COLLAPSED_VALUES = 4


def miss(output: OutputAccuracy, type_name: str, floor: Floor) -> str:
    """Say which output misses its floor and how; empty if it does not.

    Args:
        output: Its figures.
        type_name: Its type as the model declares it; empty if unknown.
        floor: What it must keep.
    """
    text = shortfall(output, type_name, floor)
    if not text:
        return ""
    return f"{output.name} {text}" if text == output.mismatch else f"{output.name}: {text}"


def shortfall(output: OutputAccuracy, type_name: str, floor: Floor) -> str:
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
        return f"{output.nan_count} NaN, {output.inf_count} infinite"
    if output.sqnr_db is not None:
        if output.sqnr_db >= floor.sqnr_db:
            return "" if output.slices is None else _slices_miss(output.slices, floor)
        return output.mismatch or (
            f"SQNR {decimals_apart(output.sqnr_db, floor.sqnr_db)} dB, below the "
            f"minimum of {floor.sqnr_db:g} dB for {floor.of}"
        )
    if not output.finite or output.exact or output.agree is None or not output.rows:
        return ""
    _, at_most = proportion_interval(output.agree, output.rows, tail=0.05)
    if at_most >= floor.agreement:
        return ""
    return output.mismatch or (
        f"{output.agree} of {output.rows} rows agree, "
        f"the minimum for {floor.of} is {100 * floor.agreement:.0f} %"
    )


def slices_floor_db(slices: SliceAccuracy, floor: Floor) -> float:
    """Return the signal to noise ratio that slices much smaller than the others must keep.

    Args:
        slices: What is known of them.
        floor: What the whole output must keep.
    """
    least = min(floor.sqnr_db - SLICES_BELOW_DB, SLICES_MOST_DB)
    return max(least, min(floor.sqnr_db, SLICES_MOST_DB)) if is_collapsed(slices) else least


def is_collapsed(slices: SliceAccuracy) -> bool:
    """Return whether slices have hardly any different values where the reference has many."""
    return (
        slices.distinct is not None
        and slices.distinct <= COLLAPSED_VALUES
        and slices.reference_distinct is None
    )


def slices_words(slices: SliceAccuracy) -> str:
    """Name slices: ``channels 4 to 21``, ``18 channels between 0 and 21``."""
    where = "" if slices.axis == 1 else f" of axis {slices.axis}"
    if slices.count == 1:
        return f"channel {slices.first}{where}"
    if slices.last - slices.first + 1 == slices.count:
        return f"channels {slices.first} to {slices.last}{where}"
    return f"{slices.count} channels between {slices.first} and {slices.last}{where}"


def _slices_miss(slices: SliceAccuracy, floor: Floor) -> str:
    least = slices_floor_db(slices, floor)
    if slices.sqnr_db >= least:
        return ""
    values = f" ({counted(slices.distinct or 0, 'distinct value')})" if is_collapsed(slices) else ""
    return (
        f"{slices_words(slices)}, with values up to {significant(slices.largest, 2)} "
        f"where the others reach {significant(slices.others_largest, 3)}, keep "
        f"{decimals_apart(slices.sqnr_db, least)} dB{values}, below the minimum of {least:g} dB "
        f"for such channels in {floor.of}"
    )


def is_within_a_step(output: OutputAccuracy, type_name: str) -> bool:
    """Return whether an output is a quantised number that differs by its last step at most.

    Args:
        output: Its figures.
        type_name: Its type as the model declares it; empty if unknown.
    """
    return type_name in _QUANTISED_TYPES and output.max_abs is not None and output.max_abs <= 1
