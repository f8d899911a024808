"""Blocks of a model and of its yardstick in turns: what slows both is the machine's."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from pytest_ortbench.analysis.relative_latency import NoRelativeLatency, relative_latency
from pytest_ortbench.analysis.sentences import digits_for
from pytest_ortbench.core.outcome import YardstickTurns
from pytest_ortbench.core.units import significant
from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.titles import titles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 6
PANEL_IN = 1.45
#: Blocks beyond this multiple of the median are drawn at the upper edge.
TOP = 2.0
BOTTOM = 0.6


def turns(shown: Sequence[Entry]) -> Figure | None:
    """Draw a panel a case that took turns with a yardstick; ``None`` without any."""
    drawable = [entry for entry in shown if _of(entry)]
    if not drawable:
        return None
    panels = drawable[:PANELS]
    made = style.figure(1.1 + PANEL_IN * len(panels))
    grid = made.subplots(len(panels), 1, squeeze=False)
    for axes, entry, name in zip(grid[:, 0], panels, titles(panels, flags=True), strict=True):
        _panel(axes, _of(entry))
        style.title(axes, name, limit=len(name))
        axes.annotate(
            _ratio(entry),
            (0.995, 0.94),
            xycoords="axes fraction",
            fontproperties=style.font(7),
            ha="right",
            va="top",
        )
    style.axis_label(grid[-1, 0], "x", "rounds, worker after worker", "")
    style.heading(
        made,
        "Blocks of the model and of its yardstick",
        (
            style.mark("model ÷ its median", style.COLOURS[0], "."),
            style.mark("yardstick ÷ its median", style.COLOURS[1], "."),
        ),
    )
    sentences = [
        "What both go through is the machine. Every other worker process is shaded.",
        f"Blocks that took more than {TOP:g} medians are drawn at the upper edge.",
    ]
    if len(drawable) > len(panels):
        sentences.append(f"{style.not_shown(len(drawable) - len(panels), 'case')}.")
    style.note(made, sentences)
    return made


def _of(entry: Entry) -> list[YardstickTurns]:
    """The turns of each worker that has some."""
    return [
        measurement.yardstick
        for measurement in entry.result.measurements
        if measurement.yardstick is not None and measurement.yardstick.model_mean_ns
    ]


def _ratio(entry: Entry) -> str:
    relative = relative_latency(entry.result)
    if isinstance(relative, NoRelativeLatency):
        return f"no ratio: {relative.reason}"
    digits = digits_for(relative.value, relative.low, relative.high)
    value, low, high = (
        significant(number, digits) for number in (relative.value, relative.low, relative.high)
    )
    return f"{value} [{low}, {high}] units of the yardstick ({relative.yardstick.name})"


def _panel(axes: Axes, workers: Sequence[YardstickTurns]) -> None:
    style.dress(axes, grid="y")
    sides = (
        [worker.model_mean_ns for worker in workers],
        [worker.yardstick_mean_ns for worker in workers],
    )
    for blocks, colour in zip(sides, style.COLOURS, strict=False):
        middle = median([block for of_worker in blocks for block in of_worker])
        ratios = [min(TOP, block / middle) for of_worker in blocks for block in of_worker]
        axes.plot(
            range(len(ratios)),
            ratios,
            marker=".",
            markersize=2.5,
            markeredgewidth=0,
            linewidth=0.5,
            alpha=0.8,
            color=colour,
        )
    start = 0
    for index, worker in enumerate(workers):
        end = start + len(worker.model_mean_ns)
        if index % 2:
            axes.axvspan(start - 0.5, end - 0.5, color=style.SHADE, linewidth=0, zorder=0)
        start = end
    axes.set_xlim(-0.5, start - 0.5)
    axes.set_ylim(BOTTOM, TOP)
