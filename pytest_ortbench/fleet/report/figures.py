"""Figures of a comparison of runs: sides against the baseline, and each workload on every side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.units import significant
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.fleet.numbers.matrix import Matrix, Row
from pytest_ortbench.fleet.numbers.words import metric_words
from pytest_ortbench.fleet.report.procurement import Procurement
from pytest_ortbench.fleet.report.view import NOISY, ComparisonView, overall_mark
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.titles import headings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_IN, PANEL_IN = 0.24, 0.75
SIDES, WORKLOADS = 30, 8
#: Ratios that a logarithmic axis may be labelled with.
_TICKS = tuple(base * 10.0**power for power in range(-4, 5) for base in (1, 1.25, 1.5, 2, 3, 5, 7))

DESCRIPTIONS = {
    "overall": "Geometric mean of the ratios of each side to the baseline, with intervals",
    "workloads": "The best variant of each side for each workload, with intervals",
    "course": "Ratio to the baseline over time, with the canary that shows changes of the machine",
}


def comparison_figures(view: ComparisonView) -> Iterator[tuple[str, Figure]]:
    """Draw every figure that a comparison has data for."""
    if view.axis == "time":
        made = course(view.main)
        if made is not None:
            yield "course", made
    else:
        made = draw_overall(view.main)
        if made is not None:
            yield "overall", made
    made = draw_workloads(view.sections[0].matrix)
    if made is not None:
        yield "workloads", made


def draw_overall(matrix: Matrix) -> Figure | None:
    """Draw the geometric mean of each side; ``None`` if no row is common to all."""
    known = [index for index, mean in enumerate(matrix.overall) if mean.ratio is not None]
    if len(known) < 2:
        return None
    higher = METRICS[matrix.metric].better == "higher"
    known.sort(key=lambda index: _mean(matrix, index) * (-1 if higher else 1))
    shown = known[:SIDES]
    made = style.figure(1.1 + ROW_IN * len(shown))
    axes = made.subplots()
    style.dress(axes)
    for position, index in enumerate(shown):
        mark = overall_mark(matrix, index)
        colour = style.COLOURS[2] if mark else style.COLOURS[0]
        if index == matrix.baseline:
            colour = style.INK
        _mark(axes, position, _ends(matrix, index), colour, filled=mark not in ("tie", NOISY))
        axes.text(
            1.01,
            position,
            f"×{significant(_mean(matrix, index))}",
            transform=axes.get_yaxis_transform(),
            va="center",
            color=style.INK,
            fontproperties=style.font(style.TICK_PT),
        )
    axes.axvline(1.0, color=style.FAINT, linewidth=1.0, zorder=1)
    _ratio_axis(axes, [end for index in shown for end in _ends(matrix, index)])
    _names(axes, [(matrix.sides[index].label, "") for index in shown])
    style.axis_label(
        axes,
        "x",
        f"{metric_words(matrix.metric)}, ratio to {style.drawable(_base(matrix), 30)}",
        "",
    )
    handles = [
        style.mark("best", style.COLOURS[2], "o"),
        style.mark("no clear best", style.COLOURS[2], "o", filled=False),
        style.mark("baseline", style.INK, "o"),
    ]
    style.heading(made, "Over all common cases", handles)
    better = "larger" if higher else "smaller"
    left_out = len(known) - len(shown)
    style.note(
        made,
        (
            f"{_over(matrix, 'Geometric mean over')}; bar: 95 % interval; {better} is better.",
            *(
                [f"Shown: the best {len(shown)}; {style.not_shown(left_out, 'other')}."]
                if left_out
                else []
            ),
        ),
    )
    return made


def _over(matrix: Matrix, begin: str) -> str:
    if matrix.common == 1:
        return f"{begin} the one case that every side has"
    return f"{begin} the {matrix.common} cases that every side has"


def _base(matrix: Matrix) -> str:
    return matrix.sides[matrix.baseline].label


def _mean(matrix: Matrix, index: int) -> float:
    ratio = matrix.overall[index].ratio
    return 1.0 if ratio is None else ratio.value


def _ends(matrix: Matrix, index: int) -> tuple[float, float, float]:
    ratio = matrix.overall[index].ratio
    if index == matrix.baseline or ratio is None:
        return 1.0, 1.0, 1.0
    low = ratio.value if ratio.low is None else ratio.low
    high = ratio.value if ratio.high is None else ratio.high
    return low, ratio.value, high


def _mark(
    axes: Axes, position: float, ends: tuple[float, float, float], colour: str, *, filled: bool
) -> None:
    axes.plot([ends[0], ends[2]], [position] * 2, color=colour, linewidth=2.4, zorder=2)
    axes.plot(
        [ends[1]],
        [position],
        marker="o",
        markersize=5.5,
        markeredgecolor=colour,
        markerfacecolor=colour if filled else "white",
        linestyle="none",
        zorder=3,
    )


def _ratio_axis(axes: Axes, values: Sequence[float], which: str = "x") -> None:
    low, high = min(*values, 1.0), max(*values, 1.0)
    margin = max(1.02, (high / low) ** 0.06)
    low, high = low / margin, high * margin
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    axis = axes.xaxis if which == "x" else axes.yaxis
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    if len(ticks) > 9:
        ticks = [tick for tick in ticks if f"{tick:e}"[0] in "125" and f"{tick:e}"[2] == "0"]
    if len(ticks) > 9:
        ticks = [tick for tick in ticks if f"{tick:e}".startswith("1.0")]
    if len(ticks) < 3:
        step = _step(high - low)
        first = round(low / step)
        ticks = [step * number for number in range(first, round(high / step) + 1)]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"×{value:.4g}"))


def _step(span: float) -> float:
    """A round step that gives four to nine ticks over a span."""
    for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
        if span / step <= 8:
            return step
    return 1.0


def _names(axes: Axes, labels: Sequence[tuple[str, str]]) -> None:
    """Name the rows: the side, and the variant that stands for it."""
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_yticks(
        range(len(labels)), [style.drawable(name) for name in headings(labels, limit=36)]
    )
    axes.tick_params(axis="y", length=0)


def draw_workloads(matrix: Matrix) -> Figure | None:
    """Draw a panel a workload with a row a side; ``None`` if no side has a number."""
    rows = [row for row in matrix.rows if sum(cell.comparable for cell in row.cells) > 1]
    if not rows:
        return None
    shown = rows[:WORKLOADS]
    sides = [_best_sides(row, matrix) for row in shown]
    heights = [PANEL_IN + ROW_IN * len(indices) for indices in sides]
    made = style.figure(0.9 + sum(heights))
    grid = made.subplots(len(shown), 1, squeeze=False, height_ratios=heights)
    names = headings([(row.model, row.label) for row in shown], between=" ")
    for axes, name, row, indices in zip(grid[:, 0], names, shown, sides, strict=True):
        _workload(axes, row, matrix, indices)
        style.title(axes, name)
    style.heading(
        made,
        f"{metric_words(matrix.metric)} by workload",
        (
            style.mark("best", style.COLOURS[2], "o"),
            style.mark("no clear difference from it", style.COLOURS[2], "o", filled=False),
            style.mark("other", style.COLOURS[0], "o"),
        ),
    )
    notes = ["Mark: the value; bar: its 95 % interval."]
    if len(rows) > len(shown):
        notes.append(f"{style.not_shown(len(rows) - len(shown), 'further row')}; see the table.")
    cut = sum(sum(cell.comparable for cell in row.cells) for row in shown) - sum(map(len, sides))
    if cut:
        notes.append(f"Shown: the best sides of each workload; {style.not_shown(cut, 'value')}.")
    style.note(made, notes)
    return made


def _best_sides(row: Row, matrix: Matrix) -> list[int]:
    sign = -1 if METRICS[matrix.metric].better == "higher" else 1
    known = [
        (sign * cell.quantity.value, index)
        for index, cell in enumerate(row.cells)
        if cell.comparable and cell.quantity is not None
    ]
    return [index for _, index in sorted(known)][:12]


def _workload(axes: Axes, row: Row, matrix: Matrix, indices: Sequence[int]) -> None:
    cells = [row.cells[index] for index in indices]
    ends = [
        (
            quantity.value if quantity.low is None else quantity.low,
            quantity.value,
            quantity.value if quantity.high is None else quantity.high,
        )
        for cell in cells
        if (quantity := cell.quantity) is not None
    ]
    scale = style.Scale.of_metric([value for _, value, _ in ends], matrix.metric)
    style.dress(axes)
    log = style.scale_axis(axes, "x", [scale.of(end) for span in ends for end in span])
    for position, (cell, span) in enumerate(zip(cells, ends, strict=True)):
        low, value, high = (scale.of(end) for end in span)
        if not log:
            axes.plot([0, value], [position] * 2, color=style.GRID, linewidth=1.2, zorder=1)
        colour = style.COLOURS[2] if cell.best or cell.tie else style.COLOURS[0]
        _mark(axes, position, (low, value, high), colour, filled=not cell.tie)
        axes.text(
            1.01,
            position,
            significant(value),
            transform=axes.get_yaxis_transform(),
            va="center",
            color=style.INK,
            fontproperties=style.font(style.TICK_PT),
        )
    labels = [
        (matrix.sides[index].label, cell.variant)
        for index, cell in zip(indices, cells, strict=True)
    ]
    _names(axes, labels)
    style.axis_label(axes, "x", metric_words(matrix.metric), scale.name)


def course(matrix: Matrix) -> Figure | None:
    """Draw the geometric mean over time beside the canary's; ``None`` without either."""
    known = [index for index, mean in enumerate(matrix.overall) if mean.ratio is not None]
    if len(known) < 2:
        return None
    made = style.figure(3.6)
    axes = made.subplots()
    style.dress(axes, grid="y")
    spans = [_ends(matrix, index) for index in known]
    axes.plot(known, [span[1] for span in spans], color=style.COLOURS[0], linewidth=1.1)
    for index, (low, value, high) in zip(known, spans, strict=True):
        axes.plot([index] * 2, [low, high], color=style.COLOURS[0], linewidth=2.4)
        axes.plot([index], [value], marker="o", markersize=5, color=style.COLOURS[0])
    canaries = _canaries(matrix)
    if canaries:
        positions, values = zip(*canaries, strict=True)
        axes.plot(
            positions, values, marker="s", markersize=4, linewidth=1.0, color=style.COLOURS[1]
        )
    ends = [end for span in spans for end in span] + [value for _, value in canaries]
    _ratio_axis(axes, ends, which="y")
    axes.axhline(1.0, color=style.FAINT, linewidth=0.8, zorder=1)
    step = max(1, len(matrix.sides) // 8)
    ticks = range(0, len(matrix.sides), step)
    axes.set_xlim(-0.4, len(matrix.sides) - 0.6)
    axes.set_xticks(list(ticks), [style.drawable(matrix.sides[index].label, 24) for index in ticks])
    axes.tick_params(axis="x", labelrotation=0 if len(ticks) < 5 else 25)
    style.axis_label(axes, "y", "ratio to the baseline", "")
    handles = [style.mark(f"{metric_words(matrix.metric)}, geometric mean", style.COLOURS[0], "o")]
    if canaries:
        handles.append(style.mark("canary: change of the machine", style.COLOURS[1], "s"))
    style.heading(made, "Over time", handles)
    style.note(made, (f"{_over(matrix, 'Over')}; bar: 95 % interval.",))
    return made


def _canaries(matrix: Matrix) -> list[tuple[int, float]]:
    base = matrix.sides[matrix.baseline].runs
    reference = base[0].canary_s if base else None
    if not reference:
        return []
    return [
        (index, canary / reference)
        for index, side in enumerate(matrix.sides)
        if side.runs and (canary := side.runs[0].canary_s)
    ]


def _all(view: ComparisonView, costs: Procurement | None) -> Iterator[tuple[str, str, Figure]]:
    """Names, descriptions and figures of a comparison, those of costs first."""
    from pytest_ortbench.fleet.report import procurement_figures as procurement

    if costs is not None:
        for name, made in procurement.procurement_figures(costs):
            yield name, procurement.DESCRIPTIONS[name], made
    for name, made in comparison_figures(view):
        yield name, DESCRIPTIONS[name], made


def write_comparison_figures(
    view: ComparisonView,
    folder: Path,
    costs: Procurement | None = None,
    *,
    formats: Sequence[str] = ("png", "svg"),
) -> list[Path]:
    """Write all figures into a folder, which is made if it is missing."""
    from pytest_ortbench.report.figures import render

    written: list[Path] = []
    for name, _, made in _all(view, costs):
        for ending in formats:
            path = folder / f"{name}.{ending}"
            replace_file(path, render(made, ending))
            written.append(path)
    return written


def pictures(view: ComparisonView, costs: Procurement | None = None) -> list[tuple[str, bytes]]:
    """Return descriptions and SVG data of all figures, whose background is the page's own."""
    from pytest_ortbench.report.figures import render

    return [
        (description, render(made, "svg", transparent=True))
        for _, description, made in _all(view, costs)
    ]
