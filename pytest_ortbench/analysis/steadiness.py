"""Whether the samples of a case are steady: by the rule of its warm-up, or by their own thirds."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged
from pytest_ortbench.core.outcome import CaseResult, Samples

#: The thirds of a worker differ by more than this share and by more than this many times the
#: scatter of segments inside a third.
UNSTEADY_SHARE = 0.03
UNSTEADY_SCATTERS = 3

WARM_UP = "warm-up"


def workers_of(result: CaseResult) -> Sequence[Samples]:
    """Return the samples of the workers that finished, in their order."""
    ordered = sorted(result.measurements, key=lambda entry: entry.worker)
    return [measurement.samples for measurement in ordered]


def change_over_time(samples: Samples) -> tuple[float, float] | None:
    """Return the relative change from the first third to the last, and how much is allowed.

    ``None`` where there are too few samples for thirds.
    """
    if samples.thirds_ns is None or not samples.thirds_ns[0]:
        return None
    first, last, scatter = samples.thirds_ns
    allowed = max(UNSTEADY_SHARE, UNSTEADY_SCATTERS * scatter / first)
    return last / first - 1, allowed


def unsteady(result: CaseResult) -> str:
    """Say how most workers got slower, or most got faster; empty if they did not.

    Either is a warm-up that was not over, or a drift. Seen on two contended virtual CPUs, 40 cases
    of three workers: two were flagged by changes of any direction, one by changes of the same
    direction, while an injected step of 10 % was found in 85 % either way. Workers that change in
    opposite directions met other load on the machine, which is for ``CPU-SHARE``, ``STEAL`` and the
    interval to show.
    """
    changes = [change for change in map(change_over_time, workers_of(result)) if change is not None]
    slower = [change for change, allowed in changes if change > allowed]
    faster = [change for change, allowed in changes if change < -allowed]
    most = max(slower, faster, key=len)
    if 2 * len(most) <= len(changes):
        return ""
    shown = ", ".join(f"{100 * change:+.1f} %" for change in most)
    return f"last third against first third in {len(most)} of {len(changes)} workers: {shown}"


def judge_warm_up(result: CaseResult) -> Judgement:
    """Judge whether the workers were warm when they were timed.

    A worker was if its warm-up ended by its own rule, or if its samples are steady. One whose
    warm-up was cut off and that has too few samples to tell can't be judged, and neither can a case
    that has no majority of others.
    """
    measured = [entry for entry in result.measurements if entry.samples.count > 0]
    if not measured:
        return unjudged(WARM_UP, "no inference was timed")
    changed = unsteady(result)
    if changed:
        return bad(WARM_UP, changed)
    unknown = [
        entry
        for entry in measured
        if not entry.warm_up.steady and change_over_time(entry.samples) is None
    ]
    if 2 * len(unknown) < len(measured):
        return good(WARM_UP)
    counts = [entry.samples.count for entry in unknown]
    few = f"{min(counts)} samples" if min(counts) > 1 else "1 sample"
    return unjudged(
        WARM_UP,
        f"cut off in {len(unknown)} of {len(measured)} workers ({unknown[0].warm_up.rule}), and "
        f"{few} can't tell whether they are steady; raise --ort-time",
    )
