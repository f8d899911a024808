"""Latency over many runs as ratios to reference work, with the points where it changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_ortbench.analysis.history import Series, series_names
from pytest_ortbench.core.ids import model_of
from pytest_ortbench.core.units import counted
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.titles import headings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL_IN = 1.6
PANELS = 12
#: Characters of a heading over a panel of the whole width.
TITLE = 84


def trend(series: Sequence[Series]) -> Figure | None:
    """Draw one panel a series, those that changed first; ``None`` without any."""
    if not series:
        return None
    named = zip(series, series_names(series), strict=True)
    on_dates = all(_dates(entry) is not None for entry in series)
    shown = sorted(named, key=lambda pair: not pair[0].steps)[:PANELS]
    made = style.figure(1.1 + PANEL_IN * len(shown))
    grid = made.subplots(len(shown), 1, squeeze=False, sharex=on_dates)
    models = [model_of(entry.key[0]) for entry, _ in shown]
    parts = [
        (model, name.removeprefix(f"{model}/"))
        for model, (_, name) in zip(models, shown, strict=True)
    ]
    titles = headings(parts, between="/", limit=TITLE)
    for axes, (entry, _), name in zip(grid[:, 0], shown, titles, strict=True):
        style.dress(axes, grid="y")
        style.title(axes, name, limit=TITLE)
        times: Sequence[float] = range(len(entry.points))
        if on_dates:
            times = _dates(entry) or times
        ratios = [point.ratio for point in entry.points]
        axes.plot(times, ratios, ".-", color=style.COLOURS[0], linewidth=0.8)
        ends = [(point.low, point.high) for point in entry.points]
        known = [
            (time, low, high)
            for time, (low, high) in zip(times, ends, strict=True)
            if low is not None and high is not None
        ]
        if known:
            axes.vlines(
                *zip(*known, strict=True), color=style.COLOURS[0], alpha=0.35, linewidth=2.5
            )
        blurred = [
            (time, point.ratio)
            for time, point in zip(times, entry.points, strict=True)
            if point.blurring
        ]
        if blurred:
            axes.plot(
                *zip(*blurred, strict=True), "o", color=style.COLOURS[0], mfc="white", markersize=4
            )
        for step in entry.steps:
            between = (times[step.index - 1] + times[step.index]) / 2
            line = ":" if step.unlike else "-"
            axes.axvline(between, color=style.COLOURS[1], linewidth=1.2, linestyle=line)
            axes.annotate(
                f"{100 * step.change:+.1f} %",
                (between, 1.0),
                xycoords=("data", "axes fraction"),
                fontproperties=style.font(7),
                va="top",
            )
        # From zero: a change of a percent should not look like a cliff.
        axes.set_ylim(0, 1.15 * max(ratios))
    if on_dates:
        style.date_axis(grid[-1, 0])
    else:
        style.axis_label(grid[-1, 0], "x", "runs, the oldest first", "")
    style.heading(made, _heading({entry.against for entry in series}))
    left_out = len(series) - len(shown)
    sentences = ["Vertical lines: the level changed there; the change is written beside them."]
    if any(point.low is not None for entry, _ in shown for point in entry.points):
        sentences.append("Pale bars: 95 % intervals.")
    if any(step.unlike for entry, _ in shown for step in entry.steps):
        sentences.append("Dotted: the machine changed there, too.")
    if any(entry.blurred for entry, _ in shown):
        sentences.append("Hollow points: a flag leaves no verdict on this run.")
    lacking = sum(entry.left_out for entry, _ in shown)
    if lacking:
        sentences.append(f"Without {counted(lacking, 'run')} that lacked CPUs or had no yardstick.")
    if left_out:
        sentences.append(
            f"Cases that changed are shown first; {style.not_shown(left_out, 'case')}."
        )
    style.note(made, sentences)
    return made


def _heading(against: set[str]) -> str:
    divisors = {"yardstick": "that of the yardstick", "canary": "median of the canary"}
    return "Latency ÷ " + " or ".join(words for name, words in divisors.items() if name in against)


def _dates(entry: Series) -> list[float] | None:
    """Return when the runs began, as days; ``None`` where that is not known, or is no order."""
    from matplotlib.dates import date2num

    try:
        began = [datetime.fromisoformat(point.started_at) for point in entry.points]
    except ValueError:
        return None
    days = [float(date2num(moment)) for moment in began]  # type: ignore[no-untyped-call]  # no types
    return days if all(early < late for early, late in pairwise(days)) else None
