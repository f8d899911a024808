"""Samples in the order in which they were taken: warm-up, drift and throttling are seen here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Patch

from pytest_ortbench.analysis.samples import elapsed_ns
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.outcome import Measurement
from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.titles import titles

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Floats = npt.NDArray[np.float64]

PANELS = 6
PANEL_IN = 1.45
#: Samples beyond this multiple of the 95th percentile are drawn at the upper edge, so that rare
#: slow ones do not press the others flat.
HEADROOM = 1.35
#: Points a panel, over all its workers.
POINTS = 1500


def timeline(shown: Sequence[Entry]) -> Figure | None:
    """Draw the samples of some cases over time; ``None`` without samples.

    Cases with a flag that blurs come first, then the first of each model, then the others.
    """
    drawable = [entry for entry in shown if any(m.samples.durations_ns for m in _workers(entry))]
    if not drawable:
        return None
    panels = _interesting(drawable)[:PANELS]
    made = style.figure(1.1 + PANEL_IN * len(panels))
    grid = made.subplots(len(panels), 1, squeeze=False)
    names = titles(panels, flags=True)
    for axes, entry, name in zip(grid[:, 0], panels, names, strict=True):
        _panel(axes, entry)
        style.title(axes, name, limit=len(name))
    style.axis_label(grid[-1, 0], "x", "time in inferences, worker after worker", "s")
    style.heading(
        made,
        "Latency over time",
        (
            Patch(facecolor=style.SHADE, label="warm-up, not counted"),
            style.mark("one inference", style.COLOURS[0], "."),
            style.mark("beyond the upper edge", style.COLOURS[1], "^"),
        ),
    )
    left_out = len(drawable) - len(panels)
    style.note(
        made,
        (
            "Black: running median. Each shaded stretch starts a fresh worker process.",
            *(
                [
                    "Shown: cases with a flag first, then one of each model; "
                    f"{style.not_shown(left_out, 'case')}."
                ]
                if left_out
                else []
            ),
        ),
    )
    return made


def _workers(entry: Entry) -> tuple[Measurement, ...]:
    return entry.result.measurements


def _interesting(entries: Sequence[Entry]) -> list[Entry]:
    first_of: dict[str, Entry] = {}
    for entry in entries:
        first_of.setdefault(entry.result.case.model.name, entry)
    first = {id(entry) for entry in first_of.values()}

    def rank(entry: Entry) -> int:
        if any(name in FLAGS and FLAGS[name].severity == "blurs" for name in entry.flags):
            return 0
        return 1 if id(entry) in first else 2

    return sorted(entries, key=rank)


def _panel(axes: Axes, entry: Entry) -> None:
    steady = np.concatenate(
        [np.asarray(m.samples.durations_ns, dtype=np.float64) / 1e9 for m in _workers(entry)]
    )
    highest = float(np.quantile(steady, 0.95)) * HEADROOM
    scale = style.Scale([float(np.median(steady)), highest], "s")
    top = highest / scale.factor
    style.dress(axes, grid="y")
    start = 0.0
    for measurement in _workers(entry):
        begin = start + measurement.warm_up.total_ns / 1e9
        end = begin + elapsed_ns(entry.result.case, measurement.samples) / 1e9
        limit = POINTS // len(_workers(entry))
        _worker(axes, measurement, (start, begin, end), top, scale, limit)
        start = end
    axes.set_xlim(0, start)
    # Not from zero: a drift of a few per cent is what the figure is for.
    axes.set_ylim(0.75 * float(steady.min()) / scale.factor, top)
    style.axis_label(axes, "y", "latency", scale.name)


def _worker(
    axes: Axes,
    measurement: Measurement,
    times_s: tuple[float, float, float],
    top: float,
    scale: style.Scale,
    limit: int,
) -> None:
    """Draw one worker, whose warm-up starts, whose measuring begins and ends at these times."""
    start, begin, end = times_s
    warm = np.asarray(measurement.warm_up.durations_ns, dtype=np.float64) / 1e9
    steady = np.asarray(measurement.samples.durations_ns, dtype=np.float64) / 1e9
    axes.axvspan(start, begin, color=style.SHADE, linewidth=0, zorder=0)
    _points(axes, _spaced(warm, start, begin), warm / scale.factor, top, limit)
    times = _spaced(steady, begin, end)
    _points(axes, times, steady / scale.factor, top, limit)
    median = _running_median(steady)
    axes.plot(times, median / scale.factor, color="black", linewidth=1.0, zorder=3)


def _spaced(durations: Floats, begin: float, end: float) -> Floats:
    """When each kept sample ended: thinned samples stand for their neighbours too."""
    if not len(durations):
        return durations
    elapsed = np.cumsum(durations)
    spaced: Floats = begin + elapsed / elapsed[-1] * (end - begin)
    return spaced


def _points(axes: Axes, times: Floats, values: Floats, top: float, limit: int) -> None:
    step = max(1, len(values) // max(1, limit))
    beyond = values > top
    inside = ~beyond & (np.arange(len(values)) % step == 0)
    axes.plot(
        times[inside],
        values[inside],
        marker=".",
        markersize=2.5,
        markeredgewidth=0,
        alpha=0.6,
        color=style.COLOURS[0],
        linestyle="none",
        rasterized=True,
    )
    (edge,) = axes.plot(
        times[beyond],
        np.full(int(beyond.sum()), top),
        marker="^",
        markersize=3.5,
        markeredgewidth=0,
        color=style.COLOURS[1],
        linestyle="none",
        clip_on=False,
    )
    edge.set_in_layout(False)  # unclipped marks would make the layout give up


def _running_median(values: Floats) -> Floats:
    """Return the median over a window of a twentieth of the samples around each, at least 11."""
    if not len(values):
        return values
    window = min(len(values), max(11, len(values) // 20))
    views = np.lib.stride_tricks.sliding_window_view(values, window)
    inner = np.median(views, axis=1)
    before = (len(values) - len(inner)) // 2
    padded: Floats = np.pad(inner, (before, len(values) - len(inner) - before), mode="edge")
    return padded
