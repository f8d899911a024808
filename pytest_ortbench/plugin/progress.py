"""What is measured now, and how much is left: one line, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from _pytest.capture import CaptureManager
    from _pytest.terminal import TerminalReporter

    from pytest_ortbench.core.case import Case

_SAVE, _RESTORE, _ERASE = "\x1b7", "\x1b8", "\x1b[K"
_LEAST_ROOM = 24


class TimeLeft(Protocol):
    """Knows how long a run still takes."""

    @property
    def left_s(self) -> float:
        """Seconds until its end."""


#: So long collecting may take without a word.
_SLOW_S = 3.0


class Progress:
    """Writes behind what pytest has on the line and takes it back before pytest goes on.

    The cursor is saved, the status written in the rest of the line, the cursor restored: pytest's
    own dots and percentages never notice. Nothing is drawn while a block is timed, only when the
    phase changes.

    Attributes:
        stage: What part of a case is under way, where it has several; empty otherwise.

    Args:
        reporter: Writes on the terminal; ``None`` says nothing.
        capture: What keeps output from the terminal while tests are collected and run.
    """

    def __init__(
        self, reporter: TerminalReporter | None, capture: CaptureManager | None = None
    ) -> None:
        self._lines = reporter
        self._capture = capture
        self._reporter = reporter if reporter is not None and _is_terminal(reporter) else None
        self._expected = 0
        self._done = 0
        self._countdown: TimeLeft | None = None
        self._case: Case | None = None
        self._began_s: float | None = time.monotonic()
        self.stage = ""

    def expect(self, cases: int, countdown: TimeLeft | None) -> None:
        """Set how many cases there are altogether, and what tells how long they still take."""
        self._expected = cases
        self._countdown = countdown

    def begin(self, case: Case) -> None:
        """A case starts."""
        self._case = case

    def phase(self, name: str) -> None:
        """The current case enters a phase, or a process that is asked while tests are collected."""
        if self._case is None and not self._expected:
            self._say_if_slow(name)
        if self._case is not None:
            count = f"{self._done}/{self._expected}{self._left()}"
            self._draw(f"{self._case.case_id} · {self._doing(name)} · {count}")

    def _say_if_slow(self, name: str) -> None:
        """Say once that collecting takes long, and what is being done."""
        if self._began_s is None or time.monotonic() - self._began_s < _SLOW_S:
            return
        self._began_s = None
        self.say(f"still collecting: asking the runtimes what they have ({name})")

    def _doing(self, name: str) -> str:
        return f"{self.stage} · {name}" if self.stage else name

    @contextmanager
    def within(self, case: Case) -> Iterator[None]:
        """Show a case as the one that is measured now, without counting it."""
        self._case = case
        try:
            yield
        finally:
            self.rest()

    def rest(self) -> None:
        """Something else than a case of the plan is over."""
        self._case = None
        self.stage = ""
        self._draw("")

    def end(self) -> None:
        """The case is over."""
        self._done += 1
        self._case = None
        self._draw("")

    def say(self, text: str) -> None:
        """Write a line of its own, on a terminal or not: something takes long or uses the network.

        Not for what pytest measures: it would stand between its dots.
        """
        if self._lines is not None:
            with self._uncaptured():
                if self._lines._tw.width_of_current_line:
                    self._lines._tw.line()  # behind "collecting ..."
                whole = _fitted(text, sys.maxsize, self._lines._tw._file)
                self._lines.write_line(f"ortbench: {whole}")

    def _left(self) -> str:
        if self._countdown is None:
            return ""
        seconds = round(self._countdown.left_s)
        return f" · about {seconds // 60}:{seconds % 60:02d} left"

    def _draw(self, text: str) -> None:
        if self._reporter is None:
            return
        writer = self._reporter._tw
        room = writer.fullwidth - writer.width_of_current_line - 3
        shown = "" if room < _LEAST_ROOM else _fitted(text, room, writer._file)
        line = f"{_SAVE}{'  ' + shown if shown else ''}{_ERASE}{_RESTORE}"
        try:
            with self._uncaptured():
                # Straight to the file: going through the writer would move its idea of the column.
                writer._file.write(line)
                writer._file.flush()
        except (OSError, ValueError):
            # Closed, gone, or unfit for its own encoding: no status is worth a case.
            self._reporter = None

    def _uncaptured(self) -> AbstractContextManager[None]:
        """Let output through to the terminal."""
        return (
            nullcontext() if self._capture is None else self._capture.global_and_fixture_disabled()
        )


def _fitted(text: str, room: int, file: TextIO) -> str:
    """The text as the file can write it, on one line, cut where the room ends."""
    from pytest_ortbench.report.escape import encodable, one_line

    encoding = getattr(file, "encoding", None) or "utf-8"
    writable = encodable(one_line(text), encoding)
    if len(writable) <= room:
        return writable
    return writable[: room - 1] + encodable("…", encoding)


def _is_terminal(reporter: TerminalReporter) -> bool:
    return bool(reporter.isatty) and reporter.verbosity >= 0
