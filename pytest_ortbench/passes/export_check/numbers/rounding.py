"""Whether rounding explains how far an output is from the source's.

Both sides compute in float32, in another order and with other kernels, so they are never expected
to be equal. How far rounding may take them shows in the file alone, which is run again with one
thread, in float64, and on inputs moved by one unit in the last place: a difference ten times as
large as all of these is none of rounding. A wrong epsilon is seen by that (66 to 107 dB from its
source), and not by the floor of 60 dB that a provider has to keep.

A file that does not repeat itself excuses nothing: where it differs by more than the floor of its
precision when it is just run a second time, the difference is its own; where any other trial does,
its spread can't tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_ortbench.analysis.floors import miss
from pytest_ortbench.analysis.reference_spread import is_within_spread, self_difference, was_run
from pytest_ortbench.core.accuracy import OutputAccuracy, ReferenceSpread
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.nearness import NEAR_DB
from pytest_ortbench.core.precision import SQNR_FLOOR_DB, Floor, precision_of
from pytest_ortbench.passes.export_check.facts import ExportCheck

#: As near as this an fp32 export is in order where the file can't be run in float64, so that its
#: spread says little of rounding: the 1e-5 that converters promise.
_NEAR_UNKNOWN_DB = 100.0
#: Share of whole values that must agree: labels flip at ties.
_AGREEMENT = 0.99
#: Values inside may be three times as far off as the outputs are from themselves.
_INNER_DB = 10.0


def is_wrong(output: OutputAccuracy, check: ExportCheck, model: Model) -> bool:
    """Return whether an output differs from the source's by more than rounding explains.

    Args:
        output: Its figures.
        check: What they are of.
        model: The exported one.
    """
    if not miss(output, type_of(output, model), _near(check, model)):
        return False
    if is_drawn(output, check, model):
        return True
    return not doubt(output, check, model) and not is_within_spread(_moved(check.spread), output)


def is_drawn(output: OutputAccuracy, check: ExportCheck, model: Model) -> bool:
    """Return whether a file that is run a second time is far from itself, as with live dropout.

    Args:
        output: Figures of one of its outputs.
        check: What they are of.
        model: The exported one.
    """
    again = _only_again(check.spread)
    return bool(self_difference(again, output, type_of(output, model), _own_floor(model)))


def doubt(output: OutputAccuracy, check: ExportCheck, model: Model) -> str:
    """Say why an output that is not near can't be called wrong either; empty if it can.

    Args:
        output: Its figures.
        check: What they are of.
        model: The exported one.
    """
    type_name = type_of(output, model)
    missed = miss(output, type_name, _near(check, model))
    if not missed or is_drawn(output, check, model):
        return ""
    spread, floor = check.spread, _own_floor(model)
    if spread is None or not was_run(spread):
        # Whatever its spread, what misses the floor of its precision is wrong.
        if not miss(output, type_name, floor):
            return f"{missed}, and the file was not run again: {_why_not_run(spread)}"
        return ""
    again = self_difference(_only_again(spread), output, type_name, _near(check, model))
    difference = again or self_difference(spread, output, type_name, floor)
    return f"{missed}; {difference}" if difference else ""


def near_db(check: ExportCheck, model: Model) -> float:
    """Return how near to its source an export is in order, whatever its own spread.

    Args:
        check: What both sides answered.
        model: The exported one.
    """
    precision = precision_of(model)
    if precision != "fp32":
        return SQNR_FLOOR_DB.get(precision, SQNR_FLOOR_DB["int8-static"])
    trials = check.spread.trials if check.spread is not None else ()
    wide = any(trial.name == "float64" and trial.outputs for trial in trials)
    return NEAR_DB if wide else _NEAR_UNKNOWN_DB


def inner_near_db(check: ExportCheck, model: Model) -> float:
    """Return how near values inside the model have to be to agree.

    Rounding adds up on the way to the outputs, so what these may lose, inner values may, too; but
    never more than the floor of the model's precision.

    Args:
        check: What both sides answered.
        model: The exported one.
    """
    spread = _moved(check.spread)
    trials = spread.trials if spread is not None else ()
    known = [
        output.sqnr_db for trial in trials for output in trial.outputs if output.sqnr_db is not None
    ]
    nearest = min([near_db(check, model), *(value - _INNER_DB for value in known)])
    return max(nearest, _own_floor(model).sqnr_db - _INNER_DB)


def type_of(output: OutputAccuracy, model: Model) -> str:
    """Return the type of an output as the model declares it; empty for a part of a sequence.

    Args:
        output: Its figures.
        model: The exported one.
    """
    return next((info.type for info in model.outputs if info.name == output.name), "")


def _why_not_run(spread: ReferenceSpread | None) -> str:
    if spread is None:
        return "nobody asked"
    reasons = [spread.reason, *(trial.reason for trial in spread.trials)]
    return next(filter(None, reasons), "no input set was run")


def _near(check: ExportCheck, model: Model) -> Floor:
    return Floor(sqnr_db=near_db(check, model), agreement=_AGREEMENT, of="rounding")


def _own_floor(model: Model) -> Floor:
    """What a file has to keep against itself for its spread to say anything."""
    precision = precision_of(model)
    floor_db = SQNR_FLOOR_DB.get(precision, SQNR_FLOOR_DB["int8-static"])
    return Floor(sqnr_db=floor_db, agreement=_AGREEMENT, of=precision)


def _only_again(spread: ReferenceSpread | None) -> ReferenceSpread | None:
    return _some(spread, lambda name: name == "again")


def _moved(spread: ReferenceSpread | None) -> ReferenceSpread | None:
    """All trials but the plain repetition, which tells nothing of rounding."""
    return _some(spread, lambda name: name != "again")


def _some(spread: ReferenceSpread | None, takes: Callable[[str], bool]) -> ReferenceSpread | None:
    if spread is None:
        return None
    return replace(spread, trials=tuple(trial for trial in spread.trials if takes(trial.name)))
