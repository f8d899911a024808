"""One value a case with its interval, a row each: latency, throughput and memory by case."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_ortbench.core.units import significant
from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.choice import Panel, choose_cases
from pytest_ortbench.report.figures.identity import Identity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_IN = 0.2
PANEL_IN = 0.72


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """What one such figure shows.

    Attributes:
        heading: Heading of the figure.
        metric: The value of a row, by its name in the metric registry.
        axis: What the axis says, without its unit.
        value: Heading of the column of values.
        which: What the chosen cases are when not all fit: ``fastest``.
        descending: Whether a large value is a good one.
        ticks: Further metrics of the same unit, each with the mark that it is drawn as.
        reading: How to read the marks.
    """

    heading: str
    metric: str
    axis: str
    value: str
    which: str
    descending: bool = False
    ticks: tuple[tuple[str, str], ...] = ()
    reading: str = ""


LATENCY = Theme(
    heading="Latency by case",
    metric="latency_p50",
    axis="latency of one inference",
    value="p50",
    which="fastest",
    ticks=(("latency_p90", "|"), ("latency_p99", "|")),
    reading="Mark: p50 (median of the workers' medians); bar: its 95 % interval; ticks: p90 and "
    "p99 of all samples, where there are enough of them.",
)
THROUGHPUT = Theme(
    heading="Throughput by case",
    metric="throughput",
    axis="throughput",
    value="items/s",
    which="highest",
    descending=True,
    reading="Mark: batch × inferences ÷ timed seconds, of all callers of the case together; bar: "
    "its interval.",
)
MEMORY = Theme(
    heading="Memory by case",
    metric="peak_rss",
    axis="rise of resident memory",
    value="peak",
    which="smallest",
    ticks=(("session_rss", "|"), ("model_size", "x")),
    reading="Mark: peak rise over the process with ONNX Runtime loaded; tick: peak of session "
    "creation; cross: size of the model's files.",
)


#: A rise over different libraries says nothing of who takes more.
MEMORY_BESIDE_ENGINES = replace(
    MEMORY,
    metric="process_peak_rss",
    axis="resident memory of the whole process",
    ticks=(("peak_rss", "|"), ("model_size", "x")),
    reading="Mark: peak of the whole process; tick: how far it rose over the process with "
    "ONNX Runtime, or what runs in its place, loaded; cross: size of the model's files.",
)


def draw_by_case(shown: Sequence[Entry], theme: Theme) -> Figure | None:
    """Draw a panel a model with a row a case; ``None`` if no case has the value.

    Memory is that of whole processes where not all rows are ONNX Runtime's.
    """
    if theme is MEMORY and any(entry.result.case.provider.role_note for entry in shown):
        theme = MEMORY_BESIDE_ENGINES
    choice = choose_cases(shown, _key(theme), which=theme.which)
    if not choice.panels:
        return None
    identity = Identity(shown)
    drawn = [entry for panel in choice.panels for entry in panel.shown]
    heights = [PANEL_IN + ROW_IN * len(panel.shown) for panel in choice.panels]
    made = style.figure(1.0 + sum(heights) + 0.13 * len(choice.notes))
    grid = made.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
    for axes, panel in zip(grid[:, 0], choice.panels, strict=True):
        _panel(axes, panel, theme, identity)
    style.heading(made, theme.heading, identity.handles(drawn))
    style.note(made, (theme.reading, *choice.notes))
    return made


def _key(theme: Theme) -> Callable[[Entry], float | None]:
    def key(entry: Entry) -> float | None:
        quantity = entry.quantity(theme.metric)
        if quantity is None:
            return None
        return -quantity.value if theme.descending else quantity.value

    return key


def _panel(axes: Axes, panel: Panel, theme: Theme, identity: Identity) -> None:
    values = [value for entry in panel.shown for value in _drawn_values(entry, theme)]
    scale = style.Scale.of_metric(values, theme.metric)
    style.dress(axes)
    main = [scale.of(value) for entry in panel.shown for value in _drawn_values(entry, theme)[:1]]
    log = style.scale_axis(axes, "x", [scale.of(value) for value in values], deciding=main)
    batches = [entry.result.case.batch for entry in panel.shown]
    for position, (above, below) in enumerate(itertools.pairwise(batches)):
        if above != below:
            axes.axhline(position + 0.5, color=style.GRID, linewidth=0.6)
    for position, entry in enumerate(panel.shown):
        _row(axes, position, entry, theme, identity, scale, stem=not log)
    axes.set_ylim(len(panel.shown) - 0.4, -0.6)
    axes.set_yticks(range(len(panel.shown)), style.rows([entry.label for entry in panel.shown]))
    axes.tick_params(axis="y", length=0)
    style.title(axes, panel.group.model.name)
    axes.text(
        1.01,
        1.0,
        theme.value,
        transform=axes.transAxes,
        va="bottom",
        color=style.FAINT,
        fontproperties=style.font(style.NOTE_PT),
    )
    style.axis_label(axes, "x", theme.axis, scale.name)


def _drawn_values(entry: Entry, theme: Theme) -> list[float]:
    quantity = entry.quantity(theme.metric)
    assert quantity is not None
    further = (entry.quantity(metric) for metric, _ in theme.ticks)
    ticks = [quantity.value for quantity in further if quantity is not None]
    ends = [end for end in (quantity.low, quantity.high) if end is not None]
    return [quantity.value, *ends, *ticks]


def _row(
    axes: Axes,
    position: int,
    entry: Entry,
    theme: Theme,
    identity: Identity,
    scale: style.Scale,
    *,
    stem: bool,
) -> None:
    quantity = entry.quantity(theme.metric)
    assert quantity is not None
    colour = identity.colour(entry)
    value = scale.of(quantity.value)
    if stem:
        # From zero, so that lengths can be compared; a logarithmic axis has no zero.
        axes.plot([0, value], [position, position], color=style.GRID, linewidth=1.2, zorder=1)
    if quantity.low is not None and quantity.high is not None:
        axes.plot(
            [scale.of(quantity.low), scale.of(quantity.high)],
            [position, position],
            color=colour,
            linewidth=2.4,
            solid_capstyle="butt",
            zorder=2,
        )
    for metric, mark in theme.ticks:
        tick = entry.quantity(metric)
        if tick is not None:
            axes.plot(
                [scale.of(tick.value)],
                [position],
                marker=mark,
                markersize=7 if mark == "|" else 4.5,
                markeredgewidth=1.1,
                color=colour,
                zorder=2,
            )
    axes.plot(
        [value],
        [position],
        marker=identity.marker(entry),
        markersize=5.5,
        markeredgecolor=colour,
        markerfacecolor="white" if entry.barred else colour,
        linestyle="none",
        zorder=3,
    )
    axes.text(
        1.01,
        position,
        significant(value) + ("" if quantity.unit == "1/s" else f" {scale.name}"),
        transform=axes.get_yaxis_transform(),
        va="center",
        ha="left",
        color=style.INK,
        fontproperties=style.font(style.TICK_PT),
    )
