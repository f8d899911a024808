"""What the self-test of stored comparisons found, as tables of text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from pytest_ortbench.core.units import counted, percent
from pytest_ortbench.gate.numbers.stored_trials import (
    JUDGED,
    StoredTally,
    StoredTrial,
    Way,
    run_spreads,
    tallies,
)

VERDICTS = (*JUDGED, "flagged", "incomparable")

VERDICT_HEADER = ["judged by", "made slower", *VERDICTS, "share slower [95 % exact]"]
CASE_HEADER = ["model", "threads", "made slower", *VERDICTS]


def verdict_rows(trials: Sequence[StoredTrial]) -> list[list[str]]:
    """Return one row a way to choose the stored runs, and slowdown."""
    return [
        [f"{tallied.way.value} runs", _slowdown(tallied), *_counts(tallied), _share(tallied)]
        for tallied in tallies(trials)
    ]


def rows_by_case(trials: Sequence[StoredTrial]) -> list[list[str]]:
    """Return one row a model, number of threads and slowdown, judged by the runs before."""
    rows = []
    for case in sorted({trial.case for trial in trials}):
        model, threads = case
        name = str(threads) if threads else "all"
        rows += [
            [model, name, _slowdown(tallied), *_counts(tallied)]
            for tallied in tallies(trials, case)
            if tallied.way is Way.EARLIER
        ]
    return rows


def stored_sentences(trials: Sequence[StoredTrial]) -> list[str]:
    """Return what the counts mean, and what is known of how far runs differ."""
    causes = Counter(trial.cause for trial in trials if trial.cause)
    told = ", ".join(f"{cause}: {count}" for cause, count in causes.most_common())
    loads = sorted(trial.load for trial in trials)
    lines = [
        f"{counted(len(trials), 'run')}; load average before a run: median "
        f"{loads[len(loads) // 2]:.1f}, {loads[0]:.1f} to {loads[-1]:.1f}"
        + (f"; without a ratio to a yardstick: {told}" if told else ""),
        "made slower: the ratio of a run is multiplied, nothing is added to the model; +0 %: the "
        "same code, so every 'slower' is a false alarm. What is known of how far runs differ "
        "comes from all runs but the one that is judged",
        f"flagged: their flags leave no verdict ({_flag_counts(trials)}); incomparable: no run "
        "before them, or near them, was of the same state of the machine",
    ]
    for estimator, spread in sorted(run_spreads(trials).items()):
        lines.append(
            f"ratios of {estimator}: two runs of the same code differ with a standard deviation "
            f"of {percent(math.expm1(spread.deviation))} ({spread.degrees} degrees of freedom), "
            f"the farthest was {percent(math.expm1(spread.largest))} above the others' middle"
        )
    versions = sorted({trial.version for trial in trials if trial.version})
    if len(versions) > 1:
        lines.append(f"runs of several versions: {', '.join(versions)}")
    return lines


def _flag_counts(trials: Sequence[StoredTrial]) -> str:
    counts = Counter(flag for trial in trials for flag in trial.blurring)
    return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"


def _slowdown(tallied: StoredTally) -> str:
    return f"+{100 * tallied.slowdown:g} %"


def _counts(tallied: StoredTally) -> list[str]:
    return [str(tallied.verdicts.get(verdict, 0)) for verdict in VERDICTS]


def _share(tallied: StoredTally) -> str:
    if not tallied.judged:
        return "none could be judged"
    share = tallied.verdicts.get("slower", 0) / tallied.judged
    low, high = tallied.slower_low, tallied.slower_high
    return f"{percent(share)} [{percent(low)}, {percent(high)}]"
