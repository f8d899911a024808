"""Latency over many runs as ratios to the canary, with the points where it changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_ortbench.analysis.history import Series, series_names
from pytest_ortbench.core.ids import model_of
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.titles import headings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL_IN = 1.6
PANELS = 12
#: Characters of a heading over a panel of the whole width.
TITLE = 84


def trend(series: Sequence[Series]) -> Figure | None:
    """Draw one panel a series, those that changed first; ``None`` without any."""
    if not series:
        return None
    named = zip(series, series_names(series), strict=True)
    shown = sorted(named, key=lambda pair: not pair[0].steps)[:PANELS]
    made = style.figure(1.1 + PANEL_IN * len(shown))
    grid = made.subplots(len(shown), 1, squeeze=False)
    models = [model_of(entry.key[0]) for entry, _ in shown]
    parts = [
        (model, name.removeprefix(f"{model}/"))
        for model, (_, name) in zip(models, shown, strict=True)
    ]
    titles = headings(parts, between="/", limit=TITLE)
    for axes, (entry, _), name in zip(grid[:, 0], shown, titles, strict=True):
        style.dress(axes, grid="y")
        style.title(axes, name, limit=TITLE)
        ratios = [point.ratio for point in entry.points]
        axes.plot(range(len(ratios)), ratios, ".-", color=style.COLOURS[0], linewidth=0.8)
        for step in entry.steps:
            axes.axvline(step.index - 0.5, color=style.COLOURS[1], linewidth=1.2)
            axes.annotate(
                f"{100 * step.change:+.1f} %",
                (step.index - 0.5, 1.0),
                xycoords=("data", "axes fraction"),
                fontproperties=style.font(7),
                va="top",
            )
        # From zero: a change of a percent should not look like a cliff.
        axes.set_ylim(0, 1.15 * max(ratios))
    style.axis_label(grid[-1, 0], "x", "runs, the oldest first", "")
    style.heading(made, "Median latency ÷ median of the canary")
    left_out = len(series) - len(shown)
    sentences = ["Vertical lines: the level changed there; the change is written beside them."]
    if left_out:
        sentences.append(
            f"Cases that changed are shown first; {style.not_shown(left_out, 'case')}."
        )
    style.note(made, sentences)
    return made
