"""How long the cases of a run will take, told before the first of them is measured."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.units import counted

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case
    from pytest_ortbench.plugin.bench import Bench

#: A worker of a small model starts, loads and warms up in about so long.
_START_S = 1.0
#: What takes less needs no word.
_TOLD_S = 600.0
#: Nobody waits longer for one run, and a value too many on an axis makes such a run.
_MOST_S = 24 * 3600.0


def expected_s(cases: Collection[Case]) -> float:
    """Return about how long cases take: what is timed, soaks, and starts of workers."""
    return sum(
        case.sampling.time_s + case.sampling.soak_s + case.sampling.workers * _START_S
        for case in cases
    )


def time_words(cases: Collection[Case]) -> str:
    """Return how long cases take, for people; empty for what takes a few minutes."""
    seconds = expected_s(cases)
    if seconds < _TOLD_S:
        return ""
    minutes = round(seconds / 60)
    return f"about {minutes} min" if minutes < 120 else f"about {round(seconds / 3600):,} h"


def refuse_endless(bench: Bench) -> None:
    """Refuse a run that takes more than a day.

    Raises:
        UsageError: with how long it would take.
    """
    cases = to_measure(bench)
    if expected_s(cases) > _MOST_S:
        raise UsageError(
            f"{counted(len(cases), 'case')} would take {time_words(cases)}, and a run takes at "
            f"most {_MOST_S / 3600:g} h",
            place="the cases asked for",
            hint="Name fewer values, lower --ort-time or --ort-workers, or measure parts of it "
            "(-k) and go on with --ort-resume",
        )


def to_measure(bench: Bench) -> list[Case]:
    """Return the cases that are neither refused nor taken from an interrupted run."""
    taken = bench.resumable.results if bench.resumable is not None else {}
    return [
        planned.case
        for key, planned in bench.planned.items()
        if planned.refusal is None and key not in taken
    ]
