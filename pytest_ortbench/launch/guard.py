"""A process that ends a service if whoever started it is gone without having ended it.

A process that is killed ends nothing, so something else must see that it is gone: the far end of a
pipe that only it holds.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

#: It may answer what it took, as when it is ended politely.
_POLITE_S = 10

#: Waits for a byte, which releases it, or for the end of the pipe.
_WATCH = f"""
import os, signal, sys, time
if not sys.stdin.buffer.read(1):
    def end(number):
        (os.killpg if hasattr(os, "killpg") else os.kill)(int(sys.argv[1]), number)
    try:
        end(signal.SIGTERM)
        for _ in range({_POLITE_S}):
            time.sleep(1)
            end(0)
        end(getattr(signal, "SIGKILL", signal.SIGTERM))
    except OSError:
        pass
"""


class Guard:
    """Ends a service once this process is gone, unless it is released.

    Args:
        pid: The service, which leads a group of its own.
    """

    def __init__(self, pid: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCH, str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        """Let the service be; safe to repeat."""
        with suppress(OSError, ValueError):
            self._process.communicate(b".")
