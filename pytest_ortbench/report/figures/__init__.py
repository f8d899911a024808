"""Figures of a run. matplotlib is imported here and below, and nowhere else.

Import this package inside functions: it costs half a second.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path

from matplotlib.figure import Figure

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.placing import placed
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.passes.pass_object import Pass, PassFigure
from pytest_ortbench.passes.registry import PASSES, unit_of
from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.figures.accuracy import accuracy
from pytest_ortbench.report.figures.batches import batches
from pytest_ortbench.report.figures.distribution import distribution
from pytest_ortbench.report.figures.dots import LATENCY, MEMORY, THROUGHPUT, draw_by_case
from pytest_ortbench.report.figures.scaling import scaling
from pytest_ortbench.report.figures.slo import Slo
from pytest_ortbench.report.figures.timeline import timeline
from pytest_ortbench.report.figures.turns import turns

#: Draws the entries of a run; gives ``None`` where it has nothing for the figure.
_Draw = Callable[[Sequence[Entry]], "Figure | None"]


def _inferences(shown: Sequence[Entry]) -> list[Entry]:
    """Return the cases that time inferences: numbers of anything else don't compare with theirs."""
    return [entry for entry in shown if unit_of(entry.result.case) is None]


def _of_inferences(draw: _Draw) -> _Draw:
    return lambda shown: draw(_inferences(shown))


_STANDARD: dict[str, _Draw] = {
    "latency": _of_inferences(lambda shown: draw_by_case(shown, LATENCY)),
    "distribution": _of_inferences(distribution),
    "timeline": _of_inferences(timeline),
    "turns": _of_inferences(turns),
    "throughput": _of_inferences(lambda shown: draw_by_case(shown, THROUGHPUT)),
    "batch": _of_inferences(batches),
    "scaling": _of_inferences(scaling),
    "accuracy": _of_inferences(accuracy),
    "memory": lambda shown: draw_by_case(shown, MEMORY),
}

_DESCRIPTIONS: dict[str, str] = {
    "latency": "Latency p50 of each case with its interval, by model",
    "distribution": "Distribution of the latencies of the fastest cases, by model",
    "timeline": "Latencies in the order in which they were measured, warm-up shaded",
    "turns": "Blocks of the model and of its yardstick in turns, each against its own median",
    "throughput": "Items per second of each case, by model",
    "batch": "Latency against batch size, and throughput against latency, by model",
    "scaling": "Throughput against threads, callers or sessions, and its share of the ideal",
    "accuracy": "Signal to noise ratio against latency and against size, with the best trade-offs",
    "memory": "Rise of resident memory of each case, by model",
}

#: Figures of passes, each with its pass.
_OF_PASSES = [(entry, figure) for entry in PASSES for figure in entry.figures]


def _drawn(entry: Pass, figure: PassFigure, shown: Sequence[Entry]) -> Figure | None:
    """Draw a figure of a pass; its module is imported now."""
    drawn: Figure | None = entry.load(figure.draw)(shown)
    return drawn


#: Every figure by the name of its file.
FIGURES: dict[str, _Draw] = dict(
    placed(
        _STANDARD.items(),
        [
            (figure.place, (figure.name, partial(_drawn, entry, figure)))
            for entry, figure in _OF_PASSES
        ],
        itemgetter(0),
    )
)

#: What each figure shows, for readers who can't see it.
DESCRIPTIONS: dict[str, str] = _DESCRIPTIONS | {
    figure.name: figure.description for _, figure in _OF_PASSES
}


def figures(shown: Sequence[Entry], *, slo: Slo | None = None) -> Iterator[tuple[str, Figure]]:
    """Draw every figure that a run has data for, one after the other to keep memory low.

    Args:
        shown: All cases of the run.
        slo: Latency that must be kept, drawn as a line where latency is an axis.
    """
    for name, draw in FIGURES.items():
        made = batches(_inferences(shown), slo=slo) if name == "batch" else draw(shown)
        if made is not None:
            yield name, made


def write_figures(
    shown: Sequence[Entry],
    folder: Path,
    *,
    formats: Sequence[str] = ("png",),
    slo: Slo | None = None,
) -> list[Path]:
    """Write all figures of a run into a folder, which is made if it is missing.

    Args:
        shown: The cases of the run, also none.
        folder: Where the files go: ``latency.png``, ``distribution.png``, ….
        formats: ``png``, ``svg`` or both.
        slo: Latency that must be kept, drawn as a line.

    Returns:
        The files written, in reading order; empty where nothing was measured.
    """
    written: list[Path] = []
    for name, made in figures(shown, slo=slo):
        for ending in formats:
            path = folder / f"{name}.{ending}"
            replace_file(path, render(made, ending))
            written.append(path)
    return written


def render(made: Figure, ending: str, *, transparent: bool = False, place: str = "") -> bytes:
    """Draw a figure into the bytes of a file; the same run gives the same bytes, but for ids.

    Args:
        made: The figure.
        ending: ``png`` or ``svg``.
        transparent: Whether to leave out the white background.
        place: What names the kind of file, for messages.

    Raises:
        UsageError: for another kind of file.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    if transparent:
        made.patch.set_alpha(0)
        for axes in made.axes:
            axes.patch.set_alpha(0)
    stream = io.BytesIO()
    # The canvas itself instead of savefig(), which draws everything twice.
    if ending == "png":
        FigureCanvasAgg(made).print_png(stream)  # type: ignore[no-untyped-call]  # no types
    elif ending == "svg":
        svg = FigureCanvasSVG(made)
        svg.print_svg(stream, metadata={"Date": None})  # type: ignore[no-untyped-call]  # no types
    else:
        raise UsageError(
            f"a figure can't be written as {ending!r}",
            place=place,
            hint="Name a file that ends in .png or .svg",
        )
    return stream.getvalue()
