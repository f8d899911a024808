"""One printed page about a purchase: the answer in large print, the bill, a picture, notes."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pytest_ortbench.fleet.procurement.award import Sureness
from pytest_ortbench.fleet.report.decision import Bill, Decision
from pytest_ortbench.fleet.report.procurement import Procurement
from pytest_ortbench.fleet.report.procurement_figures import draw_costs
from pytest_ortbench.report.figures.style import COLOURS, FAINT, GRID, INK, drawable, font

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Width and height of A4, its margin, and the width between, in points.
_WIDTH, _HEIGHT, _MARGIN = 595.0, 842.0, 42.0
_INNER = _WIDTH - 2 * _MARGIN
_POINTS_PER_INCH = 72

#: Sizes of letters, and the height of a line as a multiple of them.
_TITLE, _ANSWER, _TEXT, _SMALL, _LINE = 18.0, 11.0, 8.5, 7.5, 1.4
#: How much larger letters are where there is room, the largest first.
_ZOOMS = (1.25, 1.15, 1.07, 1.0)
#: Characters of a line whose letters have a size of one point, plain and bold.
_CHARACTERS, _BOLD_CHARACTERS = 1.82 * _INNER, 1.56 * _INNER
#: Heights of a row of a table, of a row of the picture (least and most), and of what is around it.
_ROW, _BAR, _AROUND = 13.0, (14.0, 40.0), 44.0
#: Lines of notes that a page has at least.
_LEAST_NOTES = 5
#: Blank between parts, and at most where the page has room left.
_GAP, _MOST_GAP = 10.0, 34.0
#: Most characters of a cell: in the columns that hold names, which come first, and in those that
#: hold numbers; and blank between two columns, in characters.
_NAMES, _MOST, _BETWEEN = (9, 14, 40), 30, 3
_COLOURS = {Sureness.CLEAR: COLOURS[2], Sureness.PROBABLE: COLOURS[2]}


def purchase_pdf(page: Decision, shown: Procurement) -> bytes:
    """Draw the page as a PDF of exactly one page; the same numbers give the same bytes."""
    data = io.BytesIO()
    draw_purchase(page, shown).savefig(data, format="pdf", metadata={"CreationDate": None})
    return data.getvalue()


def draw_purchase(page: Decision, shown: Procurement) -> Figure:
    """Draw the page as a figure of the size of A4."""
    made = Figure(
        figsize=(_WIDTH / _POINTS_PER_INCH, _HEIGHT / _POINTS_PER_INCH), facecolor="white"
    )
    axes = made.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, _WIDTH)
    axes.set_ylim(_HEIGHT, 0)
    axes.axis("off")
    foot = _HEIGHT - _MARGIN - _SMALL * _LINE
    _write(axes, foot, [page.source], size=_SMALL, colour=FAINT)
    layout = _best_layout(page, foot - _TEXT)
    layout.draw(made, axes, shown)
    return made


def _best_layout(page: Decision, foot: float) -> _Layout:
    """Take the largest letters with which all has room, else as many bills as leave some notes."""
    count = len(page.bills)
    for pictures in dict.fromkeys((count, 1)):
        for zoom in _ZOOMS:
            layout = _Layout(page, zoom, foot, pictures)
            if layout.is_whole:
                return layout
    for bills in range(count, 0, -1):
        fewer = replace(page, bills=page.bills[:bills], more=page.more + count - bills)
        for pictures in (1, 0):
            layout = _Layout(fewer, 1.0, foot, pictures)
            if layout.note_lines >= _LEAST_NOTES:
                return layout
    return layout


class _Layout:
    """All parts of the page with letters of one size: whether they fit, and how they are drawn."""

    def __init__(self, page: Decision, zoom: float, foot: float, pictures: int) -> None:
        self._page = page
        self._text, self._title, self._small = _TEXT * zoom, _TITLE * zoom, _SMALL * zoom
        self._why = _lines(page.why, self._text)
        self._asked = _lines(page.asked, self._text)
        self._bills = [
            _BillLayout(bill, zoom, with_picture=index < pictures)
            for index, bill in enumerate(page.bills)
        ]
        line = self._text * _LINE
        self._prices = [text for price in page.prices for text in _lines(f"• {price}", self._text)]
        self._measured = [
            text for fact in page.measured for text in _lines(f"• {fact}", self._small)
        ]
        above = self._title * _LINE + (len(self._why) + len(self._asked)) * line
        headings = 3 if self._measured else 2
        below = (len(self._prices) + headings) * line + len(self._measured) * self._small * _LINE
        room = foot - _MARGIN - above - below - sum(bill.height for bill in self._bills)
        least = sum(bill.least for bill in self._bills) + 4 * _GAP
        self._notes, self.is_whole = _fitting(page, room - least, self._text)
        self.note_lines = len(self._notes)
        self._gap, self._bar = _spread(self._bills, room - len(self._notes) * line)

    def draw(self, made: Figure, axes: Axes, shown: Procurement) -> None:
        """Draw all parts from the top to the foot."""
        top = _write(axes, _MARGIN, [self._page.title], size=self._title, bold=True)
        top = _write(axes, top, self._why, size=self._text)
        top = _write(axes, top, self._asked, size=self._text, colour=FAINT) + self._gap
        for bill in self._bills:
            top = bill.draw(made, axes, top, self._bar, shown) + self._gap
        top = _write(axes, top, ["Prices and power"], size=self._text, bold=True)
        top = _write(axes, top, self._prices, size=self._text) + self._gap
        if self._measured:
            top = _write(axes, top, ["What was measured"], size=self._text, bold=True)
            top = _write(axes, top, self._measured, size=self._small) + self._gap
        top = _write(axes, top, ["What is not proven"], size=self._text, bold=True)
        _write(axes, top, self._notes, size=self._text)


class _BillLayout:
    """One bill: how high its parts are, and how they are drawn."""

    def __init__(self, bill: Bill, zoom: float, *, with_picture: bool) -> None:
        self.bill = bill
        self._text, self._size = _TEXT * zoom, _ANSWER * zoom
        self._answer = _lines(bill.answer, self._size, bold=True)
        self.height = (self._text + len(self._answer) * self._size) * _LINE
        self._caption = _lines(bill.caption, _SMALL)
        self.height += _ROW * (len(bill.rows) + 1.6 if bill.rows else 0)
        self.height += len(self._caption) * _SMALL * _LINE
        #: Rows of its picture.
        self.rows = len(bill.rows) if with_picture else 0

    @property
    def least(self) -> float:
        """The least height of its picture, with a gap."""
        return self.picture(_BAR[0]) + _GAP

    def picture(self, bar: float) -> float:
        """The height of its picture with rows of some height."""
        return _AROUND + bar * self.rows if self.rows else 0.0

    def draw(self, made: Figure, axes: Axes, top: float, bar: float, shown: Procurement) -> float:
        """Draw it, and return where the next part begins."""
        bill = self.bill
        start = top
        top = _write(axes, top, [bill.heading], size=self._text, colour=FAINT)
        top = _write(axes, top, self._answer, size=self._size, bold=True)
        colour = _COLOURS.get(bill.sureness, COLOURS[1])
        axes.add_patch(
            Rectangle((_MARGIN - 10, start), 2.5, top - start - 2, color=colour, linewidth=0)
        )
        if not bill.rows:
            return top
        top = _table(axes, top + 0.3 * _ROW, bill)
        top = _write(axes, top - 0.3 * _ROW, self._caption, size=_SMALL, colour=FAINT)
        if not self.rows:
            return top
        height = self.picture(bar)
        inner = (
            (_MARGIN + 80) / _WIDTH,
            1 - (top + height - 30) / _HEIGHT,
            (_INNER - 150) / _WIDTH,
            (height - _AROUND) / _HEIGHT,
        )
        draw_costs(made.add_axes(inner), bill.tender, bill.offers, shown)
        return top + height


def _spread(bills: Sequence[_BillLayout], room: float) -> tuple[float, float]:
    """Return the gap between parts, and the height of a picture's row, so that the page is full."""
    rows = sum(layout.rows for layout in bills)
    pictures = [layout for layout in bills if layout.rows]
    gaps = len(bills) + 3
    free = room - _AROUND * len(pictures) - _GAP * gaps
    bar = min(_BAR[1], max(_BAR[0], free / rows)) if rows else 0.0
    rest = max(0.0, free - bar * rows)
    return min(_MOST_GAP, _GAP + rest / gaps), bar


def _fitting(page: Decision, room: float, size: float) -> tuple[list[str], bool]:
    """Return the lines of what is not proven that there is room for, and whether these are all."""
    lines: list[str] = []
    texts = list(page.not_proven)
    if page.more:
        texts.insert(0, f"{page.more} further workloads are in the whole comparison.")
    for index, text in enumerate(texts):
        more = _lines(f"• {text}", size)
        is_last = index == len(texts) - 1
        if (len(lines) + len(more) + (not is_last)) * size * _LINE > room:
            rest = f"• {len(texts) - index} further notes are in the whole comparison."
            return [*lines, rest], False
        lines += more
    return lines, True


def _lines(text: str, size: float, *, bold: bool = False) -> list[str]:
    room = int((_BOLD_CHARACTERS if bold else _CHARACTERS) / size)
    return textwrap.wrap(text, room, break_on_hyphens=False)


def _table(axes: Axes, top: float, bill: Bill) -> float:
    """Write a bill, and return where the next part begins."""
    columns = _Columns(bill)
    for column, heading in enumerate(bill.headings):
        columns.write(axes, column, top, heading, colour=FAINT)
    axes.plot(
        [_MARGIN, _MARGIN + _INNER], [top + _ROW - 2] * 2, color=GRID, linewidth=0.8, zorder=1
    )
    for row in bill.rows:
        top += _ROW
        for column, text in enumerate(row):
            # Numbers in bold would need more room than there is.
            bold = row[0] in ("best", "probably") and column < 2
            columns.write(axes, column, top, text, bold=bold)
    return top + 1.3 * _ROW


class _Columns:
    """The columns of a bill: as wide as their longest cell, in letters that all have room with."""

    def __init__(self, bill: Bill) -> None:
        most = (*_NAMES, *(_MOST for _ in bill.headings[len(_NAMES) :]))
        columns = zip(bill.headings, *bill.rows, strict=True)
        self._widths = [
            min(room, max(map(len, cells))) for room, cells in zip(most, columns, strict=True)
        ]
        needed = sum(self._widths) + _BETWEEN * (len(self._widths) - 1)
        self._size = min(_SMALL, _CHARACTERS / needed)
        character = _INNER / (_CHARACTERS / self._size)
        spare = (_INNER - needed * character) / max(1, len(self._widths) - 1)
        self._edges = []
        left = _MARGIN
        for column, width in enumerate(self._widths):
            right = left + width * character
            self._edges.append(left if column < len(_NAMES) else right)
            left = right + _BETWEEN * character + spare

    def write(
        self,
        axes: Axes,
        column: int,
        top: float,
        text: str,
        *,
        bold: bool = False,
        colour: str = INK,
    ) -> None:
        """Write one cell: names from the left, numbers to the right."""
        axes.text(
            self._edges[column],
            top,
            drawable(text, self._widths[column]),
            va="top",
            ha="left" if column < len(_NAMES) else "right",
            color=colour,
            fontproperties=font(self._size, bold=bold),
        )


def _write(
    axes: Axes,
    top: float,
    lines: Sequence[str],
    *,
    size: float,
    bold: bool = False,
    colour: str = INK,
) -> float:
    """Write lines below each other, and return where the next one would begin."""
    for line in lines:
        axes.text(
            _MARGIN,
            top,
            drawable(line, 2 * int(_CHARACTERS / size)),
            va="top",
            ha="left",
            color=colour,
            fontproperties=font(size, bold=bold),
        )
        top += size * _LINE
    return top
