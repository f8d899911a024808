"""The runs that wait for the machine, in the order in which they came.

They stand in a file that every user may write, so what it says is a courtesy: it orders those that
wait, and keeps nobody from the machine for long.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ortbench.core.own_folder import is_alive, start_of
from pytest_ortbench.launch.shared_file import lock_at_once, open_shared

_LONGEST_RECORD = 65_536
#: How often, and how far apart, the file is tried that another run is just writing.
_TRIES, _PAUSE_S = 20, 0.05

#: A process by its id and the time at which it started.
_Waiting = tuple[int, str]


@dataclass(slots=True)
class WaitingLine:
    """Those that wait, and the place of this process among them.

    Attributes:
        path: The file.
    """

    path: Path
    _own: _Waiting = field(default_factory=lambda: (os.getpid(), start_of(os.getpid())))

    def join(self) -> None:
        """Stand at the end; at the same place where this process waits already.

        To be called again while it waits, since another process may write the file meanwhile.
        """
        if self._own in self._waiting():
            return
        with self._changed() as waiting:
            if self._own not in waiting:
                waiting.append(self._own)

    def leave(self) -> None:
        """Wait no more; safe to repeat."""
        if not self.path.exists():
            return
        with self._changed() as waiting:
            waiting[:] = [entry for entry in waiting if entry != self._own]

    def ahead(self) -> int:
        """Return how many wait that came before this process; all of them where it does not."""
        waiting = self._waiting()
        return waiting.index(self._own) if self._own in waiting else len(waiting)

    def _waiting(self) -> list[_Waiting]:
        """Those that wait, the first one first; none where the file can't be read."""
        descriptor = open_shared(self.path) if self.path.exists() else None
        if descriptor is None:
            return []
        try:
            return _read(descriptor)
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _changed(self) -> Iterator[list[_Waiting]]:
        """Yield those that wait, and write what became of them; nothing where that can't be."""
        descriptor = open_shared(self.path)
        if descriptor is None:
            yield []
            return
        try:
            for _ in range(_TRIES):
                if lock_at_once(descriptor, shared=False):
                    break
                time.sleep(_PAUSE_S)
            waiting = _read(descriptor)
            yield waiting
            with contextlib.suppress(OSError):  # another user's file may not take it
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, json.dumps(waiting).encode("ascii"), 0)
        finally:
            os.close(descriptor)


def _read(descriptor: int) -> list[_Waiting]:
    """Those in a file that still run, each once; others may have written it."""
    try:
        entries = json.loads(os.pread(descriptor, _LONGEST_RECORD, 0))
        known = [(int(pid), str(start)) for pid, start in entries]
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return []
    return [entry for entry in dict.fromkeys(known) if 0 < entry[0] < 2**31 and is_alive(*entry)]
