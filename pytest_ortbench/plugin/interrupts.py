"""What Ctrl-C, SIGTERM and SIGHUP do while a run is ending: one is taken, the next ends it all."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

import pytest

from pytest_ortbench.core.stop_signals import ENDING, interrupt, leave_terminal


class Shield:
    """Keeps impatience from costing the results: it takes one interrupt while it is up.

    It goes up by itself when pytest was interrupted, and down when the table is printed. Whoever
    presses again after the one that it took means it.

    Attributes:
        taken: Whether it took an interrupt.
    """

    def __init__(self) -> None:
        self.taken = False
        self._before: dict[signal.Signals, Any] = {}  # a handler has no nameable type

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Pytest was interrupted: from now on it only ends."""
        self.up()
        excinfo.traceback = type(excinfo.traceback)(with_lines(excinfo.tb))

    def up(self) -> None:
        """Take the next interrupt; does nothing where signals can't be handled or are ignored."""
        if self._before or threading.current_thread() is not threading.main_thread():
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}
        for number, handler in before.items():
            ours = number == signal.SIGINT and handler not in (None, signal.SIG_IGN)
            if ours or handler is interrupt:
                self._before[number] = handler
                signal.signal(number, self._take)

    def down(self) -> None:
        """Let interrupts through again; safe to repeat."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self.taken = True
        if number != signal.SIGINT:
            leave_terminal()
        self.down()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be up for a while; whoever had it up already keeps it up."""
        was_down = not self._before
        self.up()
        try:
            yield
        finally:
            if was_down:
                self.down()


def with_lines(traceback: TracebackType) -> TracebackType:
    """Return a traceback each of whose entries has a line.

    A signal may strike at an instruction that belongs to no line. CPython then gives ``None`` for
    the line, and pytest, which calculates with it, ends without its ``pytest_sessionfinish``.
    """
    entries = [traceback]
    while (following := entries[-1].tb_next) is not None:
        entries.append(following)
    made: TracebackType | None = None
    for entry in reversed(entries):
        line: int | None = entry.tb_lineno  # typeshed knows no None here
        if line is None:
            line = entry.tb_frame.f_code.co_firstlineno
        made = TracebackType(made, entry.tb_frame, entry.tb_lasti, line)
    return made or traceback
