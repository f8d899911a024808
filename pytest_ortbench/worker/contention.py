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
        throttled_ns: Time for which a cgroup of this process was throttled, of the level that was
            most; ``None`` if unreadable.
    """

    steal_ticks: int | None
    total_ticks: int | None
    throttled_ns: int | None


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

    def _throttled(self) -> int | None:
        found = []
        for path, name, factor in self._throttle:
            try:
                lines = path.read_text(encoding="ascii").splitlines()
            except OSError:
                continue
            found += [int(line.split()[1]) * factor for line in lines if line.startswith(name)]
        return max(found, default=None)


def difference(before: int | None, after: int | None) -> int | None:
    """Return how much a counter grew, ``None`` if it was unreadable at either end."""
    return None if before is None or after is None else after - before
