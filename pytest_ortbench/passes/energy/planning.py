"""What options of the energy pass say."""

from __future__ import annotations

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.option_text import OptionText, read_seconds

_SHORTEST_WINDOW_S = 5.0

#: Windows of the pass, and what stands before each: idle time, and the beginning of the load that
#: does not count.
_WINDOWS, _BESIDE_A_WINDOW_S = 4, 6.0


def read_energy_window(written: OptionText) -> float:
    """Read the seconds of a window of energy: 5 at least, below which no counter is believed."""
    value = read_seconds(written)
    if value < _SHORTEST_WINDOW_S:
        raise UsageError(
            f"{written.last!r} is too short to measure energy, since energy counters change only a "
            "few times a second",
            place=written.place,
            hint="Write 5 seconds or more, e.g. 10s",
        )
    return value


def energy_takes_s(case: Case, worker_s: float) -> float:
    """Return about how long the energy pass takes: windows under load, idle time before each."""
    return worker_s + _WINDOWS * (case.sampling.energy_window_s + _BESIDE_A_WINDOW_S)
