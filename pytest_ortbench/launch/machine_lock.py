"""One measurement at a time on a machine, whichever user and process makes it.

A run takes the lock before its first measurement and holds it until its end; the kernel gives it
back when the process dies. Processes that it starts measure under the same lock. Runs that wait
have their turn in the order in which they came. One that does not wait is seen by the run that it
measures beside, and takes no turn before those that wait.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.own_folder import is_alive, start_of
from pytest_ortbench.core.stop_signals import GaveUpWaiting, StoppedWaiting
from pytest_ortbench.launch.shared_file import is_locked, lock_at_once, open_shared
from pytest_ortbench.launch.waiting_line import WaitingLine

#: Names another file: runs that name different ones never wait for each other.
PLACE = "ORTBENCH_MACHINE_LOCK"
#: Tells the processes that a run starts that it holds the lock.
HELD = "ORTBENCH_MACHINE_LOCK_HELD"

_NAME = "ortbench-machine.lock"
#: Where every user may make a file, whatever the temporary folder of each of them is.
_FOLDERS = ("/run/lock", "/tmp")  # the file is opened without following links
_LONGEST_RECORD = 300
_PAUSE_S = 0.5
#: How often a machine that nobody uses is left to those that came before, who may be suspended.
_LEFT_TO_OTHERS = 20
#: How long until it is told again that a run waits.
_TOLD_AGAIN_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds the lock, as the file says; others may have written it.

    Attributes:
        pid: Its process; 0 if unknown.
        since: When it took the lock, in seconds of the clock.
        ends: When it expects to end, likewise; 0 if it said nothing.
    """

    pid: int = 0
    since: float = 0.0
    ends: float = 0.0

    def __str__(self) -> str:
        name = f"process {self.pid}" if self.pid else "another process"
        seconds = max(0.0, time.time() - self.since) if self.since else 0.0
        if seconds < 1:
            return name
        try:
            began = time.strftime("%H:%M:%S", time.localtime(self.since))
        except (OverflowError, ValueError, OSError):
            return name
        left, left_s = "", self.ends - time.time()
        if self.ends:
            about = f"about {_time_words(left_s)} left"
            left = f", {about if left_s > 1 else 'longer than it expected'}"
        return f"{name}, measuring since {began}, for {_time_words(seconds)}{left}"


class MachineLock:
    """The machine's turn of one run.

    Args:
        tell: Told once of each run that is waited for.
        waits: Whether to wait for a run that measures; else it is measured beside it.
        hint: What stands behind the news of waiting: how not to wait.
        longest_s: How long to wait; ``None``: until the others have ended.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        *,
        waits: bool = True,
        hint: str = "",
        longest_s: float | None = None,
    ) -> None:
        self._tell = tell
        self._waits = waits
        self._hint = hint
        self._longest_s = math.inf if longest_s is None else longest_s
        self._path = lock_file()
        self._left_s = self._since = 0.0
        self._descriptor: int | None = None
        self._guest: int | None = None
        self._free = not _has_locks() or _is_passed_on(self._path)
        self._line = WaitingLine(self._path.with_name(f"{self._path.name}.waiting"))

    def expect(self, left_s: float) -> None:
        """Say how long this run still takes, for those that wait for it.

        Args:
            left_s: Seconds from the time on at which it has its turn; 0 if that is not known.
        """
        self._left_s = left_s
        if self._descriptor is not None:
            self._write_record(self._descriptor)

    def awaited(self) -> str:
        """Name the run that this one would have to wait for now; empty if there is none."""
        is_mine = self._free or self._descriptor is not None or not self._waits
        return "" if is_mine or not is_locked(self._path) else str(holder_of(self._path))

    def take(self) -> float:
        """Wait until it is this run's turn, and return the seconds that that took.

        At once where the run has its turn, was started by one that has, or does not wait.

        Raises:
            GaveUpWaiting: if it is not its turn in the time that it may wait.
            StoppedWaiting: if it is interrupted meanwhile.
        """
        if self._free or self._descriptor is not None:
            return 0.0
        began = time.monotonic()
        if (self._line.ahead() == 0 or not self._waits) and (self._try() or not self._waits):
            return time.monotonic() - began
        try:
            self._wait(began)
        except BaseException as error:
            with contextlib.suppress(KeyboardInterrupt):  # whoever presses twice means the same
                self._line.leave()
            if not isinstance(error, KeyboardInterrupt) or isinstance(error, GaveUpWaiting):
                raise
            raise StoppedWaiting(
                f"interrupted after {_time_words(time.monotonic() - began)} of waiting for another "
                f"run on this machine ({holder_of(self._path)}); nothing was measured meanwhile"
            ) from error
        self._line.leave()
        waited = time.monotonic() - began
        if not self._free:
            self._tell(f"waited {_time_words(waited)} for other runs on this machine")
        return waited

    def _wait(self, began: float) -> None:
        """Wait in the line, and tell for whom and for how long, until the lock is this run's."""
        told: tuple[int, int] | None = None
        last = left = 0
        while not self._free:
            self._line.join()
            ahead = self._line.ahead()
            if (not ahead or left >= _LEFT_TO_OTHERS) and self._try():
                return
            left = left + 1 if ahead and is_locked(self._path) is False else 0
            holder, minutes = holder_of(self._path), int((time.monotonic() - began) / _TOLD_AGAIN_S)
            if told != (holder.pid, ahead) or minutes > last:
                told, last = (holder.pid, ahead), minutes
                self._tell(f"waiting for another run on this machine {self._why(began, ahead)}")
            left_s = began + self._longest_s - time.monotonic()
            if left_s <= 0:
                raise GaveUpWaiting(
                    f"gave up after {_time_words(self._longest_s)} of waiting for another run on "
                    f"this machine ({holder}); nothing was measured"
                )
            time.sleep(min(_PAUSE_S, left_s))

    def _why(self, began: float, ahead: int) -> str:
        """Say for whom this run waits, for how long so far, and who is before it."""
        waited = time.monotonic() - began
        parts = [str(holder_of(self._path))]
        parts += [f"{ahead} more before this one"] if ahead else []
        parts += [f"waited {_time_words(waited)} so far"] if waited >= 1 else []
        return f"({'; '.join(parts)}){self._hint}"

    def other(self) -> str:
        """Name a run that measures at the same time; empty if there is none."""
        if self._free or (self._descriptor is None and self._try()):
            return ""
        if self._descriptor is None:
            return str(holder_of(self._path))
        return "" if self._has_no_guests() else "a run that did not wait"

    def close(self) -> None:
        """Let the next one have its turn; safe to repeat."""
        for descriptor in (self._descriptor, self._guest):
            if descriptor is not None:
                os.close(descriptor)
        if self._descriptor is not None:
            os.environ.pop(HELD, None)
        self._descriptor = self._guest = None

    def _try(self) -> bool:
        """Take the lock if it is free; a run that does not wait shows itself instead.

        That one leaves it to those that wait, too.
        """
        descriptor = open_shared(self._path)
        if descriptor is None:
            self._free = True  # nobody can have it here
            return False
        is_left = not self._waits and self._line.ahead() > 0
        if not is_left and lock_at_once(descriptor, shared=False):
            self._descriptor = descriptor
            _forget_in_children(self)
            self._since = time.time()
            self._write_record(descriptor)
            os.environ[HELD] = f"{os.getpid()}:{start_of(os.getpid())}:{self._path}"
            return True
        os.close(descriptor)
        if not self._waits and self._guest is None:
            self._guest = open_shared(self._guests())
            if self._guest is not None:
                lock_at_once(self._guest, shared=True)
        return False

    def _write_record(self, descriptor: int) -> None:
        """Say in the file who measures, since when, and until when as far as it knows."""
        record = {"pid": os.getpid(), "since": self._since}
        if self._left_s:
            record["ends"] = time.time() + self._left_s
        with contextlib.suppress(OSError):  # another user's file may not take it
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(record).encode("ascii"), 0)

    def _has_no_guests(self) -> bool:
        return not (self._guests().exists() and is_locked(self._guests()))

    def _guests(self) -> Path:
        return self._path.with_name(f"{self._path.name}.beside")


def holder_of(path: Path) -> Holder:
    """Return who holds the lock of a file, as far as the file says it.

    Args:
        path: The file.
    """
    descriptor = open_shared(path)
    if descriptor is None:
        return Holder()
    try:
        record = json.loads(os.pread(descriptor, _LONGEST_RECORD, 0))
        ends = float(record.get("ends", 0.0))
        return Holder(
            pid=int(record["pid"]),
            since=float(record["since"]),
            ends=ends if 0 < ends < math.inf else 0.0,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return Holder()
    finally:
        os.close(descriptor)


def lock_file() -> Path:
    """Return the file that all users of this machine lock, or the one that the user named."""
    named = os.environ.get(PLACE, "")
    if named:
        return Path(named)
    for folder in _FOLDERS:
        with contextlib.suppress(OSError):
            if stat.S_IMODE(Path(folder).stat().st_mode) & stat.S_IWOTH:
                return Path(folder) / _NAME
    return Path(tempfile.gettempdir()) / _NAME


def _is_passed_on(path: Path) -> bool:
    """Whether a process that started this one holds the lock."""
    pid, _, rest = os.environ.get(HELD, "").partition(":")
    start, _, place = rest.partition(":")
    return pid.isdecimal() and place == str(path) and is_alive(int(pid), start)


def _forget_in_children(lock: MachineLock) -> None:
    """Close the lock in processes that are forked, which would hold it beyond this one's end."""
    if not hasattr(os, "register_at_fork"):
        return
    descriptor, mine = lock._descriptor, os.getpid()

    def forget() -> None:
        if descriptor is not None and lock._descriptor == descriptor and os.getpid() != mine:
            os.close(descriptor)
            lock._descriptor = None
            lock._free = True

    os.register_at_fork(after_in_child=forget)


def _has_locks() -> bool:
    try:
        import fcntl  # noqa: F401  # not on Windows
    except ImportError:
        return False
    return True


def _time_words(seconds: float) -> str:
    """Write a duration as ``12 s`` or ``6 min 47 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
