"""All judgements of one case: what flags, rankings and summaries read.

A judgement that could not be made bars a case from every ranking, as a bad one of its answers does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_ortbench.analysis.inaccuracy import judge_accuracy
from pytest_ortbench.analysis.steadiness import WARM_UP, judge_warm_up
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.judgement import Judgement
from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.core.placement import judge_placement
from pytest_ortbench.passes.registry import PASSES


def judgements_of(result: CaseResult) -> tuple[Judgement, ...]:
    """Return every judgement that a case is due; none for one that failed, whose status says all.

    One side of a paired gate has no samples of its own and no warm-up to judge; labelled data is
    judged where it was asked for.
    """
    if result.failure is not None or result.status != "measured":
        return ()
    due = [judge_accuracy(result)]
    if result.case.provider.is_execution_provider:
        due.append(judge_placement(result.placement))
    if result.measurements:
        due.append(judge_warm_up(result))
    judged = [entry.load(entry.judge)(result) for entry in PASSES if entry.judge]
    return (*due, *(judgement for judgement in judged if judgement is not None))


def barring_words(judgements: Sequence[Judgement]) -> str:
    """Name the judgements that keep a case out of every ranking; empty if none does.

    Samples that are known to be unsteady blur a number, and bar nothing.
    """
    return "; ".join(
        f"{judgement.of}: {judgement.reason}"
        for judgement in judgements
        if judgement.is_unjudged or (judgement.is_bad and judgement.of != WARM_UP)
    )


def is_barred(result: CaseResult, judgements: Sequence[Judgement]) -> bool:
    """Whether a judgement or a flag keeps a case out of every ranking."""
    return bool(barring_words(judgements) or flag_names(result.flags, "bars"))


def flag_names(flags: Iterable[Flag], severity: str) -> tuple[str, ...]:
    """Return the names of the flags of one severity."""
    return tuple(
        flag.name for flag in flags if flag.name in FLAGS and FLAGS[flag.name].severity == severity
    )


def unjudged_words(judgements: Sequence[Judgement]) -> str:
    """Name the judgements that could not be made, each with its reason; empty if all were."""
    return "; ".join(
        f"{judgement.of}: {judgement.reason}" for judgement in judgements if judgement.is_unjudged
    )
