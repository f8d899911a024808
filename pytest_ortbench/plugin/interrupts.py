"""What Ctrl-C does while a run is ending: one more is taken, the next ends the process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest


class Shield:
    """Keeps impatience from costing the results: it takes one interrupt while it is up.

    It goes up by itself when pytest was interrupted, and down when the table is printed. Whoever
    presses again after the one that it took means it.

    Attributes:
        taken: Whether it took an interrupt.
    """

    def __init__(self) -> None:
        self.taken = False
        self._before: Any = None  # a handler has no nameable type

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Pytest was interrupted: from now on it only ends."""
        self.up()

    def up(self) -> None:
        """Take the next interrupt; does nothing where signals can't be handled or are ignored."""
        before = signal.getsignal(signal.SIGINT)
        if self._before is not None or before in (None, signal.SIG_IGN):
            return
        if threading.current_thread() is not threading.main_thread():
            return
        self._before = before
        signal.signal(signal.SIGINT, self._take)

    def down(self) -> None:
        """Let interrupts through again; safe to repeat."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        self.taken = True
        self.down()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be up for a while; whoever had it up already keeps it up."""
        was_down = self._before is None
        self.up()
        try:
            yield
        finally:
            if was_down:
                self.down()
