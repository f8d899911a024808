"""What accuracy costs: signal to noise ratio against latency and against size, and the front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from pytest_ortbench.core.judgement import DRAWN_INPUTS
from pytest_ortbench.report.entries import Entry, by_model
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.identity import Identity
from pytest_ortbench.report.figures.titles import headings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 5
PANEL_IN = 2.6
#: Cases of one model; the fastest, since more are a cloud.
POINTS = 40


def accuracy(shown: Sequence[Entry]) -> Figure | None:
    """Draw two panels a model; ``None`` if no model has two cases that differ in accuracy.

    Latencies of different batch sizes don't compare, so each model shows the batch size that most
    of its cases have, the smallest of these.
    """
    models = [
        (group.model.name, chosen)
        for group in by_model(shown)
        if (chosen := _comparable(group.entries)) is not None
    ]
    if not models:
        return None
    identity = Identity(shown)
    rows = models[:PANELS]
    made = style.figure(1.1 + PANEL_IN * len(rows))
    grid = made.subplots(len(rows), 2, squeeze=False, sharey="row")
    drawn: list[Entry] = []
    left_out = 0
    names = headings(
        [(name, f"b{kept[0].result.case.batch}") for name, (kept, _) in rows], between=" "
    )
    for name, (_, (kept, slower)), (left, right) in zip(names, rows, grid, strict=True):
        left_out += slower
        drawn += kept
        _panel(left, kept, identity, "latency_p50", "latency p50")
        _panel(right, kept, identity, "model_size", "model size")
        style.title(left, name)
        style.axis_label(left, "y", "signal to noise", "dB")
    style.heading(made, "Accuracy against latency and size", identity.handles(drawn))
    on_drawn = any(entry.summary.on_drawn_inputs for entry in drawn)
    style.note(made, _notes(len(models) - len(rows), left_out, on_drawn=on_drawn))
    return made


def _notes(models: int, cases: int, *, on_drawn: bool) -> tuple[str, ...]:
    notes = [
        "Upper left is best; the line joins cases that no other one beats in both. ∞: equal to the "
        "fp32 reference bit for bit.",
        "Worst output of all samples, against the fp32 model on the CPU without optimisation"
        + (f", on {DRAWN_INPUTS}." if on_drawn else "."),
    ]
    if cases:
        notes.append(f"Shown: the fastest of each model; {style.not_shown(cases, 'case')}.")
    if models:
        notes.append(f"{style.not_shown(models, 'further model')}.")
    return tuple(notes)


def _latency(entry: Entry) -> float:
    quantity = entry.quantity("latency_p50")
    return math.inf if quantity is None else quantity.value


def decibels(entry: Entry) -> float | None:
    """Return the signal to noise ratio of a case; infinite where it is exact."""
    worst_db = entry.summary.worst_db
    if worst_db is not None:
        return worst_db
    return math.inf if entry.summary.exact else None


def _comparable(members: Sequence[Entry]) -> tuple[list[Entry], int] | None:
    """The fastest cases of one batch size that have both numbers, and how many slower ones are
    left out; ``None`` if all that is drawn is equally accurate.
    """
    known = [
        entry
        for entry in members
        if decibels(entry) is not None and entry.quantity("latency_p50") is not None
    ]
    batches = [entry.result.case.batch for entry in known]
    if not batches:
        return None
    batch = max(sorted(set(batches)), key=batches.count)
    same = [entry for entry in known if entry.result.case.batch == batch]
    kept = sorted(same, key=_latency)[:POINTS]
    if len({decibels(entry) for entry in kept}) < 2:
        return None
    return kept, len(same) - len(kept)


def _ends(members: Sequence[Entry]) -> tuple[float, float]:
    """The smallest ratio, and the height of exact cases: above all others, labelled as infinite.

    Of all cases of a model, whose panels share their axis; two that differ are not both exact.
    """
    ratios = [ratio for entry in members if (ratio := decibels(entry)) is not None]
    finite = [ratio for ratio in ratios if math.isfinite(ratio)]
    low, high = min(finite), max(finite)
    return low, high + max(6.0, 0.15 * (high - low))


def _panel(
    axes: Axes, members: Sequence[Entry], identity: Identity, metric: str, label: str
) -> None:
    points = [
        (entry, quantity.value, ratio)
        for entry in members
        if (quantity := entry.quantity(metric)) is not None
        and (ratio := decibels(entry)) is not None
    ]
    if not points:
        axes.set_visible(False)
        return
    low, top = _ends(members)
    scale = style.Scale.of_metric([value for _, value, _ in points], metric)
    style.dress(axes, grid="both")
    style.scale_axis(axes, "x", [scale.of(value) for _, value, _ in points])
    heights = [ratio if math.isfinite(ratio) else top for _, _, ratio in points]
    ranked = [
        (scale.of(value), y)
        for (entry, value, _), y in zip(points, heights, strict=True)
        if not entry.barred
    ]
    _front(axes, ranked)
    for (entry, value, _), y in zip(points, heights, strict=True):
        colour = identity.colour(entry)
        axes.plot(
            [scale.of(value)],
            [y],
            marker=identity.marker(entry),
            markersize=6,
            markeredgecolor=colour,
            markerfacecolor="white" if entry.barred else colour,
            linestyle="none",
            # The front joins ranked ones: it lies over those that are not ranked.
            zorder=2 if entry.barred else 3,
        )
    axes.set_ylim(low - 0.08 * (top - low), top + 0.08 * (top - low))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    if any(math.isinf(ratio) for _, _, ratio in points):
        axes.axhline(top, color=style.GRID, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        axes.text(
            1.01,
            top,
            "∞",
            transform=axes.get_yaxis_transform(),
            va="center",
            color=style.FAINT,
            fontproperties=style.font(style.LABEL_PT),
        )
    style.axis_label(axes, "x", label, scale.name)


def front_of(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that no other one beats: smaller x, larger y; from left to right."""
    kept: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or y > kept[-1][1]:
            kept.append((x, y))
    return kept


def _front(axes: Axes, points: Sequence[tuple[float, float]]) -> None:
    front = front_of(points)
    axes.plot(
        [x for x, _ in front],
        [y for _, y in front],
        color=style.FAINT,
        linewidth=0.9,
        drawstyle="steps-post",
        zorder=2.5,
    )
