"""Figures of requests: tokens a second against depth, time by position, prompts, and quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.report.entries import Entry, case_label
from pytest_ortbench.report.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Most panels of a figure, and lines of a panel.
_PANELS, _LINES, _PANEL_IN = 4, 7, 2.6
#: Lines of tokens by position, each of which goes up and down.
_POSITION_LINES = 5
#: Knobs that labels of lines say in words, or leave out.
_NAMED = ("workload", "engine", "prompt", "new", "depth")


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthCourse:
    """Cases that differ in one length alone.

    Attributes:
        model: Name of the model.
        label: What they have in common.
        points: Lengths and cases, ascending.
    """

    model: str
    label: str
    points: tuple[tuple[int, Entry], ...]


def length_courses(shown: Sequence[Entry], knob: str) -> tuple[LengthCourse, ...]:
    """Group measured requests that differ in one length; groups of one are left out.

    Args:
        shown: The cases of a run.
        knob: ``depth`` or ``prompt``.
    """
    groups: dict[tuple[str, str], dict[int, Entry]] = {}
    requests = _requests(shown)
    for entry in requests:
        case = entry.result.case
        others = {name: value for name, value in case.knobs.items() if name != knob}
        label = case_label(replace(case, knobs=others), runtime=True)
        groups.setdefault((case.model.name, label), {})[_length(case, knob)] = entry
    return tuple(
        LengthCourse(
            model=model,
            label=_words(
                next(iter(points.values())).result.case,
                engines=_several_engines(requests),
                without=knob,
            ),
            points=tuple(sorted(points.items())),
        )
        for (model, _), points in groups.items()
        if len(points) > 1
    )


def _length(case: Case, knob: str) -> int:
    """Return what was asked for; the knobs of a document may be any."""
    asked = case.generation
    if asked is None:
        return 0
    return asked.depth if knob == "depth" else asked.prompt_tokens


def _words(case: Case, *, engines: bool, without: str = "") -> str:
    """``native/cpu/b1 session, prompt 16, depth 256``; a depth of zero is not named.

    Args:
        case: What is named.
        engines: Whether to name what generates, where a figure has several.
        without: A length that is an axis.
    """
    knobs = {name: value for name, value in case.knobs.items() if name not in _NAMED}
    label = case_label(replace(case, knobs=knobs), runtime=case.runtime.label != "current")
    lengths = [
        f"{name} {_length(case, name)}"
        for name in ("prompt", "depth")
        if name != without and case.knobs.get(name, "0") != "0"
    ]
    engine = f" {case.knobs.get('engine', '')}" if engines else ""
    return ", ".join([label + engine, *lengths])


def _several_engines(entries: Sequence[Entry]) -> bool:
    return len({entry.result.case.knobs.get("engine") for entry in entries}) > 1


def _requests(shown: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in shown if entry.measured and entry.result.case.generation is not None]


def draw_depth(shown: Sequence[Entry]) -> Figure | None:
    """Draw tokens a second against the depth; ``None`` if nothing was measured at two depths."""
    lines = length_courses(shown, "depth")
    return _by_model(
        lines,
        heading="Tokens a second against the depth of the cache",
        reading="Mark: tokens of one sequence a second, the first one not counted, with its 95 % "
        "interval. Depth: tokens in the cache before the prompt.",
        columns=(("depth", "tokens", "decode_rate", "decode rate"),),
    )


def draw_prompt(shown: Sequence[Entry]) -> Figure | None:
    """Draw first token and prefill rate against the prompt; ``None`` without two lengths of it."""
    lines = length_courses(shown, "prompt")
    return _by_model(
        lines,
        heading="Reading the prompt",
        reading="Left: time to first token. Right: tokens of the prompts of all sequences, read a "
        "second. Each with its 95 % interval.",
        columns=(
            ("prompt", "tokens", "ttft", "time to first token"),
            ("prompt", "tokens", "prefill_rate", "prefill rate"),
        ),
    )


def _by_model(
    lines: Sequence[LengthCourse],
    *,
    heading: str,
    reading: str,
    columns: Sequence[tuple[str, str, str, str]],
) -> Figure | None:
    """Draw a row of panels a model.

    Args:
        lines: What is drawn.
        heading: Of the figure.
        reading: How it is read.
        columns: What stands along, its unit, the metric that stands up, and what that is called.
    """
    models = list(dict.fromkeys(line.model for line in lines))
    if not models:
        return None
    rows = models[:_PANELS]
    made = style.figure(0.9 + _PANEL_IN * len(rows))
    grid = made.subplots(len(rows), len(columns), squeeze=False)
    left_out = 0
    for model, panels in zip(rows, grid, strict=True):
        own = [line for line in lines if line.model == model]
        kept = _best(own)
        left_out += len(own) - len(kept)
        for axes, (along, unit, metric, name) in zip(panels, columns, strict=True):
            _course_panel(axes, kept, metric)
            _lengths(axes, sorted({length for line in kept for length, _ in line.points}))
            style.axis_label(axes, "x", along, unit)
            values = _values(kept, metric)
            style.axis_label(axes, "y", name, style.Scale.of_metric(values, metric).name)
        style.title(panels[0], model)
        _legend_beside(panels[-1])
    style.heading(made, heading)
    style.note(made, _notes(reading, left_out, len(models) - len(rows)))
    return made


def _legend_beside(axes: Axes) -> None:
    """Name the lines of a row of panels at its right, where no line runs through the names."""
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        frameon=False,
        prop=style.font(style.NOTE_PT),
        handlelength=1.6,
    )


def _notes(reading: str, lines: int, models: int) -> list[str]:
    notes = [reading]
    if lines:
        notes.append(f"Shown: the fastest per token; {style.not_shown(lines, 'line')}.")
    if models:
        notes.append(f"{style.not_shown(models, 'further model')}.")
    return notes


def _best(lines: Sequence[LengthCourse]) -> list[LengthCourse]:
    """Return the lines whose slowest case is the fastest per token, in their order."""
    fastest = sorted(lines, key=lambda line: max(_speed(entry) for _, entry in line.points))
    kept = fastest[:_LINES]
    return [line for line in lines if line in kept]


def _speed(entry: Entry) -> float:
    quantity = entry.quantity("tpot")
    return float("inf") if quantity is None else quantity.value


def _values(lines: Sequence[LengthCourse], metric: str) -> list[float]:
    return [
        end
        for line in lines
        for _, entry in line.points
        if (quantity := entry.quantity(metric)) is not None
        for end in (quantity.low, quantity.value, quantity.high)
        if end is not None
    ]


def _course_panel(axes: Axes, lines: Sequence[LengthCourse], metric: str) -> None:
    values = _values(lines, metric)
    scale = style.Scale.of_metric(values, metric)
    style.dress(axes, grid="both")
    style.scale_axis(axes, "y", [scale.of(value) for value in values])
    for index, line in enumerate(lines):
        colour = style.COLOURS[index]
        points = [
            (length, quantity)
            for length, entry in line.points
            if (quantity := entry.quantity(metric)) is not None
        ]
        axes.plot(
            [length for length, _ in points],
            [scale.of(quantity.value) for _, quantity in points],
            color=colour,
            marker=style.MARKERS[index],
            markersize=4,
            linewidth=1.2,
            label=style.drawable(line.label, 42),
        )
        for length, quantity in points:
            if quantity.low is not None and quantity.high is not None:
                axes.plot(
                    [length, length],
                    [scale.of(quantity.low), scale.of(quantity.high)],
                    color=colour,
                    linewidth=2.2,
                )


def _lengths(axes: Axes, lengths: Sequence[int]) -> None:
    """Mark the lengths that were measured; those of zero have a place beside the others."""
    if lengths[0] > 0 and lengths[-1] > 8 * lengths[0]:
        axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(list(lengths)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def draw_positions(shown: Sequence[Entry]) -> Figure | None:
    """Draw the time between tokens by position; ``None`` without requests of four tokens."""
    by_model: dict[str, list[tuple[Entry, list[Spread]]]] = {}
    for entry in _requests(shown):
        spreads = by_position(_kept(entry))
        if len(spreads) > 2:
            by_model.setdefault(entry.result.case.model.name, []).append((entry, spreads))
    if not by_model:
        return None
    rows = list(by_model.items())[:_PANELS]
    made = style.figure(0.9 + _PANEL_IN * len(rows))
    grid = made.subplots(len(rows), 1, squeeze=False)
    left_out = 0
    for (model, members), axes in zip(rows, grid[:, 0], strict=True):
        kept = sorted(members, key=lambda member: _speed(member[0]))[:_POSITION_LINES]
        left_out += len(members) - len(kept)
        _position_panel(axes, kept)
        style.title(axes, model)
    style.heading(made, "Time between tokens by position")
    reading = (
        "Line: median over requests of the time for the token at this position of what a sequence "
        "writes;\nthe first token is not drawn. Band: the middle half of the requests."
    )
    style.note(made, _notes(reading, left_out, len(by_model) - len(rows)))
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How long the token at one position took, in seconds.

    Attributes:
        position: Of the token among those that are written, from 1.
        low: First quartile over requests.
        middle: Median.
        high: Third quartile.
    """

    position: int
    low: float
    middle: float
    high: float


def _kept(entry: Entry) -> list[GeneratedRequest]:
    return [
        request
        for measurement in entry.result.measurements
        for request in measurement.samples.requests
    ]


def by_position(requests: Sequence[GeneratedRequest]) -> list[Spread]:
    """Return how long the second token and each later one took, over all requests."""
    spreads: list[Spread] = []
    for index in range(1, max((len(request.steps_ns) for request in requests), default=0)):
        steps = sorted(
            request.steps_ns[index] * 1e-9 for request in requests if len(request.steps_ns) > index
        )
        spreads.append(
            Spread(
                position=index + 1,
                low=steps[(len(steps) - 1) // 4],
                middle=median(steps),
                high=steps[-1 - (len(steps) - 1) // 4],
            )
        )
    return spreads


def _position_panel(axes: Axes, members: Sequence[tuple[Entry, list[Spread]]]) -> None:
    middles = [spread.middle for _, spreads in members for spread in spreads]
    scale = style.Scale(middles, "s")
    style.dress(axes, grid="both")
    style.scale_axis(axes, "y", [scale.of(value) for value in middles])
    engines = _several_engines([entry for entry, _ in members])
    for index, (entry, spreads) in enumerate(members):
        colour = style.COLOURS[index]
        positions = [spread.position for spread in spreads]
        axes.fill_between(
            positions,
            [scale.of(spread.low) for spread in spreads],
            [scale.of(spread.high) for spread in spreads],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
        axes.plot(
            positions,
            [scale.of(spread.middle) for spread in spreads],
            color=colour,
            linestyle=style.DASHES[index % len(style.DASHES)],
            linewidth=1.2,
            label=style.drawable(_words(entry.result.case, engines=engines), 42),
        )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=9))
    style.axis_label(axes, "x", "token", "")
    style.axis_label(axes, "y", "time for the token", scale.name)
    _legend_beside(axes)


#: What a figure of quality takes of a case, the best known first, and what its axis says.
_QUALITIES = (
    ("logits_kl", "divergence from fp32", "nats"),
    ("logits_sqnr", "signal to noise of logits", "dB"),
    ("greedy_agreement", "tokens that agree with fp32", "share"),
)


def draw_quality(shown: Sequence[Entry]) -> Figure | None:
    """Draw quality against time per token and size; ``None`` unless two cases differ in it."""
    for metric, name, unit in _QUALITIES:
        known = [
            (entry, quality)
            for entry in _requests(shown)
            if (quality := entry.summary.quantities.get(metric)) is not None
        ]
        if len({quality.value for _, quality in known}) > 1:
            return _quality_figure(known, name, unit)
    return None


def _quality_figure(known: Sequence[tuple[Entry, Quantity]], name: str, unit: str) -> Figure:
    made = style.figure(0.9 + _PANEL_IN)
    left, right = made.subplots(1, 2, sharey=True)
    variants = list(dict.fromkeys(entry.result.case.variant.precision for entry, _ in known))
    for axes, metric, label in (
        (left, "tpot", "time per output token"),
        (right, "model_size", "model size"),
    ):
        points = [
            (entry, along, quality)
            for entry, quality in known
            if (along := entry.quantity(metric)) is not None
        ]
        scale = style.Scale.of_metric([along.value for _, along, _ in points], metric)
        style.dress(axes, grid="both")
        style.scale_axis(axes, "x", [scale.of(along.value) for _, along, _ in points])
        for entry, along, quality in points:
            index = variants.index(entry.result.case.variant.precision)
            colour = style.COLOURS[index % len(style.COLOURS)]
            axes.plot(
                [scale.of(along.value)],
                [quality.value],
                linestyle="none",
                marker=style.MARKERS[index % len(style.MARKERS)],
                markersize=5.5,
                markeredgecolor=colour,
                markerfacecolor="white" if entry.barred else colour,
            )
        style.axis_label(axes, "x", label, scale.name)
    style.axis_label(left, "y", name, unit)
    handles = [
        style.mark(
            style.drawable(variant, 24),
            style.COLOURS[index % len(style.COLOURS)],
            style.MARKERS[index % len(style.MARKERS)],
        )
        for index, variant in enumerate(variants)
    ]
    style.heading(made, "Quality against speed and size", handles)
    style.note(made, ["Against the fp32 reference, one mark a case; open: not ranked."])
    return made
