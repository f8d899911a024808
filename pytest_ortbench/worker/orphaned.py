"""A worker whose host is gone ends, whatever it is doing."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

#: After the host hung up, a call that still runs gets this long before the process ends anyway.
_GRACE_S = 2.0

#: From linux/prctl.h.
_PR_SET_PDEATHSIG = 1


def end_with_host(incoming: BinaryIO, end: Callable[[], None]) -> None:
    """End this process group when the host is gone, even if a native call never returns.

    The thread sleeps until the channel hangs up and takes no time meanwhile. The main loop sees the
    end of file too and normally is faster. On Windows there is neither.

    Args:
        incoming: The channel.
        end: Leaves nothing behind.
    """
    _wake_when_orphaned()
    if sys.platform == "win32":
        return

    def wait() -> None:
        _await_end(incoming)
        time.sleep(_GRACE_S)
        end()
        os.killpg(0, signal.SIGKILL)
        # Nobody kills the first process of a container from inside it.
        os._exit(128 + signal.SIGKILL)

    threading.Thread(target=wait, name="ortbench-hang-up", daemon=True).start()


def _await_end(incoming: BinaryIO) -> None:
    """Sleep until the host is gone."""
    if sys.platform == "darwin":
        # Its poll knows no hang-up on which nothing else is asked for.
        exit_of_host = select.kevent(
            os.getppid(), select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT
        )
        with contextlib.suppress(ProcessLookupError), select.kqueue() as queue:
            queue.control([exit_of_host], 1)
        return
    poll = select.poll()
    poll.register(incoming.fileno(), 0)
    poll.poll()


def _wake_when_orphaned() -> None:
    """Have the kernel let this process go on when its parent dies (Linux only).

    A worker that is suspended while the other side of a pair is measured sees no end of file, and
    would stay stopped for ever if the host were killed meanwhile.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # costs milliseconds, and only workers need it

    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGCONT))
