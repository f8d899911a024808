"""Rates of operators under the roof that the machine's measured peaks make, a panel a case."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ortbench.passes.profile.facts import OperatorProfile, Peak
from pytest_ortbench.passes.profile.figures.operators import profile_of
from pytest_ortbench.passes.profile.numbers.roofline import Rate, model_rate, operator_rate, ridge
from pytest_ortbench.passes.profile.report import threads_of
from pytest_ortbench.report.arithmetic import format_count
from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.titles import titles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS, PANEL_IN = 6, 3.0
#: Operator types with a colour of their own; further ones share one grey.
TYPES = 6
#: Room around the points and the corner of the roof, as a factor on both sides.
_ROOM = 3.0

#: Colour and shape of a mark.
Look = tuple[str, str]
_OTHERS: Look = (style.OTHER, "o")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One mark: intensity in multiply-accumulates a byte, rate in multiply-accumulates a second."""

    op: str
    intensity: float
    macs_per_s: float


def roofline(shown: Sequence[Entry]) -> Figure | None:
    """Draw a panel for the fastest case of each model, then for others; ``None`` without any.

    A case has one if its peaks were measured and something in it has a rate.
    """
    drawable = [entry for entry in shown if _is_drawable(entry)]
    if not drawable:
        return None
    panels = _chosen(drawable)[:PANELS]
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    made = style.figure(1.3 + PANEL_IN * rows)
    grid = made.subplots(rows, columns, squeeze=False)
    looks = _looks(panels)
    cells = list(grid.flat)
    for axes, entry, name in zip(cells, panels, titles(panels, limit=42), strict=False):
        _panel(axes, entry, looks)
        style.title(axes, name, limit=len(name))
    for axes in cells[len(panels) :]:
        axes.set_axis_off()
    handles = [
        *(style.mark(style.drawable(op, 24), *look) for op, look in looks.items()),
        style.mark("whole run", "black", "*"),
    ]
    style.heading(made, "Roofline: how close to what the machine can do", handles)
    style.note(made, _notes(panels, len(drawable) - len(panels)))
    return made


def points(profile: OperatorProfile) -> tuple[list[Mark], list[Mark]]:
    """Return a mark for each operator type, and one for each of its slowest nodes.

    Only what multiplies has a place on a logarithmic scale.
    """
    by_type = [
        point
        for operator in profile.operators
        if (point := _point(operator.op, operator_rate(profile, operator))) is not None
    ]
    by_node = [
        point
        for node in profile.nodes
        if (point := _point(node.op, operator_rate(profile, node))) is not None
    ]
    return by_type, by_node


def _point(op: str, rate: Rate) -> Mark | None:
    if not rate.intensity or not rate.macs_per_s:
        return None
    return Mark(op=op, intensity=rate.intensity, macs_per_s=rate.macs_per_s)


def _is_drawable(entry: Entry) -> bool:
    profile = profile_of(entry)
    if profile is None or profile.peak is None or ridge(profile.peak) is None:
        return False
    return bool(points(profile)[0]) or _point("", model_rate(profile)) is not None


def _chosen(drawable: Sequence[Entry]) -> list[Entry]:
    """The fastest case of each model first, in the order of the run; then all others."""

    def took(entry: Entry) -> int:
        profile = profile_of(entry)
        assert profile is not None
        return profile.plain_ns or profile.run_ns

    models: dict[str, list[Entry]] = {}
    for entry in drawable:
        models.setdefault(entry.result.case.model.name, []).append(entry)
    ranked = [sorted(members, key=took) for members in models.values()]
    return [members[0] for members in ranked] + [
        entry for members in ranked for entry in members[1:]
    ]


def _looks(panels: Sequence[Entry]) -> dict[str, Look]:
    """Colour and shape of each of the types that take most time, and one for the others."""
    totals: Counter[str] = Counter()
    for entry in panels:
        profile = profile_of(entry)
        assert profile is not None
        multiply = {point.op for point in points(profile)[0]}
        for operator in profile.operators:
            if operator.op in multiply:
                totals[operator.op] += round(1e6 * profile.share(operator.time_ns))
    named = [op for op, _ in totals.most_common(TYPES)]
    looks = dict(zip(named, zip(style.COLOURS, style.MARKERS, strict=False), strict=False))
    return looks if len(totals) <= TYPES else {**looks, "other operators": _OTHERS}


def _panel(axes: Axes, entry: Entry, looks: dict[str, Look]) -> None:
    profile = profile_of(entry)
    assert profile is not None
    peak = profile.peak
    assert peak is not None
    by_type, by_node = points(profile)
    whole = _point("", model_rate(profile))
    everything = [*by_type, *by_node, *([whole] if whole is not None else [])]
    style.dress(axes, grid="both")
    _roof(axes, peak, everything)
    for marks, size, faint in ((by_node, 3.0, True), (by_type, 8.0, False)):
        for op in dict.fromkeys(point.op for point in marks):
            own = [point for point in marks if point.op == op]
            colour, shape = looks.get(op, _OTHERS)
            axes.plot(
                [point.intensity for point in own],
                [point.macs_per_s / 1e9 for point in own],
                marker=shape,
                markersize=size,
                linestyle="none",
                color=colour,
                markeredgecolor="none" if faint else "white",
                alpha=0.55 if faint else 1.0,
                zorder=3 if faint else 4,
            )
    if whole is not None:
        axes.plot(
            [whole.intensity],
            [whole.macs_per_s / 1e9],
            marker="*",
            markersize=12,
            markeredgecolor="white",
            color="black",
            linestyle="none",
            zorder=5,
        )
    style.axis_label(axes, "x", "arithmetic intensity", "MAC/B")
    style.axis_label(axes, "y", "rate", "GMAC/s")


def _roof(axes: Axes, peak: Peak, marks: Sequence[Mark]) -> None:
    """Draw both ceilings and give the axes their limits."""
    corner, top, slope = ridge(peak), peak.macs_per_s, peak.bytes_per_s
    assert corner is not None
    assert top is not None
    assert slope is not None
    left = min([corner, *(point.intensity for point in marks)]) / _ROOM
    right = max([corner, *(point.intensity for point in marks)]) * _ROOM
    lowest = min([left * slope, *(point.macs_per_s for point in marks)]) / 1e9
    highest = max([top, *(point.macs_per_s for point in marks)]) * _ROOM / 1e9
    style.scale_axis(axes, "x", [left, right], zero=False)
    style.scale_axis(axes, "y", [lowest, highest], zero=False)
    axes.plot(
        [left, corner, right],
        [left * slope / 1e9, top / 1e9, top / 1e9],
        color=style.INK,
        linewidth=1.2,
        zorder=2,
    )
    threads = threads_of(peak)
    peaks = f"{format_count(top)}MAC/s ({peak.element}), {format_count(slope)}B/s"
    axes.text(  # where nothing else stands: left above a roof
        0.02,
        0.97,
        style.drawable(f"peaks: {peaks}{f', {threads}' if threads else ''}", 64),
        transform=axes.transAxes,
        ha="left",
        va="top",
        color=style.INK,
        fontproperties=style.font(style.NOTE_PT),
        bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.0},
    )


def _notes(panels: Sequence[Entry], left_out: int) -> tuple[str, ...]:
    profiles = [profile for entry in panels if (profile := profile_of(entry)) is not None]
    without = [
        profile.share(sum(operator.time_ns for operator in profile.operators if not operator.macs))
        for profile in profiles
    ]
    sentences = [
        "Line: peaks of a matrix product and of a pass over memory, measured through the same "
        "provider. Small marks: the slowest nodes.",
        "Bytes are the least that must be moved; data in caches arrives faster than from memory. "
        f"Operators without multiplications are not shown: {_range(without)} of a run.",
    ]
    if any(profile.asynchronous for profile in profiles):
        sentences.append("Where kernels continue after their node, only the whole run has a rate.")
    if left_out:
        further = f"{left_out} further case{'s are' if left_out > 1 else ' is'} not shown"
        sentences.append(f"Shown: the fastest case of each model first; {further}.")
    return tuple(sentences)


def _range(values: Sequence[float]) -> str:
    low, high = (f"{100 * end:.0f}" for end in (min(values), max(values)))
    return f"{low} %" if low == high else f"{low} to {high} %"
