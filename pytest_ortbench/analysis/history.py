"""Latency over many stored runs: where it changed, told from ratios to reference work.

A ratio to reference work of the same run is the same on a fast day and on a slow one, so that a
change of it is one of the code. The yardstick takes turns with the model; where no run of a case
has one, it is the canary, which is measured once a run. A change point opens a question; it never
fails anything.

A run whose flags leave no verdict on its ratio is shown, and decides no step. A machine that went
into another state between two runs (:func:`~pytest_ortbench.analysis.relative_latency.mismatch`)
makes steps of its own: so a step is as large as runs of both sides show that compare, and is none
if they show less than :data:`ACROSS_STATES`. What it is worth: ``docs/concepts/yardstick.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import median

from pytest_ortbench.analysis.order import MAD_SCALE
from pytest_ortbench.analysis.relative_latency import (
    NoRelativeLatency,
    RelativeLatency,
    blurs_ratios,
    memory_weight,
    mismatch,
    relative_latency,
    weighed,
)
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Key
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run

#: A change is told only with so many runs on either side, and looked for in so many at least.
FEWEST = 2
FEWEST_IN_ALL = 2 * FEWEST + 1

#: Penalty of a change point in standard deviations, times the logarithm of the number of runs. Of a
#: hundred series of 30 runs with nothing but noise, at most two may show a step.
_PENALTY = 3.0

#: A step that is smaller than this is shown to nobody, however regular the series.
SMALLEST_STEP = 0.02

#: The same where some runs before the step do not compare with some after it: the machine was in
#: another state then, which moves ratios by some percent.
ACROSS_STATES = 0.05

#: So many runs on either side of a step are held against each other, the nearest ones.
_MOST_PAIRED = 50

#: Flags that leave one run without a verdict, and say nothing against one among others in a series.
_OF_ONE_RUN = ("BIMODAL", "MEMORY-BUSY")

#: What makes a machine: its stable facts and what the latency is divided by there.
Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One case in one run.

    Attributes:
        run_id: The run.
        started_at: UTC, ISO 8601.
        commit: Revision, empty if unknown.
        ratio: Latency ÷ that of the series' scale.
        low: Lower end of its 95 % interval; ``None`` against a canary, which has none.
        high: Upper end, likewise.
        blurring: Names of the flags for which it decides no step.
    """

    run_id: str
    started_at: str
    commit: str
    ratio: float
    low: float | None = None
    high: float | None = None
    blurring: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change point.

    Attributes:
        index: The first point after it.
        change: After ÷ before − 1, up to the neighbouring change points: of the medians, or where
            some runs do not compare, the median of all pairs that do.
        unlike: Field of :class:`~pytest_ortbench.analysis.relative_latency.Mismatch` in which all
            runs before it differ from all after it, so that nobody knows whether the code changed
            or the machine; empty if some compare.
    """

    index: int
    change: float
    unlike: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One case over time, on one machine.

    Attributes:
        key: (case id, runtime label).
        note: What stands behind its name: what it is if it is no execution provider, and what
            computed in the place of a device.
        machine: Host of its runs, numbered where one host has had different facts or canaries.
        points: The oldest first.
        steps: Where it changed.
        against: What the latency is divided by: ``yardstick`` or ``canary``.
        left_out: Runs of the case on this machine whose ratio to the yardstick is not known, since
            they lacked CPUs or had none.
    """

    key: Key
    note: str = ""
    machine: str
    points: tuple[Point, ...]
    steps: tuple[Step, ...] = ()
    against: str = "canary"
    left_out: int = 0

    @property
    def blurred(self) -> int:
        """How many runs are shown and decide no step, for their flags."""
        return sum(bool(point.blurring) for point in self.points)

    @property
    def is_searched(self) -> bool:
        """Whether enough runs are left in which a change could be found."""
        return len(self.points) - self.blurred >= FEWEST_IN_ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class _CaseInRun:
    """One case in one run by both scales, each with what makes it another scale than others."""

    host: str
    note: str
    yardstick: RelativeLatency | None
    by_yardstick: Point | None
    canary: str
    by_canary: Point | None

    def on(self, with_yardstick: bool) -> tuple[Facts, Point] | None:
        """The scale and the point on it; ``None`` where the run has none."""
        if not with_yardstick:
            return None if self.by_canary is None else ((("canary", self.canary),), self.by_canary)
        if self.yardstick is None or self.by_yardstick is None:
            return None
        scale = self.yardstick
        facts = (("yardstick", scale.yardstick.identity), ("estimator", scale.estimator))
        return facts, self.by_yardstick


def histories(runs: Iterable[Run]) -> list[Series]:
    """Return one series a case, machine and scale, with its change points.

    Runs without any scale are left out: what moved in them can't be told.

    Raises:
        UsageError: if the library that finds change points is not installed.
    """
    readings: dict[tuple[Key, Facts, str], list[_CaseInRun]] = {}
    for run in sorted(runs, key=lambda run: run.started_at):
        stable = tuple(sorted(run.machine.stable.items()))
        for result in run.cases:
            reading = _reading(run, result)
            if reading is not None:
                place = (result.case.key, stable, reading.note)
                readings.setdefault(place, []).append(reading)
    made: list[tuple[Facts, Series]] = []
    hosts: dict[Facts, tuple[str, str]] = {}
    for (key, stable, note), of_case in readings.items():
        with_yardstick = any(reading.by_yardstick is not None for reading in of_case)
        points_of: dict[Facts, list[Point]] = {}
        scales_of: dict[Facts, list[RelativeLatency]] = {}
        for reading in of_case:
            scaled = reading.on(with_yardstick)
            if scaled is not None:
                facts = (*stable, *scaled[0])
                points_of.setdefault(facts, []).append(scaled[1])
                if with_yardstick and reading.yardstick is not None:
                    scales_of.setdefault(facts, []).append(reading.yardstick)
                seen = (scaled[1].started_at, reading.host)
                hosts[facts] = min(hosts.get(facts, seen), seen)
        left_out = len(of_case) - sum(map(len, points_of.values()))
        for facts, usual in points_of.items():
            points = on_one_scale(usual, scales_of[facts]) if facts in scales_of else usual
            series = Series(
                key=key,
                note=note,
                machine="",
                points=tuple(points),
                steps=steps_of(points, scales_of.get(facts)),
                against="yardstick" if with_yardstick else "canary",
                left_out=left_out if with_yardstick else 0,
            )
            made.append((facts, series))
    ages = sorted(hosts.items(), key=lambda entry: entry[1])
    names = _machine_names({facts: host for facts, (_, host) in ages})
    return [replace(series, machine=names[facts]) for facts, series in made]


def on_one_scale(points: Sequence[Point], scales: Sequence[RelativeLatency]) -> list[Point]:
    """Return points whose ratios are to as many passes over memory as make them differ least.

    Args:
        points: Of one case, the oldest first.
        scales: Their ratios.
    """
    weight = memory_weight(scales)
    return [
        replace(point, ratio=ratio.value, low=ratio.low, high=ratio.high)
        for point, scale in zip(points, scales, strict=True)
        for ratio in [weighed(scale, weight)]
    ]


def blurs_series(flags: Iterable[str]) -> tuple[str, ...]:
    """Return those of some flags' names for which a run decides no step of a series."""
    return tuple(name for name in blurs_ratios(flags) if name not in _OF_ONE_RUN)


def steps_of(points: Sequence[Point], scales: Sequence[RelativeLatency] | None) -> tuple[Step, ...]:
    """Find the steps of a series in its runs that decide.

    Args:
        points: The series, the oldest first, on one scale.
        scales: What tells for each of them whether it compares with another one; ``None`` if
            nothing does.
    """
    deciding = [index for index, point in enumerate(points) if not point.blurring]
    ratios = [points[index].ratio for index in deciding]
    steps = change_points(ratios)
    if scales is not None:
        steps = of_the_code(steps, ratios, [scales[index] for index in deciding])
    return tuple(replace(step, index=deciding[step.index]) for step in steps)


def of_the_code(
    steps: Sequence[Step], ratios: Sequence[float], scales: Sequence[RelativeLatency]
) -> tuple[Step, ...]:
    """Return the steps that a change of the machine's state does not explain.

    Args:
        steps: Of the series.
        ratios: The series.
        scales: What tells for each of its runs whether it compares with another one.
    """
    bounds = [0, *(step.index for step in steps), len(ratios)]
    kept = []
    for step, first, end in zip(steps, bounds, bounds[2:], strict=False):
        before_it = range(max(first, step.index - _MOST_PAIRED), step.index)
        after_it = range(step.index, min(end, step.index + _MOST_PAIRED))
        pairs = list(product(before_it, after_it))
        mismatches = [mismatch(scales[before], scales[after]) for before, after in pairs]
        alike = [
            ratios[after] / ratios[before] - 1
            for (before, after), unlike in zip(pairs, mismatches, strict=True)
            if unlike is None
        ]
        if len(alike) == len(pairs):
            kept.append(step)
        elif not alike:
            fields = Counter(unlike.field for unlike in mismatches if unlike is not None)
            kept.append(replace(step, unlike=fields.most_common(1)[0][0]))
        elif abs(median(alike)) >= ACROSS_STATES:
            kept.append(replace(step, change=median(alike)))
    return tuple(kept)


def _reading(run: Run, result: CaseResult) -> _CaseInRun | None:
    """What a run says of a case; ``None`` where it measured none."""
    latency = summarise(result, percentiles=False).quantities.get("latency_p50")
    if latency is None:
        return None
    base = Point(
        run_id=run.run_id,
        started_at=run.started_at,
        commit=run.commit.revision if run.commit else "",
        ratio=1.0,
        blurring=blurs_series(flag.name for flag in result.flags),
    )
    relative = relative_latency(result)
    by_canary = None
    if run.canary is not None and run.canary.durations_ns:
        canary_s = median(run.canary.durations_ns) * 1e-9
        by_canary = replace(base, ratio=latency.value / canary_s)
    known = None if isinstance(relative, NoRelativeLatency) else relative
    return _CaseInRun(
        host=run.machine.host,
        note=result.case.provider.role_note
        + "".join(f" ({name})" for name in result.software_devices),
        yardstick=known,
        by_yardstick=None
        if known is None
        else replace(base, ratio=known.value, low=known.low, high=known.high),
        canary="" if run.canary is None else run.canary.model,
        by_canary=by_canary,
    )


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
        f"{entry.key[0]}{f'+{entry.key[1]}' if several else ''}{entry.note} on {entry.machine}"
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
    if len(ratios) < FEWEST_IN_ALL:
        return ()
    try:
        import ruptures  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as error:
        raise UsageError(
            "the package ruptures, which finds changes in a series of runs, is not installed",
            hint="Run: pip install 'pytest-ortbench[history]'",
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
