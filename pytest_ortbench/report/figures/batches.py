"""What a larger batch buys: latency against batch size, and throughput against latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.report.entries import Entry, by_model
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.differing import differing
from pytest_ortbench.report.figures.identity import Identity
from pytest_ortbench.report.figures.slo import Slo, percentile_words

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 5
LINES = 7
PANEL_IN = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Cases that differ in nothing but the batch size, by batch size.

    Attributes:
        entries: The cases.
        parts: What they have in common: precision, provider, and so on.
    """

    entries: tuple[Entry, ...]
    parts: tuple[str, ...] = ()

    @property
    def best(self) -> float:
        """Highest throughput along the line."""
        return max(_of(entry, "throughput").value for entry in self.entries)


class _Looks:
    """How lines look: by provider and precision where these tell them all apart.

    Where lines differ in something else (threads, sizes), each has a look of its own, and the
    legend of its panel names it by what varies.
    """

    def __init__(self, lines: Sequence[Line], identity: Identity) -> None:
        self._identity = identity
        self._lines = list(lines)
        looks = {
            (identity.colour(e), identity.marker(e)) for line in lines for e in line.entries[:1]
        }
        self.are_named = len(looks) < len(lines)

    def colour(self, line: Line) -> str:
        if not self.are_named:
            return self._identity.colour(line.entries[0])
        return style.COLOURS[self._lines.index(line) % len(style.COLOURS)]

    def dash(self, line: Line) -> style.Dash:
        if not self.are_named:
            return self._identity.dash(line.entries[0])
        return style.DASHES[self._lines.index(line) % len(style.DASHES)]

    def marker(self, line: Line) -> str:
        if not self.are_named:
            return self._identity.marker(line.entries[0])
        return style.MARKERS[self._lines.index(line) % len(style.MARKERS)]

    def legend(self, axes: Axes) -> None:
        """Name the lines to the right of a panel, if the legend of the figure can't."""
        if not self.are_named:
            return
        handles: list[Artist] = []
        for line in self._lines:
            handle = style.mark("", self.colour(line), self.marker(line))
            handle.set(linestyle=self.dash(line), color=self.colour(line), linewidth=1.1)
            handles.append(handle)
        labels = differing([line.parts for line in self._lines])
        style.legend_beside(axes, (handles, [style.drawable(label, 30) for label in labels]))


def batches(shown: Sequence[Entry], *, slo: Slo | None = None) -> Figure | None:
    """Draw a row of two panels a model; ``None`` if no case was measured at two batch sizes.

    Args:
        shown: All cases of the run.
        slo: Latency that must be kept, drawn as a line. It says which percentile the latencies
            are; p50 without it, and where no case has the samples for that percentile.
    """
    metric = slo.metric if slo is not None else "latency_p50"
    models = _models(shown, metric)
    if not models and metric != "latency_p50":
        slo, metric = None, "latency_p50"
        models = _models(shown, metric)
    if not models:
        return None
    identity = Identity(shown)
    rows = models[:PANELS]
    made = style.figure(1.0 + PANEL_IN * len(rows))
    grid = made.subplots(len(rows), 2, squeeze=False)
    drawn: list[Entry] = []
    left_out = 0
    for (name, lines), (left, right) in zip(rows, grid, strict=True):
        kept = sorted(lines, key=lambda line: -line.best)[:LINES]
        left_out += len(lines) - len(kept)
        looks = _Looks(kept, identity)
        _against_batch(left, name, kept, looks, metric, slo)
        _against_latency(right, kept, looks, metric, slo)
        looks.legend(right)
        drawn += [] if looks.are_named else [entry for line in kept for entry in line.entries]
    style.heading(made, "Batch size", identity.handles(drawn, lines=True))
    without = sum(entry.measured and entry.quantity(metric) is None for entry in shown)
    style.note(made, _notes(models, left_out, without, metric, slo))
    return made


def _models(shown: Sequence[Entry], metric: str) -> list[tuple[str, tuple[Line, ...]]]:
    courses = [(group.model.name, lines_of(group.entries, metric)) for group in by_model(shown)]
    return [(name, lines) for name, lines in courses if lines]


def _notes(
    models: Sequence[tuple[str, tuple[Line, ...]]],
    left_out: int,
    without: int,
    metric: str,
    slo: Slo | None,
) -> tuple[str, ...]:
    name = percentile_words(metric)
    sentences = [
        f"Left: {name} with its 95 % interval. Right: along a line the batch grows from left to "
        "right; upper left is best.",
    ]
    if slo is not None:
        sentences.append(f"Dashed: the latency limit, {slo.words}.")
    if without:
        sentences.append(f"Too few samples for {name}: {without} of the measured cases.")
    if left_out:
        sentences.append(
            f"Shown: the lines with the highest throughput; {style.not_shown(left_out, 'line')}."
        )
    if len(models) > PANELS:
        sentences.append(f"{style.not_shown(len(models) - PANELS, 'further model')}.")
    return tuple(sentences)


def _of(entry: Entry, metric: str) -> Quantity:
    quantity = entry.quantity(metric)
    assert quantity is not None  # lines_of keeps only cases that have both
    return quantity


def lines_of(members: Sequence[Entry], metric: str = "latency_p50") -> tuple[Line, ...]:
    """Group measured cases that differ only in batch size; groups of one are left out."""
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in members:
        if entry.quantity(metric) is None or entry.quantity("throughput") is None:
            continue
        case = entry.result.case
        key = (
            case.variant.precision,
            case.provider.label,
            case.runtime.label,
            case.io,
            *(f"{name}:{size}" for name, size in case.dims.items()),
            *(f"{name}:{value}" for name, value in case.knobs.items()),
        )
        groups.setdefault(key, []).append(entry)
    return tuple(
        Line(entries=tuple(sorted(group, key=lambda entry: entry.result.case.batch)), parts=parts)
        for parts, group in groups.items()
        if len({entry.result.case.batch for entry in group}) > 1
    )


def _limit(axes: Axes, which: str, slo: Slo | None, scale: style.Scale) -> None:
    """Draw the latency that must be kept."""
    if slo is None:
        return
    draw = axes.axhline if which == "y" else axes.axvline
    draw(scale.of(slo.latency_s), color=style.INK, linewidth=1.1, linestyle=(0, (4, 3)), zorder=1)


def _against_batch(
    axes: Axes,
    name: str,
    lines: Sequence[Line],
    looks: _Looks,
    metric: str,
    slo: Slo | None,
) -> None:
    values = [
        end
        for line in lines
        for entry in line.entries
        for quantity in (_of(entry, metric),)
        for end in (quantity.value, quantity.low, quantity.high)
        if end is not None
    ]
    values += [] if slo is None else [slo.latency_s]
    scale = style.Scale(values, "s")
    style.dress(axes, grid="both")
    style.scale_axis(axes, "y", [scale.of(value) for value in values])
    for line in lines:
        sizes = [entry.result.case.batch for entry in line.entries]
        medians = [_of(entry, metric) for entry in line.entries]
        axes.plot(
            sizes,
            [scale.of(quantity.value) for quantity in medians],
            color=looks.colour(line),
            linestyle=looks.dash(line),
            linewidth=1.1,
        )
        for size, quantity in zip(sizes, medians, strict=True):
            if quantity.low is not None and quantity.high is not None:
                axes.plot(
                    [size, size],
                    [scale.of(quantity.low), scale.of(quantity.high)],
                    color=looks.colour(line),
                    linewidth=2.2,
                )
        _marks(axes, line, sizes, [scale.of(quantity.value) for quantity in medians], looks)
    _limit(axes, "y", slo, scale)
    _batch_axis(axes, sorted({e.result.case.batch for line in lines for e in line.entries}))
    style.title(axes, name, limit=44)
    style.axis_label(axes, "y", f"latency {percentile_words(metric)}", scale.name)


def _marks(
    axes: Axes, line: Line, across: Sequence[float], up: Sequence[float], looks: _Looks
) -> None:
    """Draw the cases of a line: what is not ranked is open, here as everywhere."""
    for entry, x, y in zip(line.entries, across, up, strict=True):
        colour = looks.colour(line)
        axes.plot(
            [x],
            [y],
            marker=looks.marker(line),
            markersize=4.5,
            markeredgecolor=colour,
            markerfacecolor="white" if entry.barred else colour,
            linestyle="none",
            zorder=3,
        )


def _batch_axis(axes: Axes, sizes: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    shown: list[int] = []
    for size in sizes:
        # Labels closer than a factor of 1.5 would run into each other.
        if not shown or size >= 1.5 * shown[-1]:
            shown.append(size)
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    style.axis_label(axes, "x", "batch size", "items")


def _against_latency(
    axes: Axes, lines: Sequence[Line], looks: _Looks, metric: str, slo: Slo | None
) -> None:
    latencies = [_of(entry, metric).value for line in lines for entry in line.entries]
    latencies += [] if slo is None else [slo.latency_s]
    rates = [_of(entry, "throughput").value for line in lines for entry in line.entries]
    scale = style.Scale(latencies, "s")
    style.dress(axes, grid="both")
    style.scale_axis(axes, "x", [scale.of(value) for value in latencies])
    style.scale_axis(axes, "y", rates)
    for line in lines:
        across = [scale.of(_of(entry, metric).value) for entry in line.entries]
        up = [_of(entry, "throughput").value for entry in line.entries]
        axes.plot(
            across,
            up,
            color=looks.colour(line),
            linestyle=looks.dash(line),
            linewidth=1.1,
        )
        _marks(axes, line, across, up, looks)
    _limit(axes, "x", slo, scale)
    style.axis_label(axes, "x", f"latency {percentile_words(metric)}", scale.name)
    style.axis_label(axes, "y", "throughput", "items/s")
