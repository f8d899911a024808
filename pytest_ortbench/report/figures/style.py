"""One look for every figure: colours, sizes, units, and text that is safe to draw.

Figures are made through matplotlib's object interface. Nothing here touches ``pyplot`` or
``rcParams``, which belong to whoever else draws in this process.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import FT2Font
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.units import common_scale
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.figures.shortening import between_parts, told_apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Okabe and Ito's palette, told apart with every common colour vision deficiency
#: (https://jfly.uni-koeln.de/color/). Yellow is left out: it can't be seen on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: What is beyond the palette.
OTHER = "#8A8A8A"
INK = "#222222"
FAINT = "#6B6B6B"
GRID = "#DDDDDD"
SHADE = "#ECECEC"

#: A shape as well as a colour: figures must survive a black and white printer.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

#: A line style: by name, or an offset and lengths of strokes and gaps.
Dash = str | tuple[int, tuple[float, ...]]
#: Lines that are told apart without colour; none of them can be taken for the dashes of a limit.
DASHES: tuple[Dash, ...] = (
    "solid",
    (0, (7, 2)),
    (0, (1, 1.5)),
    (0, (7, 2, 1, 2)),
    (0, (4, 1.5, 1, 1.5, 1, 1.5)),
    (0, (2.5, 1.2)),
)

WIDTH_IN = 8.0
DPI = 160
TITLE_PT, LABEL_PT, TICK_PT, NOTE_PT = 11.0, 9.0, 8.0, 7.5

#: Characters of a legend that fit on a line, and what a mark with its space takes of them.
_LINE_CHARACTERS, _MARK_CHARACTERS = 100, 6

#: Beyond this ratio of largest to smallest value an axis is logarithmic.
LOG_FROM = 30.0

#: Fonts that have Chinese, Japanese and Korean in one; of these the first is enough, since every
#: further font costs time with each text.
_WHOLE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK TC",
    "Noto Sans CJK JP",
    "Noto Sans CJK KR",
    "Source Han Sans SC",
    "Source Han Sans",
    "Noto Serif CJK SC",
    "Noto Serif CJK JP",
    "Arial Unicode MS",
)
#: Fonts that have some of it, tried together where none of the above is installed.
_PARTIAL_FONTS = (
    "Noto Sans SC",
    "Noto Sans JP",
    "Microsoft YaHei",
    "SimHei",
    "Yu Gothic",
    "Malgun Gothic",
    "PingFang SC",
    "Hiragino Sans",
    "Hiragino Sans GB",
    "AppleGothic",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "IPAGothic",
)
#: Fonts for further scripts that the bundled DejaVu Sans lacks.
_OTHER_FONTS = ("Noto Sans", "Segoe UI")
_BUNDLED_FONT = "DejaVu Sans"


class Scale:
    """The unit of an axis: ``factor`` SI units make one of it.

    Attributes:
        factor: Divide SI values by it.
        name: What stands in the axis label.
    """

    def __init__(self, values: Iterable[float], unit: str) -> None:
        self.factor, self.name = common_scale(values, unit)

    @classmethod
    def of_metric(cls, values: Iterable[float], metric: str) -> Scale:
        """Return the unit of a metric's axis; that of a rate names what is counted."""
        kind = METRICS[metric]
        made = cls(values, kind.unit)
        if kind.counted:
            # A rate's axis keeps one unit, that of the tables.
            made.factor, made.name = 1.0, f"{kind.counted}/s"
        return made

    def of(self, value: float) -> float:
        """Return an SI value in this axis' unit."""
        return value / self.factor


def figure(height_in: float) -> Figure:
    """Return an empty figure whose parts make room for each other."""
    made = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI, layout="constrained", facecolor="white")
    engine = made.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(w_pad=0.08, h_pad=0.06)
    return made


@functools.cache
def _fonts() -> tuple[tuple[str, ...], tuple[FT2Font, ...]]:
    installed = {entry.name for entry in font_manager.fontManager.ttflist}
    whole = [name for name in _WHOLE_FONTS if name in installed][:1]
    wide = whole or [name for name in _PARTIAL_FONTS if name in installed]
    names = (_BUNDLED_FONT, *wide, *(name for name in _OTHER_FONTS if name in installed))
    paths = [font_manager.findfont(FontProperties(family=name)) for name in names]
    return names, tuple(font_manager.get_font(path) for path in paths)


def font(size: float, *, bold: bool = False) -> FontProperties:
    """Return the font of every text, with fallbacks for other scripts."""
    names, _ = _fonts()
    return FontProperties(family=list(names), size=size, weight="bold" if bold else "normal")


def drawable(text: str, limit: int = 60) -> str:
    """Return foreign ``text`` so that drawing it is only drawing.

    On one line, shortened between two of its parts, no mathematics between dollar signs, and
    characters that no installed font has as escapes (``\\u4e2d``).
    """
    shown = between_parts(one_line(text), limit)
    _, faces = _fonts()
    drawn = (
        character
        if any(face.get_char_index(ord(character)) for face in faces)
        else f"\\u{ord(character):04x}"
        for character in shown
    )
    return "".join(drawn).replace("$", r"\$")


def rows(labels: Sequence[str], limit: int = 36) -> list[str]:
    """Return what rows of a panel are called: shortened so that they are told apart."""
    return [drawable(label, limit) for label in told_apart(labels, limit)]


def dress(axes: Axes, *, grid: Literal["x", "y", "both"] = "x") -> None:
    """Give ``axes`` the common look: no frame, faint grid, small ticks."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    axes.grid(visible=True, axis=grid, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(
        labelsize=TICK_PT,
        labelfontfamily=list(_fonts()[0]),
        colors=INK,
        length=2.5,
        width=0.6,
    )


def title(axes: Axes, text: str, *, limit: int = 60) -> None:
    """Write the heading of one panel."""
    bold = font(LABEL_PT, bold=True)
    axes.set_title(drawable(text, limit), loc="left", color=INK, fontproperties=bold)


def heading(made: Figure, text: str, handles: Sequence[Artist] = (), *, columns: int = 5) -> None:
    """Write the heading of a whole figure, and the legend of all its panels below it.

    Args:
        made: The figure.
        text: Its heading.
        handles: Entries of the legend, on one line where they fit.
        columns: Entries on a line where they don't.
    """
    taken = sum(len(str(handle.get_label())) + _MARK_CHARACTERS for handle in handles)
    if taken <= _LINE_CHARACTERS:
        columns = len(handles)
    bold = font(TITLE_PT, bold=True)
    if not handles:
        made.suptitle(text, x=0.01, ha="left", color=INK, fontproperties=bold)
        return
    # As the legend's own title, since the layout would put a separate heading over it.
    made.legend(
        handles=list(handles),
        loc="outside upper left",
        ncols=min(columns, len(handles)),
        frameon=False,
        prop=font(TICK_PT),
        handletextpad=0.3,
        columnspacing=1.4,
        borderaxespad=0.2,
        title=text,
        title_fontproperties=bold,
        alignment="left",
    )


def legend_beside(axes: Axes, named: tuple[list[Artist], list[str]]) -> None:
    """Write the legend of lines to the right of a panel, where it covers none of them.

    Args:
        axes: The panel at the right.
        named: Lines, and what each is called.
    """
    handles, labels = named
    axes.legend(
        handles,
        labels,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        prop=font(NOTE_PT),
        handlelength=1.8,
        borderaxespad=0.2,
    )


def note(made: Figure, sentences: Sequence[str]) -> None:
    """Write what the figure leaves out or needs to be read, below it."""
    if sentences:
        made.supxlabel(
            "\n".join(sentences), x=0.01, ha="left", color=FAINT, fontproperties=font(NOTE_PT)
        )


def not_shown(count: int, noun: str) -> str:
    """Return ``1 case is not shown``, ``3 cases are not shown``."""
    return f"{count} {noun} is not shown" if count == 1 else f"{count} {noun}s are not shown"


def axis_label(axes: Axes, which: str, text: str, unit: str) -> None:
    """Label the x or y axis; the unit stands in parentheses."""
    label = f"{text} ({unit})" if unit else text
    setter = axes.set_xlabel if which == "x" else axes.set_ylabel
    setter(label, color=INK, fontproperties=font(LABEL_PT))


def date_axis(axes: Axes) -> None:
    """Write dates below an axis whose numbers are days, at round moments."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=9)  # type: ignore[no-untyped-call]  # no types
    axes.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]  # no types
    axes.xaxis.set_major_formatter(formatter)
    axes.xaxis.get_offset_text().set_fontproperties(font(7))
    axis_label(axes, "x", "when the run began (UTC)", "")


def scale_axis(
    axes: Axes,
    which: str,
    values: Sequence[float],
    *,
    zero: bool = True,
    deciding: Sequence[float] = (),
) -> bool:
    """Make an axis linear or, where the values span too much, logarithmic.

    Args:
        axes: Its axes.
        which: ``x`` or ``y``.
        values: All values that it must show, in its own unit.
        zero: Whether a linear axis starts at zero, so that lengths can be compared; otherwise it
            starts at the smallest value and turns logarithmic ten times earlier.
        deciding: The values whose span decides, where not all of ``values`` do.

    Returns:
        Whether the axis is logarithmic.
    """
    axis = axes.xaxis if which == "x" else axes.yaxis
    set_limits = axes.set_xlim if which == "x" else axes.set_ylim
    positive = [value for value in values if value > 0]
    low, high = min(positive, default=0.5), max(positive, default=1.0)
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    spread = [value for value in deciding or positive if value > 0] or [1.0]
    log = max(spread) > min(spread) * (LOG_FROM if zero else LOG_FROM / 10)
    if log:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        margin = max(1.05, (high / low) ** 0.04)
        set_limits(low / margin, high * margin)
        decades = math.log10(high / low)
        if decades < 0.8:
            axis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
        else:
            subs = (1.0, 2.0, 5.0) if decades < 3 else (1.0,)
            axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=12))
        axis.set_minor_formatter(NullFormatter())
    else:
        margin = 0.06 * ((high - low) or high)
        set_limits(0 if zero else low - margin, high * 1.06 if zero else high + margin)
        axis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(plain)
    return log


def mark(label: str, colour: str, marker: str, *, filled: bool = True) -> Line2D:
    """Return a legend entry: a marker without a line."""
    return Line2D(
        [],
        [],
        linestyle="none",
        marker=marker,
        markersize=6,
        markeredgecolor=colour,
        markerfacecolor=colour if filled else "white",
        label=label,
    )
