"""Whether the samples of a case are steady: by the rule of its warm-up, or by their own thirds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged
from pytest_ortbench.core.outcome import CaseResult, Measurement, Samples

#: The thirds of a worker differ by more than this share and by more than this many times the
#: scatter of segments inside a third.
UNSTEADY_SHARE = 0.03
UNSTEADY_SCATTERS = 3

#: Too few samples for thirds: the later half of at least so many warm-up runs is compared with at
#: least so many samples, and their medians may differ by this share. An inference of 200 ms gets 16
#: warm-up runs and 8 samples a worker by default; ranking nothing of its kind would help nobody.
LEAST_WARM_UP_RUNS = 3
LEAST_SAMPLES = 3
WARM_UP_SHARE = 0.10

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
    return f"last third compared with first third in {len(most)} of {len(changes)} workers: {shown}"


def judge_warm_up(result: CaseResult) -> Judgement:
    """Judge whether the workers were warm when they were timed.

    A worker was warm if its warm-up ended by its own rule, if its samples are steady, or, where
    these are too few for thirds, if they take as long as the later warm-up runs did. A worker that
    shows none of these can't be judged, and neither can a case in which such workers are half.
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
        if not entry.warm_up.steady
        and change_over_time(entry.samples) is None
        and not _continues_warm_up(entry)
    ]
    if 2 * len(unknown) < len(measured):
        return good(WARM_UP)
    counts = [entry.samples.count for entry in unknown]
    few = f"{min(counts)} samples" if min(counts) > 1 else "1 sample"
    return unjudged(
        WARM_UP,
        f"cut off in {len(unknown)} of {len(measured)} workers ({unknown[0].warm_up.rule}), and "
        f"{few} can't show whether the times are steady; raise --ort-time",
    )


def _continues_warm_up(entry: Measurement) -> bool:
    """Whether the few samples of a worker take as long as the later half of its warm-up runs."""
    runs_ns, timed_ns = entry.warm_up.durations_ns, entry.samples.durations_ns
    if len(runs_ns) < LEAST_WARM_UP_RUNS or len(timed_ns) < LEAST_SAMPLES:
        return False
    later_ns = median(runs_ns[len(runs_ns) // 2 :])
    return later_ns > 0 and abs(median(timed_ns) / later_ns - 1) <= WARM_UP_SHARE
