"""From readings of a meter to the energy of a window: pure functions, no clock, no device.

An energy counter does not move for about 100 ms at a time, so its difference over arbitrary ends
is wrong by up to two ticks. A window therefore reaches from a reading at which the counter has
just moved to another such one, and the inferences are counted between those moments. Polled power
is integrated over the same window, to check one by the other.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

#: A tick is placed between two readings. Where these are further apart than this many usual gaps
#: (the thread that polls was held up), another tick serves better.
_LONGEST_GAP = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a meter showed at one moment.

    Attributes:
        at_ns: When, on the clock of the load.
        energy_j: Counter since some start of its own, wrap-around undone; ``None`` without one.
        power_w: Power; ``None`` if it is not read.
    """

    at_ns: int
    energy_j: float | None = None
    power_w: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A window between two readings.

    Attributes:
        start_ns: Its first moment.
        end_ns: Its last moment.
        counter_j: Difference of the counter; ``None`` if it has none that moves.
        integral_j: Integral of power; ``None`` if it was not read throughout.
        ticks: How often the counter moved in it.
    """

    start_ns: int
    end_ns: int
    counter_j: float | None
    integral_j: float | None
    ticks: int

    @property
    def duration_ns(self) -> int:
        """Length of the window."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """What a window needs to be believed.

    Attributes:
        seconds: Length.
        ticks: Moves of the counter, if there is one.
        inferences: Inferences, those at its ends in part.
    """

    seconds: float = 5.0
    ticks: int = 50
    inferences: float = 32.0

    def met_by(self, span: Span, inferences: float) -> bool:
        """Return whether a window is long enough in every respect."""
        enough_ticks = span.counter_j is None or span.ticks >= self.ticks
        return (
            span.duration_ns >= self.seconds * 1e9
            and enough_ticks
            and inferences >= self.inferences
        )


def span_of(readings: Sequence[Reading], *, from_ns: int, to_ns: int) -> Span | None:
    """Return the longest window between two moments that a meter can tell.

    Args:
        readings: In order of time.
        from_ns: Nothing before counts: the load had not settled.
        to_ns: Nothing after counts: the load was over.

    Returns:
        The window, from tick to tick where there is a counter that moves, else from reading to
        reading; ``None`` with fewer than two of those.
    """
    times = [reading.at_ns for reading in readings]
    low, high = bisect_left(times, from_ns), bisect_right(times, to_ns)
    ticks = _ticks(readings, low, high)
    if len(ticks) >= 2:
        start, end = _sharp(times, ticks)
        moved = sum(start < tick <= end for tick in ticks)
        first, last = readings[start].energy_j, readings[end].energy_j
        assert first is not None
        assert last is not None
        counter_j: float | None = last - first
    elif high - low >= 2:
        start, end, moved, counter_j = low, high - 1, 0, None
    else:
        return None
    return Span(
        start_ns=times[start],
        end_ns=times[end],
        counter_j=counter_j,
        integral_j=_integral(readings[start : end + 1]),
        ticks=moved,
    )


def inferences_between(
    ends_ns: Sequence[int], *, began_ns: int, start_ns: int, end_ns: int
) -> float:
    """Count the inferences of a closed loop between two moments, those at the ends in part.

    Args:
        ends_ns: When each ended; the next one began at once.
        began_ns: When the first one began.
        start_ns: First moment.
        end_ns: Last moment.
    """

    def done_at(moment: int) -> float:
        whole = bisect_right(ends_ns, moment)
        if whole == len(ends_ns):
            return float(whole)
        since = ends_ns[whole - 1] if whole else began_ns
        return whole + max(0, moment - since) / (ends_ns[whole] - since)

    return done_at(end_ns) - done_at(start_ns)


def _ticks(readings: Sequence[Reading], low: int, high: int) -> list[int]:
    """Indices of readings at which the counter had moved since the reading before."""
    indices = []
    for index in range(max(low, 1), high):
        before, now = readings[index - 1].energy_j, readings[index].energy_j
        if before is not None and now is not None and now != before:
            indices.append(index)
    return indices


def _sharp(times: Sequence[int], ticks: Sequence[int]) -> tuple[int, int]:
    """First and last tick that stand between two readings close to each other."""
    gaps = sorted(times[tick] - times[tick - 1] for tick in ticks)
    longest = _LONGEST_GAP * gaps[len(gaps) // 2]
    sharp = [tick for tick in ticks if times[tick] - times[tick - 1] <= longest]
    return (sharp[0], sharp[-1]) if len(sharp) >= 2 else (ticks[0], ticks[-1])


def _integral(readings: Sequence[Reading]) -> float | None:
    """Trapezoids below polled power, in joules."""
    total = 0.0
    for before, now in itertools.pairwise(readings):
        if before.power_w is None or now.power_w is None:
            return None
        total += (before.power_w + now.power_w) / 2 * (now.at_ns - before.at_ns) * 1e-9
    return total if len(readings) >= 2 else None
