"""SIGTERM and SIGHUP end a run as Ctrl-C does: services cancel with them, and terminals close.

By itself Python ends at once on both: no table, no document, and every temporary folder stays.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: What asks a process to end. Windows has no SIGHUP, and its SIGTERM can't be handled.
ENDING = tuple(
    getattr(signal, name)
    for name in ("SIGTERM", "SIGHUP")
    if hasattr(signal, name) and sys.platform != "win32"
)
#: Exit code of a run that gave up waiting for another one: "try again later" of sysexits.h.
GAVE_UP_WAITING = 75
#: Descriptors of a process that may lead to its terminal: its own and copies that a capture made.
_MAY_BE_TERMINALS = 64


class StoppedWaiting(KeyboardInterrupt):
    """A run was interrupted while it waited for its turn: nothing was measured meanwhile."""


class GaveUpWaiting(StoppedWaiting):
    """A run waited for its turn as long as it was told to: nothing was measured."""


class StopSignals:
    """Lets each of :data:`ENDING` raise :class:`KeyboardInterrupt` from now until it is closed.

    A signal that is ignored (``nohup``) or that somebody else handles is left as it is.
    """

    def __init__(self) -> None:
        self._taken: list[signal.Signals] = []
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if signal.getsignal(number) is signal.SIG_DFL:
                    signal.signal(number, interrupt)
                    self._taken.append(number)

    def close(self) -> None:
        """Leave the signals as they were; safe to repeat."""
        while self._taken:
            signal.signal(self._taken.pop(), signal.SIG_DFL)


def interrupt(number: int, _frame: FrameType | None) -> None:
    """Handle a signal as Ctrl-C is handled.

    Raises:
        KeyboardInterrupt: with the name of the signal.
    """
    if number == getattr(signal, "SIGHUP", None):
        leave_terminal()
    raise KeyboardInterrupt(signal.Signals(number).name)


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let each of :data:`ENDING` raise :class:`KeyboardInterrupt` inside the block."""
    signals = StopSignals()
    try:
        yield
    finally:
        signals.close()


def leave_terminal() -> None:
    """Let what is written to a terminal that is gone go nowhere, where it would raise an error."""
    if not hasattr(select, "poll"):
        return
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(_MAY_BE_TERMINALS):
        with contextlib.suppress(OSError):
            if descriptor != nowhere and _is_gone(descriptor):
                os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _is_gone(descriptor: int) -> bool:
    if not stat.S_ISCHR(os.fstat(descriptor).st_mode):
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))
