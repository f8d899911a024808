"""All samples of a case: the share of inferences below each latency, and the samples themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MultipleLocator, PercentFormatter

from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.choice import Panel, choose_cases

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Floats = npt.NDArray[np.float64]

#: As many cases a model as the palette tells apart without black.
ROWS_PER_PANEL = 6
PANELS = 5
CURVE_IN, STRIP_ROW_IN, PANEL_IN = 1.5, 0.22, 0.5
#: Points drawn of one case: more can't be told apart at the size of a row.
STRIP_POINTS = 400
CURVE_POINTS = 300
#: Percentiles of the pooled samples. The median that ranks is none: it is over workers.
PERCENTILES = {0.9: "latency_p90", 0.99: "latency_p99"}


def distribution(shown: Sequence[Entry]) -> Figure | None:
    """Draw ECDF and strip of the fastest cases of each model; ``None`` without samples."""
    choice = choose_cases(shown, _median, which="fastest", panels=PANELS, per_panel=ROWS_PER_PANEL)
    if not choice.panels:
        return None
    heights = [
        part
        for panel in choice.panels
        for part in (CURVE_IN, STRIP_ROW_IN * len(panel.shown) + PANEL_IN)
    ]
    made = style.figure(0.9 + sum(heights) + 0.13 * len(choice.notes))
    grid = made.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
    for index, panel in enumerate(choice.panels):
        _panel(grid[2 * index, 0], grid[2 * index + 1, 0], panel)
    style.heading(made, "Distribution of latency")
    style.note(
        made,
        (
            "Curve: share of inferences that took at most this long, all workers pooled; rings on "
            "it: p90 and p99, where there are",
            "enough samples for them. Tick with a bar: p50, the median of the workers' medians, "
            "and its 95 % interval; it lies beside",
            "the curve where workers differ. Below: the samples, with the colour of their curve.",
            *choice.notes,
        ),
    )
    return made


def _median(entry: Entry) -> float | None:
    quantity = entry.quantity("latency_p50")
    kept = any(measurement.samples.durations_ns for measurement in entry.result.measurements)
    return quantity.value if quantity is not None and kept else None


def pooled(entry: Entry) -> tuple[Floats, Floats]:
    """Return all kept durations of a case in seconds, ascending, and the share up to each.

    A worker whose durations were thinned weighs as much as all that it measured.
    """
    values, weights = [], []
    for measurement in entry.result.measurements:
        kept = measurement.samples.durations_ns
        if kept:
            values.append(np.asarray(kept, dtype=np.float64) / 1e9)
            weights.append(np.full(len(kept), measurement.samples.count / len(kept)))
    if not values:
        return np.empty(0), np.empty(0)
    durations, weight = np.concatenate(values), np.concatenate(weights)
    order = np.argsort(durations)
    share = np.cumsum(weight[order])
    return durations[order], share / share[-1]


def _panel(curve: Axes, strip: Axes, panel: Panel) -> None:
    samples = [pooled(entry) for entry in panel.shown]
    everything = np.concatenate([durations for durations, _ in samples])
    scale = style.Scale(np.quantile(everything, [0.5, 0.9]).tolist(), "s")
    ends = [scale.of(float(everything.min())), scale.of(float(everything.max()))]
    strip.sharex(curve)
    for axes in (curve, strip):
        style.dress(axes, grid="both" if axes is curve else "x")
    style.scale_axis(curve, "x", ends, zero=False)
    for position, (entry, (durations, share)) in enumerate(zip(panel.shown, samples, strict=True)):
        colour = style.COLOURS[position]
        _curve(curve, entry, durations, share, colour, scale)
        _strip(strip, position, durations, colour, scale)
    curve.set_ylim(0, 1.03)
    curve.yaxis.set_major_locator(MultipleLocator(0.25))
    curve.yaxis.set_major_formatter(PercentFormatter(xmax=1.0, decimals=0, symbol=None))
    curve.tick_params(axis="x", labelbottom=False)
    style.title(curve, panel.group.model.name)
    style.axis_label(curve, "y", "share", "%")
    strip.set_ylim(len(panel.shown) - 0.4, -0.6)
    strip.set_yticks(range(len(panel.shown)), style.rows([entry.label for entry in panel.shown]))
    strip.tick_params(axis="y", length=0)
    style.axis_label(strip, "x", "latency of one inference", scale.name)


def _curve(
    axes: Axes, entry: Entry, durations: Floats, share: Floats, colour: str, scale: style.Scale
) -> None:
    steps = np.unique(np.linspace(0, len(durations) - 1, CURVE_POINTS).astype(int))
    # The tail is what the reader looks for: its last samples are all kept.
    steps = np.union1d(steps, np.arange(max(0, len(durations) - 20), len(durations)))
    axes.step(
        durations[steps] / scale.factor, share[steps], where="post", color=colour, linewidth=1.3
    )
    for level, metric in PERCENTILES.items():
        quantity = entry.quantity(metric)
        if quantity is not None:
            axes.plot(
                [scale.of(quantity.value)],
                [level],
                marker="o",
                markersize=4.5,
                markeredgecolor=colour,
                markerfacecolor="white",
                linestyle="none",
                zorder=3,
            )
    _median_of_workers(axes, entry, colour, scale)


def _median_of_workers(axes: Axes, entry: Entry, colour: str, scale: style.Scale) -> None:
    quantity = entry.quantity("latency_p50")
    if quantity is None:
        return
    value = scale.of(quantity.value)
    if quantity.low is not None and quantity.high is not None:
        ends = [scale.of(quantity.low), scale.of(quantity.high)]
        axes.plot(ends, [0.5, 0.5], color=colour, linewidth=2.4, alpha=0.5, zorder=3)
    axes.plot(
        [value], [0.5], marker="|", markersize=11, markeredgewidth=2.0, color=colour, zorder=4
    )


def _strip(axes: Axes, position: int, durations: Floats, colour: str, scale: style.Scale) -> None:
    if len(durations) > STRIP_POINTS:
        durations = durations[np.linspace(0, len(durations) - 1, STRIP_POINTS).astype(int)]
    # Spread by a fixed pattern (multiples of the golden ratio), so that a redrawn figure is equal.
    spread = (np.arange(len(durations)) * 0.6180339887 % 1.0 - 0.5) * 0.6
    axes.plot(
        durations / scale.factor,
        position + spread,
        marker=".",
        markersize=2.5,
        markeredgewidth=0,
        alpha=0.6,
        color=colour,
        linestyle="none",
        rasterized=True,
    )
