"""Intervals as people read them: digits, or the word for one that says nothing.

Every report asks here, so that table, page and summary agree. Documents and flat rows keep the
numbers.
"""

from __future__ import annotations

from collections.abc import Callable

#: What stands for the digits of an interval that is wider than what it is about.
UNSTABLE = "unstable"


def is_unstable(value: float, low: float | None, high: float | None) -> bool:
    """Whether an interval is wider than its value, so that not even the first digit is known.

    Of what may be negative, as a growth is, that says nothing, and digits are shown.

    Args:
        value: The estimate.
        low: Lower bound of its interval, ``None`` where none can be given.
        high: Upper bound, likewise.
    """
    if low is None or high is None or low < 0:
        return False
    return high - low > value > 0


def bounds_text(
    value: float, low: float | None, high: float | None, write: Callable[[float], str]
) -> str:
    """Return ``[3.18, 3.25]``, or that it is unstable; empty where there is no interval.

    Args:
        value: The estimate.
        low: Lower bound, ``None`` where none can be given.
        high: Upper bound, likewise.
        write: Writes one bound.
    """
    if low is None or high is None:
        return ""
    return UNSTABLE if is_unstable(value, low, high) else f"[{write(low)}, {write(high)}]"


def with_interval_text(
    value: float, low: float | None, high: float | None, write: Callable[[float], str], text: str
) -> str:
    """Return a value with its interval: ``3.21 ms [3.18, 3.25]``, ``14 ms (unstable)``.

    Args:
        value: The estimate.
        low: Lower bound, ``None`` where none can be given.
        high: Upper bound, likewise.
        write: Writes one bound.
        text: The value as it is written.
    """
    interval = bounds_text(value, low, high, write)
    if is_unstable(value, low, high):
        return f"{text} ({interval})"
    return f"{text} {interval}".rstrip()
