"""Temporary folders that say whose they are, and the sweep of those that dead processes left.

Each holds a file that names the process that made it, which is locked as long as that lives. What
has no such file, belongs to another user or to a process that is alive stays untouched, whatever
it is called.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
from pathlib import Path
from types import TracebackType

from pytest_ortbench.core.cpus import read_text
from pytest_ortbench.core.errors import CarriedFailure, cache_advice, says
from pytest_ortbench.core.failures import case_error

#: The file that names the process.
OWNER = ".ortbench-owner.json"
_PREFIX = "ortbench-"
_LONGEST_RECORD = 4096


class OwnFolder:
    """A temporary folder of this process, removed when it is closed or when the process ends.

    What a worker on Windows holds open still is left behind.

    Attributes:
        path: The folder.

    Args:
        kind: What it is for, as a part of its name.
        parent: Where it is made; ``None``: where temporary files are.

    Raises:
        CarriedFailure: if it can't be made where temporary files are.
        OSError: if it can't be made in ``parent``.
    """

    def __init__(self, kind: str, parent: Path | None = None) -> None:
        try:
            self._make(kind, parent)
        except OSError as error:
            if parent is not None:
                raise
            raise _no_folder(error) from error

    def _make(self, kind: str, parent: Path | None) -> None:
        prefix = f"{_PREFIX}{kind}-" if parent is None else f".{_PREFIX}{kind}-"
        self._folder = tempfile.TemporaryDirectory(
            prefix=prefix, dir=parent, ignore_cleanup_errors=True
        )
        self.path = Path(self._folder.name)
        self._lock = (self.path / OWNER).open("wb", buffering=0)
        # Nobody takes an empty record for that of a dead process, so the lock comes first.
        _lock(self._lock.fileno(), wait=True)
        self._lock.write(json.dumps(_this_process()).encode("ascii"))

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder with all that is in it; safe to repeat."""
        self._lock.close()
        self._folder.cleanup()


def _no_folder(error: OSError) -> CarriedFailure:
    """Return what to tell where no temporary folder can be made."""
    try:
        place = f"the temporary folder {tempfile.gettempdir()}"
    except OSError:
        place = "a temporary folder"
    return case_error(
        f"no file can be written in {place}. {says('The system', error.strerror or str(error))}",
        cache_advice(error, "TMPDIR"),
        kind="error",
    )


def sweep(parent: Path | None = None) -> int:
    """Remove the folders that dead processes of this user left, and return how many there were.

    Args:
        parent: Where to look; ``None``: where temporary files are.
    """
    pattern = f"{_PREFIX}*" if parent is None else f".{_PREFIX}*"
    removed = 0
    for folder in Path(tempfile.gettempdir() if parent is None else parent).glob(pattern):
        # Another user's, or one that is removed at this moment.
        with contextlib.suppress(OSError):
            removed += _remove_if_left(folder)
    return removed


def _remove_if_left(folder: Path) -> bool:
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    about = folder.lstat()
    if (
        not hasattr(os, "geteuid")
        or about.st_uid != os.geteuid()
        or not stat.S_ISDIR(about.st_mode)
    ):
        return False
    with open(os.open(folder / OWNER, flags), "r+b", buffering=0) as file:  # noqa: PTH123
        status = os.fstat(file.fileno())
        ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if (
            not ours
            or not _lock(file.fileno(), wait=False)
            or not _is_dead(file.read(_LONGEST_RECORD))
        ):
            return False
        shutil.rmtree(folder, ignore_errors=True)
    return True


def _is_dead(record: bytes) -> bool:
    """Whether a record is that of a process that is gone, of which nobody holds the lock.

    A process id means something only in the namespace in which it was written, and until the
    machine starts again; elsewhere the lock decides.
    """
    try:
        owner = json.loads(record)
        pid, start, space = owner["pid"], owner["start"], owner["space"]
    except (ValueError, KeyError, TypeError):
        return False
    if not isinstance(pid, int) or pid <= 0:
        return False
    if space != _space():
        return True
    return not is_alive(pid, start)


def is_alive(pid: int, start: str) -> bool:
    """Return whether a process that started at a time still runs; a later one of its id does not.

    Args:
        pid: Its id.
        start: What :func:`start_of` said of it.
    """
    now = start_of(pid)
    if now and start:
        return now == start
    if start_of(os.getpid()):
        return bool(now)
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def start_of(pid: int) -> str:
    """Return when a process started, in ticks since the machine did; empty where unknown.

    Of a process that ended and was not waited for it is empty, too.
    """
    fields = read_text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""


def _this_process() -> dict[str, object]:
    pid = os.getpid()
    return {"pid": pid, "start": start_of(pid), "space": _space()}


def _space() -> str:
    """The namespace of process ids and the start of the machine; empty where there is no such."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    boot = read_text(Path("/proc/sys/kernel/random/boot_id")).strip()
    return f"{boot} {namespace}".strip()


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Take a lock that lasts as long as the file is open; ``False`` where that is not possible."""
    try:
        import fcntl  # not on Windows
    except ImportError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True
