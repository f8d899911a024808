"""One measurement at a time on a machine, whichever user and process makes it.

A run takes the lock before its first measurement and holds it until its end; the kernel gives it
back when the process dies. Processes that it starts measure under the same lock. One that does not
wait is seen by the run that it measures beside.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.own_folder import is_alive, start_of

#: Names another file: runs that name different ones never wait for each other.
PLACE = "ORTBENCH_MACHINE_LOCK"
#: Tells the processes that a run starts that it holds the lock.
HELD = "ORTBENCH_MACHINE_LOCK_HELD"

_NAME = "ortbench-machine.lock"
#: Where every user may make a file, whatever the temporary folder of each of them is.
_FOLDERS = ("/run/lock", "/tmp")  # the file is opened without following links
_LONGEST_RECORD = 300
_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds the lock, as the file says; others may have written it.

    Attributes:
        pid: Its process; 0 if unknown.
        since: When it took the lock, in seconds of the clock.
    """

    pid: int = 0
    since: float = 0.0

    def __str__(self) -> str:
        name = f"process {self.pid}" if self.pid else "another process"
        minutes = max(0.0, time.time() - self.since) / 60 if self.since else 0.0
        return f"{name}, measuring for {minutes:.0f} min" if minutes >= 1 else name


class MachineLock:
    """The machine's turn of one run.

    Args:
        tell: Told once of each run that is waited for.
        waits: Whether to wait for a run that measures; else it is measured beside it.
        hint: What stands behind the news of waiting: how not to wait.
    """

    def __init__(self, tell: Callable[[str], None], *, waits: bool = True, hint: str = "") -> None:
        self._tell = tell
        self._waits = waits
        self._hint = hint
        self._path = lock_file()
        self._descriptor: int | None = None
        self._guest: int | None = None
        self._free = not _has_locks() or _is_passed_on(self._path)

    def take(self) -> float:
        """Wait until it is this run's turn, and return the seconds that that took.

        At once where the run has its turn, was started by one that has, or does not wait.
        """
        if self._free or self._descriptor is not None:
            return 0.0
        began = time.monotonic()
        told: Holder | None = None
        while not self._try() and self._waits and not self._free:
            holder = self._holder()
            if told is None or holder.pid != told.pid:
                told = holder
                self._tell(f"waiting for another run on this machine ({holder}){self._hint}")
            time.sleep(_PAUSE_S)
        return time.monotonic() - began

    def other(self) -> str:
        """Name a run that measures at the same time; empty if there is none."""
        if self._free or (self._descriptor is None and self._try()):
            return ""
        if self._descriptor is None:
            return str(self._holder())
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
        """Take the lock if it is free; a run that does not wait shows itself instead."""
        descriptor = self._open(self._path)
        if descriptor is None:
            self._free = True  # nobody can have it here
            return False
        if _lock(descriptor, shared=False):
            self._descriptor = descriptor
            _forget_in_children(self)
            record = {"pid": os.getpid(), "since": time.time()}
            with contextlib.suppress(OSError):  # another user's file may not take it
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, json.dumps(record).encode("ascii"), 0)
            os.environ[HELD] = f"{os.getpid()}:{start_of(os.getpid())}:{self._path}"
            return True
        os.close(descriptor)
        if not self._waits and self._guest is None:
            self._guest = self._open(self._guests())
            if self._guest is not None:
                _lock(self._guest, shared=True)
        return False

    def _holder(self) -> Holder:
        descriptor = self._open(self._path)
        if descriptor is None:
            return Holder()
        try:
            record = json.loads(os.pread(descriptor, _LONGEST_RECORD, 0))
            return Holder(pid=int(record["pid"]), since=float(record["since"]))
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return Holder()
        finally:
            os.close(descriptor)

    def _has_no_guests(self) -> bool:
        if not self._guests().exists():
            return True
        descriptor = self._open(self._guests())
        if descriptor is None:
            return True
        try:
            return _lock(descriptor, shared=False)
        finally:
            os.close(descriptor)

    def _guests(self) -> Path:
        return self._path.with_name(f"{self._path.name}.beside")

    @staticmethod
    def _open(path: Path) -> int | None:
        """Open a file that every user may open, made if it is not there."""
        flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        # Without O_CREAT first: Linux refuses it for files of others in folders like /tmp.
        for mode in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDWR, os.O_RDONLY):
            try:
                descriptor = os.open(path, flags | mode, 0o666)
            except OSError:
                continue
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                return None
            if mode & os.O_CREAT:
                with contextlib.suppress(OSError):
                    os.fchmod(descriptor, 0o666)  # whatever the umask
            return descriptor
        return None


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


def _lock(descriptor: int, *, shared: bool) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
