"""Which two cases of a run would be told apart in turns, since others used the machine meanwhile.

Blocks of two sides that take turns (``--ort-against``) are of the same minutes, so that what other
programs take is in both.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

from pytest_ortbench.analysis.candidates import Candidate, are_even, are_tied, speed_metric
from pytest_ortbench.analysis.judgements import flag_names
from pytest_ortbench.analysis.next_step import NextStep
from pytest_ortbench.analysis.ranked import workload_of
from pytest_ortbench.analysis.steadiness import WARM_UP
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.flags import OF_OTHER_WORK, UNJUDGED
from pytest_ortbench.core.outcome import CaseResult

_AGAINST = "--ort-against"


def is_disturbed(summary: Summary) -> bool:
    """Whether other work on the machine is known to have changed the time of a case."""
    return any(flag.name in OF_OTHER_WORK for flag in summary.flags)


def is_incomparable(summary: Summary) -> bool:
    """Whether the time of a case is none to compare, however it is measured.

    One that can't be judged yet may lack samples because other work slowed it down.
    """
    return bool(set(flag_names(summary.flags, "bars")) - {UNJUDGED}) or any(
        judgement.is_bad and judgement.of != WARM_UP for judgement in summary.judgements
    )


def threads_in_turns(threads: int) -> dict[str, str]:
    """Return the option that compares a case with itself on another number of threads."""
    return {_AGAINST: f"option:intra_op_num_threads={threads}"}


def turns_to_take(
    members: Sequence[tuple[CaseResult, Summary]], chosen: Collection[str]
) -> list[NextStep]:
    """Return a comparison in turns of two of the fastest cases, where other work hides which is.

    Args:
        members: Cases whose times are worth a comparison, with their numbers.
        chosen: Flags of the options that the user has set.
    """
    if {_AGAINST, "--ort-baseline"} & set(chosen):
        return []
    groups: dict[tuple[object, ...], list[Candidate]] = {}
    for result, summary in members:
        case = result.case
        if speed_metric(case) in summary.quantities:
            key = (workload_of(case), case.batch, case.runtime.label)
            groups.setdefault(key, []).append(Candidate(summary, case.case_id))
    for group in groups.values():
        ordered = sorted(group, key=lambda candidate: candidate.speed.value)
        metric = speed_metric(ordered[0].summary.case)
        undecided = [
            candidate
            for candidate in ordered
            if candidate is ordered[0] or are_tied(ordered[0], candidate, metric)
        ]
        for one, other in combinations(undecided, 2):
            if are_even(one, other, metric) or not any(
                is_disturbed(side.summary) for side in (one, other)
            ):
                continue
            options = _differing(one.summary.case, other.summary.case, chosen)
            if options:
                return [_step(one, other, options)]
    return []


def _step(one: Candidate, other: Candidate, options: dict[str, str]) -> NextStep:
    return NextStep(
        kind="turns",
        why=f"{one.label} and {other.label} can't be told apart, since other programs ran "
        "meanwhile; in turns both run beside the same ones",
        options=options,
    )


def _differing(one: Case, other: Case, chosen: Collection[str]) -> dict[str, str]:
    """Options that compare two cases in turns; none where they differ in more than one way."""
    if one.generation is not None or one.variant.compilation != other.variant.compilation:
        return {}
    # Options of a provider are asked of those that the run names.
    if other.provider.options and not one.provider.options:
        one, other = other, one
    sides = [
        (case.variant.precision, case.provider.label, case.knobs.get("threads", ""))
        for case in (one, other)
    ]
    rest = [
        {name: value for name, value in case.knobs.items() if name != "threads"}
        for case in (one, other)
    ]
    differ = [mine != theirs for mine, theirs in zip(*sides, strict=True)]
    if sum(differ) != 1 or rest[0] != rest[1]:
        return {}
    precision, provider, threads = sides[0]
    pinned = {
        "--ort-precisions": precision,
        "--ort-providers": provider,
        "--ort-threads": threads,
    }
    options = {flag: value for flag, value in pinned.items() if flag in chosen and value}
    if differ[2]:
        if not all(threads for _, _, threads in sides):
            return {}
        return options | threads_in_turns(int(sides[1][2]))
    kind = "precision" if differ[0] else "provider"
    return options | {_AGAINST: f"{kind}:{sides[1][0] if differ[0] else sides[1][1]}"}
