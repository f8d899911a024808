"""Resident memory of this process: rises over a baseline, from the best source there is."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

_PROC = Path("/proc/self")
#: Value that resets the peak resident size, see proc_pid_clear_refs(5).
_RESET_PEAK = "5"
_OURS_AT_LEAST = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """Resident size now and at its peak since the last reset; ``None`` if unreadable."""

    now: int | None
    peak: int | None


class ResidentSource(Protocol):
    """Where resident sizes come from."""

    name: str

    def read(self) -> Resident:
        """Read both sizes, in bytes."""

    def reset_peak(self) -> None:
        """Let the peak start again from the size now, where that is possible."""


class ProcStatus:
    """``VmRSS`` and ``VmHWM`` of ``/proc/self/status``, the peak reset by ``clear_refs``.

    Not ``ru_maxrss``, which a process inherits from its parent through exec; not PSS or USS, which
    depend on whether a neighbour maps the same libraries.
    """

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc
        self._resets = True
        self.name = "VmHWM after clear_refs"
        try:
            self.reset_peak()
        except OSError as error:
            # Some containers forbid it. The peak then includes what came before the session.
            self._resets = False
            self.name = (
                f"VmHWM without reset ({error.strerror}); may include imports and our own checks"
            )

    def read(self) -> Resident:
        """Read both sizes, in bytes."""
        sizes: dict[bytes, int] = {}
        for line in (self._proc / "status").read_bytes().splitlines():
            name, _, rest = line.partition(b":")
            if name in (b"VmRSS", b"VmHWM"):
                sizes[name] = int(rest.split()[0]) * 1024
        return Resident(now=sizes.get(b"VmRSS"), peak=sizes.get(b"VmHWM"))

    def reset_peak(self) -> None:
        """Let the peak start again from the size now."""
        if self._resets:
            (self._proc / "clear_refs").write_text(_RESET_PEAK, encoding="ascii")


class PsutilSource:
    """psutil's ``rss`` and, on Windows, ``peak_wset``, which can't be reset."""

    def __init__(self) -> None:
        import psutil  # optional in a measured interpreter

        self._process: Any = psutil.Process()
        has_peak = hasattr(self._process.memory_info(), "peak_wset")
        self.name = "psutil peak_wset, never reset" if has_peak else "psutil rss, no peak"

    def read(self) -> Resident:
        """Read both sizes, in bytes."""
        info = self._process.memory_info()
        return Resident(now=info.rss, peak=getattr(info, "peak_wset", None))

    def reset_peak(self) -> None:
        """Do nothing: this source has no reset."""


class RusageSource:
    """``ru_maxrss``: a peak that can't be reset, and no current size."""

    def __init__(self) -> None:
        import resource  # POSIX only

        self._resource = resource
        # kilobytes on Linux and the BSDs, bytes on macOS: getrusage(2) of each.
        self._factor = 1 if sys.platform == "darwin" else 1024
        self.name = "ru_maxrss, never reset"

    def read(self) -> Resident:
        """Read the peak, in bytes; it stands for the current size too, as an upper bound."""
        usage = self._resource.getrusage(self._resource.RUSAGE_SELF)
        peak = usage.ru_maxrss * self._factor
        return Resident(now=peak, peak=peak)

    def reset_peak(self) -> None:
        """Do nothing: this source has no reset."""


class NoSource:
    """Nothing tells the resident size.

    Args:
        reason: Why; empty where the system does not offer it.
    """

    def __init__(self, reason: str = "") -> None:
        absent = f"{sys.platform} offers neither /proc, psutil nor getrusage here"
        self.name = f"none: {reason or absent}"

    def read(self) -> Resident:
        """Return that nothing is known."""
        return Resident(now=None, peak=None)

    def reset_peak(self) -> None:
        """Do nothing."""


def give_back_free_memory() -> None:
    """Give free parts of the heap back to the system, where the C library can (glibc).

    A session would take them again without a rise of the resident size. How much is free depends
    on how the worker began: one that compiles its modules frees more than one that loads them.
    """
    import ctypes  # costs milliseconds, and only an open case needs it

    with contextlib.suppress(OSError, AttributeError, TypeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def best_source(proc: Path = _PROC) -> ResidentSource:
    """Return the best source that works here."""
    if os.access(proc / "status", os.R_OK):
        return ProcStatus(proc)
    for source in (PsutilSource, RusageSource):
        try:
            return source()
        except ImportError:
            continue
    return NoSource()


class MemoryWatch:
    """Follows the resident size over the regions in which the case works.

    What our own code takes between those regions (durations on their way to the host, looking at
    outputs) is moved into the baseline: it depends on how many samples were taken, so for a small
    model it would drown what is measured.

    Args:
        source: Where sizes come from.
    """

    def __init__(self, source: ResidentSource) -> None:
        self._source = source
        # Everything before the baseline counts for the process, never for the case.
        self.process_peak = source.read().peak
        source.reset_peak()
        self.baseline = source.read().now
        self._last = self.baseline
        self._peak_rise: int | None = None

    @property
    def source(self) -> str:
        """Name of the source."""
        return self._source.name

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what happens inside for the case."""
        before = self._source.read()
        self.process_peak = _larger(self.process_peak, before.peak)
        self._move_baseline(before.now)
        self._source.reset_peak()
        try:
            yield
        finally:
            after = self._source.read()
            peak = _larger(after.peak, after.now)
            self.process_peak = _larger(self.process_peak, peak)
            self._peak_rise = _larger(self._peak_rise, self._above(peak))
            self._last = after.now

    def rise(self) -> int | None:
        """Return how far the size was above the baseline after the last region, in bytes."""
        return self._above(self._last)

    def peak_rise(self) -> int | None:
        """Return the highest point above the baseline in all regions so far, in bytes."""
        return self._peak_rise

    def _move_baseline(self, now: int | None) -> None:
        if now is None or self._last is None or self.baseline is None:
            return
        # Less than this is noise of the kernel's counters, which must not add up over the blocks.
        if abs(now - self._last) >= _OURS_AT_LEAST:
            # Threads of a library may give back in between what the case had taken.
            self.baseline = max(0, self.baseline + now - self._last)

    def _above(self, size: int | None) -> int | None:
        if size is None or self.baseline is None:
            return None
        return max(0, size - self.baseline)


def _larger(first: int | None, other: int | None) -> int | None:
    if first is None or other is None:
        return other if first is None else first
    return max(first, other)
