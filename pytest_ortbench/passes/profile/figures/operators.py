"""Where the time of a run goes: shares of operator types, a bar a case, or the types of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.patches import Patch

from pytest_ortbench.core.units import format_amount
from pytest_ortbench.passes.profile.facts import OperatorProfile
from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.choice import Panel, choose_cases
from pytest_ortbench.report.figures.titles import titles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_IN, PANEL_IN = 0.27, 0.72
#: Types with a colour of their own, over all bars; and with a bar of their own, of one case.
TYPES, SINGLE_TYPES = len(style.COLOURS) - 1, 14
#: Share of a run from which a part of a bar says its number.
NAMED = 0.06

#: The palette without black, which text stands on badly; a pattern for printers without colour.
_COLOURS = style.COLOURS[:TYPES]
_HATCHES = ("", "///", "...", "\\\\\\", "xx", "---")
OTHERS, BETWEEN = "other operators", "between nodes"


def profile_of(entry: Entry) -> OperatorProfile | None:
    """Return the operator profile of a case, ``None`` where there is none to draw."""
    profile = entry.result.profile
    if profile is None or not profile.operators or profile.run_ns <= 0:
        return None
    return profile


def shares(profile: OperatorProfile) -> dict[str, float]:
    """Share of the run in each operator type over all providers, the largest first; without 0."""
    totals: Counter[str] = Counter()
    for operator in profile.operators:
        totals[operator.op] += operator.time_ns
    return {op: profile.share(time_ns) for op, time_ns in totals.most_common() if time_ns > 0}


def operators(shown: Sequence[Entry]) -> Figure | None:
    """Draw the breakdown of every profiled case; ``None`` without a profile."""
    profiled = [entry for entry in shown if profile_of(entry) is not None]
    if not profiled:
        return None
    if len(profiled) == 1:
        return _single(profiled[0])
    choice = choose_cases(profiled, _run_s, which="fastest")
    drawn = [entry for panel in choice.panels for entry in panel.shown]
    named = _most(drawn)
    heights = [PANEL_IN + ROW_IN * len(panel.shown) for panel in choice.panels]
    made = style.figure(1.2 + sum(heights) + 0.13 * len(choice.notes))
    grid = made.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
    for axes, panel in zip(grid[:, 0], choice.panels, strict=True):
        _panel(axes, panel, named)
    style.axis_label(grid[-1, 0], "x", "share of the run", "%")
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=style.drawable(name, 24))
        for name, (colour, hatch) in _looks(named).items()
    ]
    style.heading(made, "Where the time goes", handles, columns=4)
    style.note(
        made,
        (
            "From runs with the profiler on, which makes small nodes look slower. Right: time of "
            "such a run.",
            *choice.notes,
        ),
    )
    return made


def _run_s(entry: Entry) -> float | None:
    profile = profile_of(entry)
    return None if profile is None else profile.run_ns * 1e-9


def _most(drawn: Sequence[Entry]) -> list[str]:
    """Operator types that take most over all bars, each bar counting the same."""
    totals: Counter[str] = Counter()
    for entry in drawn:
        profile = profile_of(entry)
        if profile is not None:
            totals.update(shares(profile))
    return [op for op, _ in totals.most_common(TYPES)]


def _looks(named: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and pattern of each part of a bar, in the order in which they are stacked."""
    looks = {op: (_COLOURS[index], _HATCHES[index]) for index, op in enumerate(named)}
    return {**looks, OTHERS: (style.OTHER, ""), BETWEEN: (style.SHADE, "")}


def _parts(profile: OperatorProfile, named: Sequence[str]) -> dict[str, float]:
    """Share of each part of a bar. Nodes that ran side by side are scaled to fill it."""
    time_shares = shares(profile)
    parts = {op: time_shares.get(op, 0.0) for op in named}
    parts[OTHERS] = sum(share for op, share in time_shares.items() if op not in parts)
    parts[BETWEEN] = max(0.0, profile.share(profile.between_ns))
    whole = sum(parts.values()) or 1.0
    return {name: share / whole for name, share in parts.items()}


def _panel(axes: Axes, panel: Panel, named: Sequence[str]) -> None:
    style.dress(axes)
    looks = _looks(named)
    for position, entry in enumerate(panel.shown):
        profile = profile_of(entry)
        if profile is not None:
            _bar(axes, position, profile, _parts(profile, named), looks)
    axes.set_xlim(0, 100)
    axes.set_ylim(len(panel.shown) - 0.4, -0.6)
    axes.set_yticks(
        range(len(panel.shown)), [style.drawable(entry.label, 36) for entry in panel.shown]
    )
    axes.tick_params(axis="y", length=0)
    style.title(axes, panel.group.model.name)


def _bar(
    axes: Axes,
    position: int,
    profile: OperatorProfile,
    parts: dict[str, float],
    looks: dict[str, tuple[str, str]],
) -> None:
    start = 0.0
    for name, share in parts.items():
        if share <= 0:
            continue
        colour, hatch = looks[name]
        axes.barh(
            position,
            100 * share,
            left=start,
            height=0.66,
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0.5,
        )
        if share >= NAMED:
            axes.text(
                start + 50 * share,
                position,
                f"{100 * share:.0f}",
                ha="center",
                va="center",
                color=style.INK,
                fontproperties=style.font(style.NOTE_PT),
                bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.8},
            )
        start += 100 * share
    axes.text(
        1.01,
        position,
        format_amount(profile.run_ns * 1e-9, "s"),
        transform=axes.get_yaxis_transform(),
        va="center",
        color=style.INK,
        fontproperties=style.font(style.TICK_PT),
    )


def _single(entry: Entry) -> Figure:
    """Draw a bar for each operator type of one case, the rest counted in one."""
    profile = profile_of(entry)
    assert profile is not None
    time_shares = shares(profile)
    rows = list(time_shares.items())[:SINGLE_TYPES]
    own = len(rows)
    rest = list(time_shares.items())[SINGLE_TYPES:]
    if rest:
        rows.append((f"{len(rest)} further types", sum(share for _, share in rest)))
    rows.append((BETWEEN, max(0.0, profile.share(profile.between_ns))))
    made = style.figure(1.5 + 0.22 * len(rows))
    axes = made.subplots()
    style.dress(axes)
    for position, (_, share) in enumerate(rows):
        aside = position >= own
        axes.barh(
            position, 100 * share, height=0.66, color=style.OTHER if aside else style.COLOURS[0]
        )
        axes.text(
            1.01,
            position,
            f"{format_amount(share * profile.run_ns * 1e-9, 's')}, {100 * share:.1f} %",
            transform=axes.get_yaxis_transform(),
            va="center",
            color=style.INK,
            fontproperties=style.font(style.TICK_PT),
        )
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [style.drawable(name, 30) for name, _ in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 105 * max(share for _, share in rows))
    (name,) = titles([entry])
    style.title(axes, name)
    style.axis_label(axes, "x", "share of the run", "%")
    style.heading(made, "Where the time goes")
    run = format_amount(profile.run_ns * 1e-9, "s")
    style.note(
        made,
        (f"From runs of {run} with the profiler on, which makes small nodes look slower.",),
    )
    return made
