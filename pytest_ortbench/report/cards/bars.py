"""Bars of a card: how long each is drawn, its interval, and what stands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.report.escape import one_line

#: Upper end of an interval that is drawn whole, as a multiple of the longest bar.
_LONGEST_WHISKER = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class BarText:
    """What one bar says.

    Attributes:
        label: What it stands for: ``fp16/openvino:GPU``.
        kind: How it looks: ``best``, ``plain``, ``doubt`` or ``faint``.
        quantity: Its length and interval; ``None`` where there is no number.
        value: The number in words: ``3.21 ms [3.18, 3.25]``.
        mark: What stands beside the number: ``recommended``.
        note: Why it is faint, in a word.
        is_flag: Whether that word is a flag, which the page explains.
    """

    label: str
    kind: str
    quantity: Quantity | None
    value: str = ""
    mark: str = ""
    note: str = ""
    is_flag: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar as it is drawn: ``length``, ``low`` and ``high`` are per cent of the width.

    They are ``None`` where there is no number, or no interval. The interval of one that ``is_cut``
    goes on behind the edge.
    """

    text: BarText
    length: float | None = None
    low: float | None = None
    high: float | None = None
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Bars with a common scale; ``left_out`` further ones are in a table alone."""

    heading: str
    bars: tuple[Bar, ...] = field(default=())
    left_out: int = 0


def draw_bars(heading: str, texts: Sequence[BarText], *, left_out: int = 0) -> Bars:
    """Give bars their lengths: the longest one, or its interval, takes the whole width."""
    quantities = [text.quantity for text in texts if text.quantity is not None]
    longest = max((quantity.value for quantity in quantities), default=0.0)
    ends = (quantity.value if quantity.high is None else quantity.high for quantity in quantities)
    whole = max(longest, min(max(ends, default=0.0), longest * _LONGEST_WHISKER))
    return Bars(
        heading=one_line(heading),
        bars=tuple(_bar(text, whole) for text in texts),
        left_out=left_out,
    )


def _bar(text: BarText, whole: float) -> Bar:
    quantity = text.quantity
    if quantity is None or not whole > 0:
        return Bar(text=text)

    def share(value: float) -> float:
        return round(100 * min(1.0, max(0.0, value / whole)), 2)

    if quantity.low is None or quantity.high is None:
        return Bar(text=text, length=share(quantity.value))
    return Bar(
        text=text,
        length=share(quantity.value),
        low=share(quantity.low),
        high=share(quantity.high),
        is_cut=quantity.high > whole,
    )
