"""What may be said of a single value: numbers between two ends, words of a list, a longest text."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

#: The largest float of 64 bits: what is beyond it is infinite.
LARGEST_FLOAT = 1.7976931348623157e308
#: The largest integer of 64 bits.
LARGEST_INT = 2**63 - 1
#: The longest text. Native messages are the longest that we write, and are cut long before.
LONGEST_TEXT = 1_000_000
#: The longest name: a path can't be longer.
LONGEST_NAME = 4096


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers from ``low`` to ``high``, both included."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"must lie between {_spelt(self.low)} and {_spelt(self.high)}"


@dataclass(frozen=True, slots=True)
class Words:
    """One of some words."""

    known: Collection[str]

    def __str__(self) -> str:
        return f"must be one of {', '.join(map(repr, self.known))}"


@dataclass(frozen=True, slots=True)
class Text:
    """A text of up to so many characters."""

    longest: int = LONGEST_TEXT

    def __str__(self) -> str:
        return f"must have {self.longest:,} characters at most"


Bound: TypeAlias = "Numbers | Words | Text"

COUNT = Numbers(0, LARGEST_INT)
ANY = Numbers(-LARGEST_FLOAT, LARGEST_FLOAT)
WHOLE = Numbers(-LARGEST_INT - 1, LARGEST_INT)
NAME = Text(LONGEST_NAME)
RISE = Numbers(-(2**60), 2**60)
FROM_ONE = Numbers(1, LARGEST_INT)
SHARE = Numbers(0, 1)
#: Inferences of one worker. Their order statistics take the root of that many steps.
SAMPLES = Numbers(1, 10**10)
#: Longest time in nanoseconds: 104 days, and exact in the numbers of every JSON reader.
NANOSECONDS = Numbers(0, 2**53)


def _spelt(number: float) -> str:
    if number < 0:
        return f"-{_spelt(-number)}"
    names = {LARGEST_FLOAT: "1.8e308", LARGEST_INT: "2^63 − 1"}
    if number in names:
        return names[number]
    if isinstance(number, int) and number > 9999 and number & (number - 1) == 0:
        return f"2^{number.bit_length() - 1}"
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"
