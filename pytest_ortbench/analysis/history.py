"""Latency over many stored runs: where it changed, told from ratios to the canary.

A ratio to the pinned model of the same run is the same on a fast day and on a slow one, so that a
change of it is one of the code. A change point opens a question; it never fails anything.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from pytest_ortbench.analysis.order import MAD_SCALE
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Key
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.run import Run

#: A change is told only with so many runs on either side.
FEWEST = 2

#: Penalty of a change point in standard deviations, times the logarithm of the number of runs. Of a
#: hundred series of 30 runs with nothing but noise, at most two may show a step.
_PENALTY = 3.0

#: A step that is smaller than this is shown to nobody, however regular the series.
SMALLEST_STEP = 0.02

#: What makes a machine: its stable facts and the model of its canary.
Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One case in one run.

    Attributes:
        run_id: The run.
        started_at: UTC, ISO 8601.
        commit: Revision, empty if unknown.
        ratio: Median latency ÷ median of the canary.
    """

    run_id: str
    started_at: str
    commit: str
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change point.

    Attributes:
        index: The first point after it.
        change: Median after ÷ median before − 1, up to the neighbouring change points.
    """

    index: int
    change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One case over time, on one machine.

    Attributes:
        key: (case id, runtime label).
        role_note: What stands behind its name: what it is if it is no execution provider.
        machine: Host of its runs, numbered where one host has had different facts or canaries.
        points: The oldest first.
        steps: Where it changed.
    """

    key: Key
    role_note: str = ""
    machine: str
    points: tuple[Point, ...]
    steps: tuple[Step, ...] = ()


def histories(runs: Iterable[Run]) -> list[Series]:
    """Return one series a case and machine, with its change points.

    Runs without a canary are left out: what moved in them can't be told.

    Raises:
        UsageError: if the library that finds change points is not installed.
    """
    points_of: dict[tuple[Key, Facts], list[Point]] = {}
    hosts: dict[Facts, str] = {}
    notes: dict[Key, str] = {}
    for run in sorted(runs, key=lambda run: run.started_at):
        if run.canary is None or not run.canary.durations_ns:
            continue
        canary_s = median(run.canary.durations_ns) * 1e-9
        machine = (*sorted(run.machine.stable.items()), ("canary", run.canary.model))
        hosts[machine] = run.machine.host
        for result in run.cases:
            latency = summarise(result, percentiles=False).quantities.get("latency_p50")
            if latency is not None:
                notes[result.case.key] = result.case.provider.role_note
                points_of.setdefault((result.case.key, machine), []).append(
                    Point(
                        run_id=run.run_id,
                        started_at=run.started_at,
                        commit=run.commit.revision if run.commit else "",
                        ratio=latency.value / canary_s,
                    )
                )
    names = _machine_names(hosts)
    return [
        Series(
            key=key,
            role_note=notes[key],
            machine=names[machine],
            points=tuple(points),
            steps=change_points([point.ratio for point in points]),
        )
        for (key, machine), points in points_of.items()
    ]


def _machine_names(hosts: Mapping[Facts, str]) -> dict[Facts, str]:
    """Name machines by their hosts; a host that changed is another one, numbered by its age."""
    names: dict[Facts, str] = {}
    seen: Counter[str] = Counter()
    for facts, host in hosts.items():
        seen[host] += 1
        names[facts] = host if seen[host] == 1 else f"{host} ({seen[host]})"
    return names


def series_names(series: Sequence[Series]) -> list[str]:
    """Name each series: ``net/fp32/cpu/b1 on lab-1``, with the runtime where there are several."""
    several = len({entry.key[1] for entry in series}) > 1
    return [
        f"{entry.key[0]}{f'+{entry.key[1]}' if several else ''}{entry.role_note} on {entry.machine}"
        for entry in series
    ]


def change_points(ratios: Sequence[float]) -> tuple[Step, ...]:
    """Find where the level of a series changed.

    Exact search (PELT: R. Killick, P. Fearnhead and I. Eckley, JASA 107 (2012) 1590–1598) for the
    steps of a median of logarithms, penalised by multiples of the noise between neighbours. A
    median and not a mean, so that one run that is off is no step.

    Args:
        ratios: Positive numbers in order of time.

    Raises:
        UsageError: if the library that does it is not installed.
    """
    if len(ratios) < 2 * FEWEST + 1:
        return ()
    try:
        import ruptures  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as error:
        raise UsageError(
            "finding change points needs the package ruptures",
            hint="pip install 'pytest-ortbench[history]'",
        ) from error
    import numpy as np

    logs = np.log(np.asarray(ratios, dtype=float)).reshape(-1, 1)
    # Neighbours differ by noise alone except at the few steps, which a median does not see.
    noise = MAD_SCALE * float(np.median(np.abs(np.diff(logs[:, 0])))) / math.sqrt(2)
    # Equal numbers have no noise; a thousandth keeps their rounding from being a step.
    penalty = _PENALTY * math.log(len(ratios)) * max(noise, 1e-3)
    search = ruptures.Pelt(model="l1", min_size=FEWEST, jump=1).fit(logs)
    bounds = [0, *search.predict(pen=penalty)]
    steps = []
    for before, at, after in zip(bounds, bounds[1:], bounds[2:], strict=False):
        change = median(ratios[at:after]) / median(ratios[before:at]) - 1
        if abs(change) >= SMALLEST_STEP:
            steps.append(Step(index=int(at), change=change))
    return tuple(steps)
