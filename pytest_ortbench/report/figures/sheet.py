"""One printed page for whoever decides: the cards of a run or of a comparison on A4."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pytest_ortbench.report.cards.bars import Bar, Bars
from pytest_ortbench.report.cards.card import AnswerCard
from pytest_ortbench.report.cards.sheet import Paragraphs, Sheet
from pytest_ortbench.report.figures.style import COLOURS, FAINT, GRID, INK, drawable, font

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Width and height of A4, its margin, and the width of text and bars between, in points.
_WIDTH, _HEIGHT, _MARGIN = 595.0, 842.0, 40.0
_INNER = _WIDTH - 2 * _MARGIN
_POINTS_PER_INCH = 72

#: Heights in points: of the heading, of a line of a lead, of a heading of bars, of a bar, between
#: cards, and of what stands below them.
_HEAD, _LEAD, _GROUP, _BAR, _GAP, _FOOT = 58.0, 14.0, 13.0, 12.0, 16.0, 46.0
#: Where bars begin and end, from the left margin.
_BARS_FROM, _BARS_TO = 175.0, 345.0
#: Characters of a line of a lead, of a label, of what stands behind a bar, and of a note.
_LEAD_CHARACTERS, _LABEL_CHARACTERS, _VALUE_CHARACTERS, _NOTE_CHARACTERS = 84, 33, 40, 125
#: And of what stands below the cards.
_REST_CHARACTERS = 110
_TITLE_PT, _LEAD_PT, _TEXT_PT, _SMALL_PT = 15.0, 10.0, 8.0, 7.0

_FILLS = {"best": COLOURS[2], "plain": COLOURS[5], "doubt": COLOURS[4], "faint": GRID}


def sheet_pdf(sheet: Sheet) -> bytes:
    """Draw a sheet as a PDF of exactly one page; the same sheet gives the same bytes."""
    data = io.BytesIO()
    draw_sheet(sheet).savefig(data, format="pdf", metadata={"CreationDate": None})
    return data.getvalue()


def fitting(cards: Sequence[AnswerCard]) -> tuple[AnswerCard, ...]:
    """Return the cards that fit on the page, the first ones whole for as long as there is room.

    Where not all of them fit whole, each shows its first group of bars alone.
    """
    room = _HEIGHT - 2 * _MARGIN - _HEAD - _FOOT
    if sum(map(_height, cards)) <= room:
        return tuple(cards)
    kept: list[AnswerCard] = []
    for card in cards:
        short = replace(card, groups=card.groups[:1])
        room -= _height(short)
        if room < 0:
            break
        kept.append(short)
    return tuple(kept)


def draw_sheet(sheet: Sheet) -> Figure:
    """Draw a sheet as a figure of the size of A4."""
    made = Figure(
        figsize=(_WIDTH / _POINTS_PER_INCH, _HEIGHT / _POINTS_PER_INCH), facecolor="white"
    )
    axes = made.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, _WIDTH)
    axes.set_ylim(_HEIGHT, 0)
    axes.axis("off")
    _write(axes, 0, _MARGIN, sheet.title, size=_TITLE_PT, bold=True, limit=60)
    _write(axes, 0, _MARGIN + 24, sheet.facts, size=_TEXT_PT, colour=FAINT, limit=_NOTE_CHARACTERS)
    top = _MARGIN + _HEAD
    cards = fitting(sheet.cards)
    for card in cards:
        top = _card(axes, top, card)
    left_out = len(sheet.cards) - len(cards)
    more = f"{left_out} more in the whole report. " if left_out else ""
    lines = textwrap.wrap(more + sheet.note, _NOTE_CHARACTERS)[:3]
    foot = _HEIGHT - _MARGIN - len(lines) * _GROUP
    for index, line in enumerate(lines):
        _write(axes, 0, foot + index * _GROUP, line, size=_SMALL_PT, colour=FAINT, limit=200)
    if not left_out:
        _rest(axes, top, foot - _GAP, sheet.rest)
    return made


def rest_lines(rest: Sequence[Paragraphs], room: float) -> list[tuple[str, bool]]:
    """Return the lines that fit into a height, whole paragraphs of them, and which are headings.

    Args:
        rest: What could be written.
        room: Points from the first line to the last.
    """
    kept: list[tuple[str, bool]] = []
    for part in rest:
        heading = [("", False), (part.heading, True)] if kept else [(part.heading, True)]
        for text in part.texts:
            wrapped = [(line, False) for line in textwrap.wrap(text, _REST_CHARACTERS)]
            if (len(kept) + len(heading) + len(wrapped)) * _BAR <= room:
                kept += [*heading, *wrapped]
                heading = []
    return kept


def _rest(axes: Axes, top: float, bottom: float, rest: Sequence[Paragraphs]) -> None:
    """Write what there is to say beside the cards into the room that they leave."""
    for index, (line, is_heading) in enumerate(rest_lines(rest, bottom - top)):
        _write(
            axes,
            0,
            top + index * _BAR,
            line,
            size=_TEXT_PT,
            bold=is_heading,
            limit=2 * _REST_CHARACTERS,
        )


def _height(card: AnswerCard) -> float:
    lines = len(_lead_lines(card))
    return _GAP + lines * _LEAD + sum(_GROUP + _BAR * len(group.bars) for group in card.groups)


def _lead_lines(card: AnswerCard) -> list[str]:
    certainty = f" ({card.certainty})" if card.certainty else ""
    return textwrap.wrap(f"{card.lead.text}{certainty}", _LEAD_CHARACTERS)[:3]


def _card(axes: Axes, top: float, card: AnswerCard) -> float:
    """Draw a card and return where the next one begins."""
    colour = {"sure": COLOURS[2], "doubt": COLOURS[1]}.get(card.kind, FAINT)
    bottom = top + _height(card) - _GAP
    edge = (_MARGIN - 10, top - 2)
    axes.add_patch(Rectangle(edge, 2.5, bottom - top + 2, color=colour, linewidth=0))
    for line in _lead_lines(card):
        _write(axes, 0, top, line, size=_LEAD_PT, bold=True, limit=2 * _LEAD_CHARACTERS)
        top += _LEAD
    for group in card.groups:
        top = _group(axes, top, group)
    return top + _GAP


def _group(axes: Axes, top: float, group: Bars) -> float:
    more = f" ({group.left_out} more)" if group.left_out else ""
    heading = f"{group.heading}{more}"
    _write(axes, 0, top + 3, heading, size=_SMALL_PT, colour=FAINT, limit=90)
    top += _GROUP
    for bar in group.bars:
        _bar(axes, top, bar)
        top += _BAR
    return top


def _bar(axes: Axes, top: float, bar: Bar) -> None:
    text = bar.text
    bold, colour = text.kind == "best", FAINT if text.kind == "faint" else INK
    _write(
        axes,
        0,
        top,
        text.label,
        size=_TEXT_PT,
        bold=bold,
        colour=colour,
        limit=_LABEL_CHARACTERS,
    )
    words = " ".join(filter(None, (text.value, text.mark, text.note)))
    _write(
        axes,
        _BARS_TO + 10,
        top,
        words,
        size=_TEXT_PT,
        bold=bold,
        colour=colour,
        limit=_VALUE_CHARACTERS,
    )
    if bar.length is None:
        return
    start, middle = _MARGIN + _BARS_FROM, top + _BAR / 2 - 1
    scale = (_BARS_TO - _BARS_FROM) / 100
    fill = _FILLS[text.kind]
    axes.add_patch(Rectangle((start, middle - 3.5), bar.length * scale, 7, color=fill, linewidth=0))
    if bar.low is None or bar.high is None:
        return
    low, high = start + bar.low * scale, start + bar.high * scale
    axes.plot([low, high], [middle, middle], color=INK, linewidth=0.8)
    for end in (low,) if bar.is_cut else (low, high):
        axes.plot([end, end], [middle - 2.5, middle + 2.5], color=INK, linewidth=0.8)


def _write(
    axes: Axes,
    left: float,
    top: float,
    text: str,
    *,
    size: float,
    limit: int,
    bold: bool = False,
    colour: str = INK,
) -> None:
    axes.text(
        _MARGIN + left,
        top,
        drawable(text, limit),
        va="top",
        ha="left",
        color=colour,
        fontproperties=font(size, bold=bold),
    )
