"""What options of the energy pass say."""

from __future__ import annotations

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.option_text import OptionText, read_seconds

_SHORTEST_WINDOW_S = 5.0


def read_energy_window(written: OptionText) -> float:
    """Read the seconds of a window of energy: 5 at least, below which no counter is believed."""
    value = read_seconds(written)
    if value < _SHORTEST_WINDOW_S:
        rule = "Write 5 or more: counters of energy move ten times a second at most"
        raise UsageError(f"{written.last!r} is too short", place=written.place, hint=rule)
    return value
