"""What more threads, callers or sessions buy: throughput and its share of the ideal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.differing import differing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS, LINES, PANEL_IN = 5, 7, 2.5
#: Axes that a figure of scaling can be about, and what one of them is.
KNOBS = {"concurrency": "callers", "threads": "threads", "sessions": "sessions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Cases that differ in nothing but one knob.

    Attributes:
        knob: The knob.
        model: Name of the model.
        parts: What they have in common: precision, provider, batch size, and so on.
        points: Value of the knob and throughput, ascending.
    """

    knob: str
    model: str
    parts: tuple[str, ...]
    points: tuple[tuple[int, Quantity], ...]


def courses(shown: Sequence[Entry]) -> tuple[Course, ...]:
    """Group measured cases that differ in one knob alone; groups of one are left out."""
    rates: dict[tuple[str, str, tuple[str, ...]], dict[int, Quantity]] = {}
    for entry in shown:
        case = entry.result.case
        rate = entry.quantity("throughput")
        for knob in KNOBS:
            value = case.knobs.get(knob, "")
            if rate is None or not value.isdigit() or value == "0":
                continue
            rest = [f"{name}:{other}" for name, other in case.knobs.items() if name != knob]
            dims = [f"{name}:{size}" for name, size in case.dims.items()]
            parts = (
                case.variant.precision,
                case.provider.described,
                f"b{case.batch}",
                *dims,
                *rest,
                case.runtime.label,
                case.io,
            )
            key = (knob, case.model.name, parts)
            rates.setdefault(key, {})[int(value)] = rate
    return tuple(
        Course(knob=knob, model=model, parts=parts, points=tuple(sorted(points.items())))
        for (knob, model, parts), points in rates.items()
        if len(points) > 1
    )


def scaling(shown: Sequence[Entry]) -> Figure | None:
    """Draw two panels a model and knob; ``None`` if no case was measured at two of its values."""
    groups: dict[tuple[str, str], list[Course]] = {}
    for course in courses(shown):
        groups.setdefault((course.model, course.knob), []).append(course)
    if not groups:
        return None
    rows = list(groups.items())[:PANELS]
    made = style.figure(0.9 + PANEL_IN * len(rows))
    grid = made.subplots(len(rows), 2, squeeze=False)
    left_out = 0
    for ((model, knob), members), (left, right) in zip(rows, grid, strict=True):
        kept = sorted(members, key=lambda member: -max(q.value for _, q in member.points))[:LINES]
        left_out += len(members) - len(kept)
        _throughput(left, kept)
        _efficiency(right, kept)
        for axes in (left, right):
            _counts(axes, sorted({count for member in kept for count, _ in member.points}), knob)
        style.title(left, model)
        style.legend_beside(right, left.get_legend_handles_labels())
    style.heading(made, "Scaling")
    notes = [
        "Left: throughput with its interval; dashed: the first point times as many. Right: its "
        "share of that."
    ]
    if left_out:
        notes.append(f"Shown: the highest throughput; {style.not_shown(left_out, 'line')}.")
    if len(groups) > len(rows):
        notes.append(f"{style.not_shown(len(groups) - len(rows), 'further panel')}.")
    style.note(made, notes)
    return made


def _throughput(axes: Axes, lines: Sequence[Course]) -> None:
    style.dress(axes, grid="both")
    ends = [
        end
        for line in lines
        for _, rate in line.points
        for end in (rate.low, rate.value, rate.high)
        if end is not None
    ]
    style.scale_axis(axes, "y", ends)
    labels = differing([course.parts for course in lines])
    for index, (course, label) in enumerate(zip(lines, labels, strict=True)):
        colour = style.COLOURS[index]
        counts = [count for count, _ in course.points]
        rates = [rate.value for _, rate in course.points]
        axes.plot(
            counts,
            [rates[0] * count / counts[0] for count in counts],
            color=colour,
            linewidth=0.8,
            linestyle=(0, (4, 3)),
        )
        axes.plot(
            counts,
            rates,
            color=colour,
            marker=style.MARKERS[index],
            markersize=4,
            linewidth=1.2,
            label=style.drawable(label, 30),
        )
        for count, rate in course.points:
            if rate.low is not None and rate.high is not None:
                axes.plot([count, count], [rate.low, rate.high], color=colour, linewidth=2.2)
    style.axis_label(axes, "y", "throughput", "items/s")


def _efficiency(axes: Axes, lines: Sequence[Course]) -> None:
    style.dress(axes, grid="both")
    highest = 1.0
    for index, course in enumerate(lines):
        first, rate = course.points[0]
        shares = [
            quantity.value / (rate.value * count / first) for count, quantity in course.points
        ]
        highest = max(highest, *shares)
        axes.plot(
            [count for count, _ in course.points],
            shares,
            color=style.COLOURS[index],
            marker=style.MARKERS[index],
            markersize=4,
            linewidth=1.2,
        )
    axes.axhline(1.0, color=style.FAINT, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylim(0, highest * 1.08)
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1.0, decimals=0, symbol=None))
    style.axis_label(axes, "y", "share of the ideal", "%")


def _counts(axes: Axes, counts: Sequence[int], knob: str) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    style.axis_label(axes, "x", knob, KNOBS[knob] if KNOBS[knob] != knob else "")
