"""What took CPU time away from this process: the hypervisor's steal, the cgroup's throttling."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.cpus import throttle_files

_ROOT = Path("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Counters at one moment; only differences mean anything.

    Attributes:
        steal_ticks: Ticks that the hypervisor took, all CPUs together; ``None`` if unreadable.
        total_ticks: All ticks of all CPUs; ``None`` if unreadable.
        throttled_ns: Time for which the cgroups of this process were throttled, a level each,
            always in the same order; ``None`` for one that is unreadable.
    """

    steal_ticks: int | None
    total_ticks: int | None
    throttled_ns: tuple[int | None, ...]


class ContentionMeter:
    """Reads the counters, outside timed regions.

    Args:
        root: Where ``proc`` and ``sys`` are; tests pass a folder.
    """

    def __init__(self, root: Path = _ROOT) -> None:
        self._stat = root / "proc/stat"
        self._throttle = throttle_files(root)

    def read(self) -> Contention:
        """Read all counters now."""
        steal, total = self._ticks()
        return Contention(steal_ticks=steal, total_ticks=total, throttled_ns=self._throttled())

    def _ticks(self) -> tuple[int, int] | tuple[None, None]:
        try:
            with self._stat.open("rb") as file:
                fields = file.readline().split()
        except OSError:
            return None, None
        # cpu user nice system idle iowait irq softirq steal [guest guest_nice]; guest time is
        # contained in user.
        if len(fields) < 9 or fields[0] != b"cpu":
            return None, None
        ticks = [int(field) for field in fields[1:9]]
        return ticks[7], sum(ticks)

    def _throttled(self) -> tuple[int | None, ...]:
        return tuple(_counter(path, name, factor) for path, name, factor in self._throttle)


def _counter(path: Path, name: str, factor: int) -> int | None:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * factor for line in lines if line.startswith(name)), None)


def counter_growth(before: int | None, after: int | None) -> int | None:
    """Return how much a counter grew, ``None`` if it was unreadable at either end."""
    return None if before is None or after is None else after - before


def most_growth(before: tuple[int | None, ...], after: tuple[int | None, ...]) -> int | None:
    """Return how much the counter grew that grew most, ``None`` if none was readable.

    Each is compared with itself: a level above may have counted for days what has long been over.
    A process waits while any of its levels is throttled, and throttled levels overlap in time, so
    the most of them is the least that it waited.

    Args:
        before: One counter a level.
        after: The same, later.
    """
    grown = (counter_growth(*pair) for pair in zip(before, after, strict=True))
    return max((growth for growth in grown if growth is not None), default=None)
