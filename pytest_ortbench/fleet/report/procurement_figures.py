"""Figures of what machines cost: cost against latency, and machine by machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from matplotlib.markers import CARETRIGHT, CARETUP
from matplotlib.ticker import FuncFormatter

from pytest_ortbench.fleet.procurement.economics import Economics
from pytest_ortbench.fleet.procurement.figure import Figure
from pytest_ortbench.fleet.procurement.ranking import Offer, Tender, figure_of, latency_span
from pytest_ortbench.fleet.procurement.sentences import money, shown_mark
from pytest_ortbench.fleet.report.procurement import Procurement
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.titles import headings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

PANELS, PANEL_IN, ROW_IN, MACHINES = 6, 3.0, 0.24, 20
#: Of costs that have no end at the slow end of the intervals.
ARROW = "arrow: no upper bound"

#: Marks of offers that may be the best.
_MAY_BE_BEST = ("best", "tie", "probably", "possibly")

DESCRIPTIONS = {
    "cost-latency": "Cost against latency of every variant on every machine, and those that no "
    "other one beats in both",
    "cost": "Cost of each machine for each workload, with its bounds",
}


def procurement_figures(shown: Procurement) -> Iterator[tuple[str, Drawing]]:
    """Draw every figure that there is data for."""
    made = cost(shown)
    if made is not None:
        yield "cost", made
    made = cost_latency(shown)
    if made is not None:
        yield "cost-latency", made


def _amount(value: float, _: object = None) -> str:
    """An amount of money on an axis, never with an exponent: ``2 M``."""
    for factor, name in ((1e6, " M"), (1e3, " k")):
        if value >= 10 * factor or (factor == 1e6 and value >= factor):
            return f"{value / factor:g}{name}"
    return f"{value:g}"


def _priced(shown: Procurement) -> list[Tender]:
    return [
        tender
        for tender in shown.tenders
        if tender.deciding != "rate" and any(not offer.reason for offer in tender.offers)
    ]


def _titles(shown: Sequence[Tender], limit: int = 60) -> list[str]:
    named = [(tender.model, tender.label) for tender in shown]
    return headings(named, between=" ", limit=limit)


def _axis(shown: Procurement, deciding: str) -> str:
    if deciding == "cost":
        return f"cost over {shown.terms.years:g} years"
    return "cost per million items"


def cost(shown: Procurement) -> Drawing | None:
    """Draw a panel a workload with a row a machine, the cheapest first."""
    priced = _priced(shown)
    if not priced:
        return None
    panels = [
        (tender, [offer for offer in tender.offers if not offer.reason][:MACHINES])
        for tender in priced[:PANELS]
    ]
    unbounded = any(
        _is_unbounded(figure_of(offer.economics, tender.deciding))
        for tender, offers in panels
        for offer in offers
    )
    heights = [0.75 + ROW_IN * len(offers) for _, offers in panels]
    made = style.figure(0.9 + sum(heights))
    grid = made.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    titles = _titles([tender for tender, _ in panels])
    for axes, name, (tender, offers) in zip(grid[:, 0], titles, panels, strict=True):
        draw_costs(axes, tender, offers, shown)
        style.title(axes, name)
    style.heading(
        made,
        "What it costs",
        (
            style.mark("cheapest, or probably so", style.COLOURS[2], "o"),
            style.mark("may be the cheapest", style.COLOURS[2], "o", filled=False),
            style.mark("other", style.COLOURS[0], "o"),
            *(
                [style.mark("only bounds are known", style.COLOURS[0], "|")]
                if any(
                    (figure := figure_of(offer.economics, tender.deciding)) and figure.is_open
                    for tender, offers in panels
                    for offer in offers
                )
                else []
            ),
        ),
    )
    rest = len(priced) - len(panels)
    style.note(
        made,
        (
            "Bar: cost with all measured numbers at the ends of their 95 % intervals at once"
            + (f"; {ARROW}." if unbounded else "."),
            *([f"{style.not_shown(rest, 'further workload')}."] if rest else []),
        ),
    )
    return made


def draw_costs(axes: Axes, tender: Tender, offers: Sequence[Offer], shown: Procurement) -> None:
    """Draw the cost of some offers for a workload, a row each, with its bounds.

    Args:
        axes: An empty panel.
        tender: The workload.
        offers: Those of it that have a figure.
        shown: What they are of.
    """
    spans = [
        figure
        for offer in offers
        if (figure := figure_of(offer.economics, tender.deciding)) is not None
    ]
    style.dress(axes)
    ends = [end for span in spans for end in (span.low, span.high) if math.isfinite(end)]
    ends += [span.value for span in spans if math.isfinite(span.value)]
    log = style.scale_axis(axes, "x", _with_room(ends, spans) or [1.0])
    axes.xaxis.set_major_formatter(FuncFormatter(_amount))
    for position, (offer, drawn_span) in enumerate(zip(offers, spans, strict=True)):
        mark = shown_mark(offer, tender)
        colour = style.COLOURS[2 if mark in _MAY_BE_BEST else 0]
        if not log:
            axes.plot(
                [0, drawn_span.value], [position] * 2, color=style.GRID, linewidth=1.2, zorder=1
            )
        right = axes.get_xlim()[1] if math.isinf(drawn_span.high) else drawn_span.high
        axes.plot([drawn_span.low, right], [position] * 2, color=colour, linewidth=2.4, zorder=2)
        if math.isinf(drawn_span.high):
            _arrow(axes, right, position, CARETRIGHT, colour)
        # Of bounds the ends are all that is known: no point stands between them.
        axes.plot(
            [drawn_span.low, drawn_span.high] if drawn_span.is_open else [drawn_span.value],
            [position] * (2 if drawn_span.is_open else 1),
            marker="|" if drawn_span.is_open else "o",
            markersize=5.5,
            markeredgecolor=colour,
            markerfacecolor="white" if mark in ("tie", "possibly") else colour,
            linestyle="none",
            zorder=3,
        )
        axes.text(
            1.01,
            position,
            money(drawn_span if drawn_span.is_open else drawn_span.exact),
            transform=axes.get_yaxis_transform(),
            va="center",
            color=style.INK,
            fontproperties=style.font(style.TICK_PT),
        )
    axes.set_ylim(len(offers) - 0.4, -0.6)
    names = [style.drawable(offer.economics.machine.name, 30) for offer in offers]
    axes.set_yticks(range(len(offers)), names)
    axes.tick_params(axis="y", length=0)
    unit = style.drawable(shown.terms.currency, 20)
    style.axis_label(axes, "x", _axis(shown, tender.deciding), unit)


def cost_latency(shown: Procurement) -> Drawing | None:
    """Draw cost against latency, a panel a workload; ``None`` without costs."""
    fronts = [tender for tender in _priced(shown) if tender.front]
    if not fronts:
        return None
    panels = fronts[:PANELS]
    columns = 1 if len(panels) == 1 else 2
    rows = math.ceil(len(panels) / columns)
    made = style.figure(1.0 + PANEL_IN * rows)
    grid = made.subplots(rows, columns, squeeze=False)
    names = [machine.name for machine in shown.terms.machines]
    unbounded = any(
        _is_unbounded(figure) for tender in panels for _, _, figure, _ in _points(tender)
    )
    used: dict[str, None] = {}
    # Two panels beside each other have half of the room each.
    titles = _titles(panels, limit=60 if columns == 1 else 42)
    for index, axes in enumerate(grid.flat):
        if index >= len(panels):
            axes.set_visible(False)
            continue
        style.title(axes, titles[index])
        for name in _panel(axes, panels[index], shown, names):
            used[name] = None
    style.heading(
        made,
        "Cost against latency",
        [
            style.mark(style.drawable(name, 24), _colour(names, name), _marker(names, name))
            for name in list(used)[:10]
        ],
    )
    rest = len(fronts) - len(panels)
    style.note(
        made,
        (
            "Lower left is best. Filled: no other variant clearly beats it in both; the line joins "
            "these. Bars: 95 % intervals" + (f"; {ARROW}." if unbounded else "."),
            *([f"{style.not_shown(rest, 'further workload')}."] if rest else []),
        ),
    )
    return made


def _colour(names: Sequence[str], name: str) -> str:
    index = names.index(name)
    return style.COLOURS[index % len(style.COLOURS)]


def _marker(names: Sequence[str], name: str) -> str:
    index = names.index(name)
    return style.MARKERS[(index // len(style.COLOURS)) % len(style.MARKERS)]


def _is_unbounded(figure: Figure | None) -> bool:
    return figure is not None and math.isinf(figure.high)


def _with_room(ends: Sequence[float], spans: Sequence[Figure]) -> list[float]:
    """What an axis must show: with room for arrows beyond the largest end, where there are any."""
    return [*ends, *([1.25 * max(ends)] if ends and any(map(_is_unbounded, spans)) else [])]


def _arrow(axes: Axes, x: float, y: float, marker: int, colour: str) -> None:
    """Mark at the end of the axis that a bar goes on without an end."""
    axes.plot([x], [y], marker=marker, markersize=8, color=colour, linestyle="none", clip_on=False)


def _points(tender: Tender) -> list[tuple[int, Economics, Figure, tuple[float, float]]]:
    """What can be drawn: index of the variant, the variant, what it costs, how fast it is."""
    points: list[tuple[int, Economics, Figure, tuple[float, float]]] = []
    for index, economics in enumerate(tender.variants):
        figure, latency = figure_of(economics, tender.deciding), latency_span(economics.case)
        if figure is not None and math.isfinite(figure.value) and math.isfinite(latency[1]):
            points.append((index, economics, figure, latency))
    return points


def _panel(axes: Axes, tender: Tender, shown: Procurement, names: Sequence[str]) -> list[str]:
    points = _points(tender)
    medians = [economics.case.quantities["latency_p50"].value for _, economics, _, _ in points]
    scale = style.Scale(medians, "s")
    style.dress(axes, grid="both")
    costs = [
        end
        for _, _, figure, _ in points
        for end in (figure.low, figure.value, figure.high)
        if math.isfinite(end)
    ]
    ends = [scale.of(end) for _, _, _, span in points for end in span]
    style.scale_axis(axes, "x", ends, zero=False)
    style.scale_axis(axes, "y", _with_room(costs, [figure for _, _, figure, _ in points]))
    axes.yaxis.set_major_formatter(FuncFormatter(_amount))
    front = sorted(
        (scale.of(median), figure.value)
        for (index, _, figure, _), median in zip(points, medians, strict=True)
        if index in tender.front
    )
    axes.plot(
        [x for x, _ in front], [y for _, y in front], color=style.FAINT, linewidth=0.9, zorder=1
    )
    for (index, economics, figure, span), median in zip(points, medians, strict=True):
        colour = _colour(names, economics.machine.name)
        x, y = scale.of(median), figure.value
        top = axes.get_ylim()[1] if math.isinf(figure.high) else figure.high
        axes.plot([x, x], [figure.low, top], color=colour, linewidth=1.6)
        if math.isinf(figure.high):
            _arrow(axes, x, top, CARETUP, colour)
        axes.plot([scale.of(end) for end in span], [y, y], color=colour, linewidth=1.6)
        axes.plot(
            [x],
            [y],
            marker=_marker(names, economics.machine.name),
            markersize=6,
            markeredgecolor=colour,
            markerfacecolor=colour if index in tender.front else "white",
            linestyle="none",
            zorder=3,
        )
    style.axis_label(axes, "x", "latency p50", scale.name)
    unit = style.drawable(shown.terms.currency, 20)
    style.axis_label(axes, "y", _axis(shown, tender.deciding), unit)
    return [economics.machine.name for _, economics, _, _ in points]
