"""What the gate's self-test found, as a table of text."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.analysis.gate.self_test import Tally, Trial, kinds_of, tally
from pytest_ortbench.core.units import format_amount


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


def _row(found: Tally) -> list[str]:
    share = found.slower / found.trials
    return [
        found.kind,
        str(found.trials),
        str(found.slower),
        f"{_percent(share)} [{_percent(found.slower_low)}, {_percent(found.slower_high)}]",
        str(found.inconclusive),
        "" if found.effect is None else f"{100 * found.effect:+.2f} %",
        "" if found.detectable is None else format_amount(found.detectable, "ratio", 2),
        f"{found.wall_s:.0f}",
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def self_test_sentences(trials: Sequence[Trial]) -> list[str]:
    """The conditions of the trials, and what the numbers mean."""
    models = ", ".join(dict.fromkeys(trial.model for trial in trials))
    loads = sorted(trial.load for trial in trials)
    middle = loads[len(loads) // 2]
    lines = [
        f"models: {models}; load average before a gate: median {middle:.1f}, "
        f"{loads[0]:.1f} to {loads[-1]:.1f}",
        "equal: the same file on both sides, so every 'slower' is a false alarm; +N %: work "
        "really added inside the timed region",
    ]
    if any(trial.kind == "wider" for trial in trials):
        lines.append("wider: a network with 7.1 % more multiply-accumulates")
    return lines
