"""What a column is that people see."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column that people see.

    Attributes:
        key: Its name on the command line: ``p50``.
        heading: What stands above it.
        about: What it is, in one sentence.
        row: Column of the flat row that holds its value in SI units; empty for text.
        metric: Its name in the registry of metrics, where it is one.
        interval_of: Name of the metric whose interval it shows; empty for anything else.
        beside: Name of the metric whose numbers it is read beside, and shares its unit with; empty
            for a unit of its own.
        rank: Order in which columns leave the first line of a row where there is no room, largest
            first; 0 stays.
        is_detail: Whether it is left out then. Others stand in further lines of the row.
        right: Whether it is aligned to the right.
    """

    key: str
    heading: str
    about: str
    row: str = ""
    metric: str = ""
    interval_of: str = ""
    beside: str = ""
    rank: int = 0
    is_detail: bool = False
    right: bool = True
