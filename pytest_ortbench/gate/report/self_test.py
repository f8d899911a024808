"""What the gate's self-test found, as a table of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.core.units import format_amount, percent
from pytest_ortbench.gate.numbers.self_test import (
    EQUAL,
    Pace,
    Tally,
    Trial,
    kinds_of,
    paces,
    tally,
)


def self_test_rows(trials: Sequence[Trial]) -> list[list[str]]:
    """One row a kind of trials: counts, exact intervals, what could have been seen, seconds."""
    return [_row(tally(trials, kind)) for kind in kinds_of(trials)]


HEADER = [
    "sides",
    "gates",
    "slower",
    "share [95 % exact]",
    "inconclusive",
    "estimate",
    "detectable",
    "seconds",
]


def _row(tallied: Tally) -> list[str]:
    share = tallied.slower / tallied.trials
    return [
        tallied.kind,
        str(tallied.trials),
        str(tallied.slower),
        f"{percent(share)} [{percent(tallied.slower_low)}, {percent(tallied.slower_high)}]",
        str(tallied.inconclusive),
        "" if tallied.effect is None else f"{100 * tallied.effect:+.2f} %",
        "" if tallied.detectable is None else format_amount(tallied.detectable, "ratio", 2),
        f"{tallied.wall_s:.0f}",
    ]


MODEL_HEADER = ["model", "fastest", *HEADER[:4], "inconclusive", "detectable", "seconds"]


def model_rows(trials: Sequence[Trial]) -> list[list[str]]:
    """Return one row a model and kind of trials, the models by their latency."""
    latencies = {
        model: median(trial.latency_s for trial in trials if trial.model == model)
        for model in dict.fromkeys(trial.model for trial in trials)
    }
    rows = []
    for model in sorted(latencies, key=lambda name: latencies[name]):
        for kind in kinds_of([trial for trial in trials if trial.model == model]):
            row = _row(tally(trials, kind, model))
            fastest = format_amount(latencies[model], "s")
            rows.append([model, fastest, *row[:5], *row[6:]])
    return rows


def self_test_sentences(trials: Sequence[Trial]) -> list[str]:
    """Return the conditions of the trials, and what the numbers mean."""
    models = ", ".join(dict.fromkeys(trial.model for trial in trials))
    loads = sorted(trial.load for trial in trials)
    middle = loads[len(loads) // 2]
    threads = sorted({trial.threads for trial in trials if trial.threads})
    counts = "" if not threads else f"; threads: {', '.join(map(str, threads))}"
    versions = sorted({trial.version for trial in trials if trial.version})
    if len(versions) > 1:
        counts += f"; trials of several versions: {', '.join(versions)}"
    lines = [
        f"models: {models}{counts}; load average before a gate: median {middle:.1f}, "
        f"{loads[0]:.1f} to {loads[-1]:.1f}",
        "equal: the same file on both sides, so every 'slower' is a false alarm; +N %: work "
        "really added inside the timed region",
    ]
    equal = [trial for trial in trials if trial.kind == EQUAL]
    if equal:
        undecided = sum(trial.verdict == "inconclusive" for trial in equal)
        low, high = proportion_interval(undecided, len(equal))
        lines.append(
            f"equal sides without a verdict: {percent(undecided / len(equal))} "
            f"[{percent(low)}, {percent(high)}]"
        )
    if any(trial.kind == "wider" for trial in trials):
        lines.append("wider: a network with 7.1 % more multiply-accumulates")
    taken = ", ".join(map(_pace, paces(trials)))
    if taken:
        lines.append(f"seconds a gate of any kind, median: {taken}")
    return lines


def _pace(pace: Pace) -> str:
    length = "that take longer" if math.isinf(pace.up_to_s) else f"up to {1000 * pace.up_to_s:g} ms"
    gates = "1 gate" if pace.gates == 1 else f"{pace.gates} gates"
    return f"{pace.wall_s:.0f} with inferences {length} ({gates})"
