"""The variants of each model as bars in the terminal: what to use is seen before it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.answers import ModelAnswer, answers
from pytest_ortbench.analysis.certainty import Certainty, certainty_of
from pytest_ortbench.analysis.headline import headline
from pytest_ortbench.analysis.sentences import with_interval
from pytest_ortbench.analysis.variant_bars import IN_ONE_WORKER, BatchBars, Rank, VariantBar
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable, one_line

#: Characters of a bar: fewer tell nothing, more are not compared any better.
_LEAST, _MOST = 12, 40
_INDENT, _GAP = "  ", "  "
#: Upper end of an interval that is drawn whole, as a multiple of the longest bar.
_LONGEST = 1.25


@dataclass(frozen=True, slots=True)
class _Ink:
    """What bars are drawn with.

    Attributes:
        sure: Up to the lower bound.
        likely: From there to the value.
        possible: From there to the upper bound.
        grey: Of what is not ranked.
        cut: Where an interval goes on.
    """

    sure: str
    likely: str
    possible: str
    grey: str
    cut: str


#: What the sentence itself says in the same words.
_SAID = (Certainty.NOISY, Certainty.ONE_WORKER, Certainty.ALONE)

_BLOCKS = _Ink("█", "▓", "░", "·", "»")
_PLAIN = _Ink("#", "=", "-", ".", ">")


def bar_lines(shown: ShownRun, *, width: int, encoding: str = "utf-8") -> list[str]:
    """Return for each model with something to compare one sentence and its variants as bars.

    Args:
        shown: Any run.
        width: Characters that a line may have.
        encoding: Of the stream that the lines go to.

    Returns:
        Lines without line ends; none where no model has two variants, or bars have no room.
    """
    ink = _PLAIN if encodable(_BLOCKS.sure, encoding) != _BLOCKS.sure else _BLOCKS
    blocks = [
        lines
        for answer in answers(shown.run, shown.summaries)
        if (lines := _block(answer, width, encoding, ink))
    ]
    if not blocks:
        return []
    key = f"{ink.sure} up to the lower end of the 95 % interval, {ink.likely} to the value, "
    key += f"{ink.possible} to the upper end; {ink.grey} not ranked"
    lines = [line for block in blocks for line in block]
    return [*lines, encodable(f"{_INDENT}{key}", encoding)] if len(key) < width else lines


def _block(answer: ModelAnswer, width: int, encoding: str, ink: _Ink) -> list[str]:
    groups = [group for group in answer.bars if len(group.bars) > 1]
    if not groups or answer.ranked == 0:
        return []
    certainty = certainty_of(answer)
    is_alone = certainty is Certainty.ALONE
    label = "" if certainty in _SAID else f" ({certainty.value})"
    lines = [one_line(f"{headline(answer)}{label}")]
    for group in groups:
        if len(answer.bars) > 1:
            lines.append(f"{_INDENT}batch {group.batch}")
        drawn = _drawn(group, width, encoding, ink, is_alone=is_alone)
        if not drawn:
            return []
        lines += drawn
    return [encodable(line, encoding) for line in lines]


def _drawn(group: BatchBars, width: int, encoding: str, ink: _Ink, *, is_alone: bool) -> list[str]:
    """Return the bars of one batch size; none where there is no room for them."""
    labels = [encodable(one_line(bar.label), encoding) for bar in group.bars]
    times = [bar.quantity for bar in group.bars if bar.quantity is not None]
    values = [
        "" if bar.quantity is None else with_interval(bar.quantity, beside=times)
        for bar in group.bars
    ]
    beside = [_beside(bar, is_alone=is_alone) for bar in group.bars]
    texts = [_GAP.join(filter(None, pair)) for pair in zip(_aligned(values), beside, strict=True)]
    taken = max(map(len, labels)) + max(map(len, texts)) + len(_INDENT) + 2 * len(_GAP)
    room = min(_MOST, width - taken)
    if room < _LEAST:
        return []
    whole = _whole(group.bars)
    lines = [
        f"{_INDENT}{label}{_GAP}{_ink_of(bar, whole, room, ink)}{_GAP}{text}".rstrip()
        for label, bar, text in zip(_aligned(labels), group.bars, texts, strict=True)
    ]
    more = [f"{_INDENT}and {group.left_out} more in the table"] if group.left_out else []
    return [*lines, *more]


def _aligned(texts: Sequence[str]) -> list[str]:
    longest = max(map(len, texts))
    return [text.ljust(longest) for text in texts]


def _beside(bar: VariantBar, *, is_alone: bool) -> str:
    if bar.reason or bar.needs is not None:
        return bar.reason or (bar.needs.value if bar.needs else "")
    if bar.rank is not Rank.RECOMMENDED:
        return IN_ONE_WORKER if bar.one_worker else ""
    return "only one ranked" if is_alone else "recommended"


def _whole(bars: Sequence[VariantBar]) -> float:
    """Return the time that a bar of full length stands for."""
    quantities = [bar.quantity for bar in bars if bar.quantity is not None]
    longest = max((quantity.value for quantity in quantities), default=0.0)
    ends = (quantity.value if quantity.high is None else quantity.high for quantity in quantities)
    return max(longest, min(max(ends, default=0.0), longest * _LONGEST))


def _ink_of(bar: VariantBar, whole: float, room: int, ink: _Ink) -> str:
    """Return a bar of so many characters, blanks behind it."""
    quantity = bar.quantity
    if quantity is None or not whole:
        return " " * room

    def cells(value: float) -> int:
        return min(room, round(room * max(0.0, value) / whole))

    value = max(1, cells(quantity.value))
    if bar.rank is Rank.UNRANKED:
        return (ink.grey * value).ljust(room)
    low = value if quantity.low is None else min(value, cells(quantity.low))
    high = value if quantity.high is None else max(value, cells(quantity.high))
    text = ink.sure * low + ink.likely * (value - low) + ink.possible * (high - value)
    if quantity.high is not None and quantity.high > whole:
        text = text[:-1] + ink.cut
    return text.ljust(room)
