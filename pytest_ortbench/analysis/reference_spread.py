"""What a reference that was run again says of itself: whether it can judge, and how far is far.

An fp32 file that nobody changed is right on the CPU by definition, but for faults of the optimiser
and of the fast kernels. It is as far from its unoptimised self as sums in another order are, and
how far that is shows in the reference alone.
"""

from __future__ import annotations

from pytest_ortbench.analysis.floors import SLICES_MOST_DB, miss
from pytest_ortbench.core.accuracy import TRIALS, OutputAccuracy, ReferenceSpread, SpreadTrial
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.precision import Floor, base_of, precision_of
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.core.recipe import GRAPH_BASES

#: An fp32 file on the CPU may be this many times as far from its reference as that is from itself.
ALLOWED = 10.0
_ALLOWED_DB = 20.0


def self_difference(
    spread: ReferenceSpread | None, output: OutputAccuracy, type_name: str, floor: Floor
) -> str:
    """Say how a reference differs from itself by more than the floor, so that it can't judge.

    Args:
        spread: What is known of the reference; ``None`` if nobody asked.
        output: The output that it should judge.
        type_name: Its type as the model declares it.
        floor: What the output must keep.

    Returns:
        A sentence; empty if it can judge the output, or nothing is known.
    """
    for trial, again in _again(spread, output.name):
        difference = miss(again, type_name, floor)
        if difference:
            return _sentence(trial, difference)
    return ""


def differs_when_repeated(spread: ReferenceSpread | None, floor: Floor) -> str:
    """Say how a reference differs from itself when it is just run a second time; else empty."""
    for trial in spread.trials if spread is not None else ():
        if trial.name == "again":
            for output in trial.outputs:
                difference = miss(output, "", floor)
                if difference:
                    return _sentence(trial, difference)
    return ""


def is_as_near_as_itself(
    case: Case, spread: ReferenceSpread | None, output: OutputAccuracy
) -> bool:
    """Whether an fp32 file on the CPU is no further from its reference than ten times its spread.

    That of other precisions and providers is never excused by it: they compute something else.
    """
    return is_plain(case) and is_within_spread(spread, output)


def is_within_spread(spread: ReferenceSpread | None, output: OutputAccuracy) -> bool:
    """Whether an output is no further off than ten times what the reference is from itself."""
    return any(_is_within(output, again) for _, again in _again(spread, output.name))


def is_plain(case: Case) -> bool:
    """Whether a case runs an fp32 file on the CPU, in fp32."""
    unchanged = case.variant.path == case.model.path or case.variant.precision == "native"
    return (
        case.provider.name == CPU
        and not case.provider.then
        and precision_of(case.model) == "fp32"
        and (unchanged or base_of(case) in ("fp32", *GRAPH_BASES))
    )


def was_run(spread: ReferenceSpread) -> bool:
    """Whether the reference could be run again in any way."""
    return any(trial.outputs for trial in spread.trials)


def _again(spread: ReferenceSpread | None, name: str) -> list[tuple[SpreadTrial, OutputAccuracy]]:
    """What each trial gave for one output."""
    return [
        (trial, output)
        for trial in (spread.trials if spread is not None else ())
        for output in trial.outputs
        if output.name == name
    ]


def _is_within(output: OutputAccuracy, again: OutputAccuracy) -> bool:
    if not output.finite:
        return False
    if output.sqnr_db is not None:
        return (
            again.sqnr_db is not None
            and output.sqnr_db >= again.sqnr_db - _ALLOWED_DB
            and _are_slices_within(output, again)
        )
    return _disagreement(output) <= ALLOWED * _disagreement(again)


def _are_slices_within(output: OutputAccuracy, again: OutputAccuracy) -> bool:
    """Whether slices that are smaller than the others are no further off, either."""
    if output.slices is None:
        return True
    own_db = SLICES_MOST_DB if again.slices is None else again.slices.sqnr_db - _ALLOWED_DB
    return output.slices.sqnr_db >= own_db


def _disagreement(output: OutputAccuracy) -> float:
    if not output.rows or output.agree is None:
        return 0.0
    return 1 - output.agree / output.rows


def _sentence(trial: SpreadTrial, difference: str) -> str:
    return (
        f"the reference, {TRIALS.get(trial.name, trial.name)}, differs from its own first "
        f"run: {difference}"
    )
