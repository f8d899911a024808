"""What a pytest run shows: its progress, the lines after collection, the table and its answer.

Progress is one line, on a terminal only: what is measured now, and how much is left.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    import pytest
    from _pytest.capture import CaptureManager
    from _pytest.terminal import TerminalReporter

    from pytest_ortbench.core.case import Case
    from pytest_ortbench.core.run import Run
    from pytest_ortbench.plugin.bench import Bench

_SAVE, _RESTORE, _ERASE = "\x1b7", "\x1b8", "\x1b[K"
_LEAST_ROOM = 24

_LISTED_SKIPS = 20
_LOG_WIDTH = 150


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
        self._to_measure = 0
        self._measured = 0
        self._began_s: float | None = None
        self._each_s: float | None = None
        self._case: Case | None = None
        self.stage = ""

    def expect(self, cases: int, *, to_measure: int) -> None:
        """Set how many cases there are altogether, and how many of them must still be measured.

        Those that are refused, or taken from an interrupted run, take no time.
        """
        self._expected = cases
        self._to_measure = to_measure

    def begin(self, case: Case) -> None:
        """A case starts."""
        self._case = case
        now_s = time.monotonic()
        if self._began_s is None:
            self._began_s = now_s  # neither collecting nor making environments comes again
        # Read here and not when a case is over: its conversion and its gate belong to it, too.
        if self._measured:
            self._each_s = (now_s - self._began_s) / self._measured

    def phase(self, name: str) -> None:
        """The current case enters a phase."""
        if self._case is not None:
            count = f"{self._done}/{self._expected}{self._left()}"
            self._draw(f"{self._case.case_id} · {self._doing(name)} · {count}")

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

    def end(self, *, measured: bool) -> None:
        """The case is over; say whether it was measured now."""
        self._done += 1
        self._measured += measured
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
                self._lines.write_line(f"ortbench: {text}")

    def _left(self) -> str:
        if self._each_s is None:
            return ""
        seconds = self._each_s * self._to_measure
        return f" · {int(seconds // 60)}:{int(seconds % 60):02d} left"

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


# -- after collection ------------------------------------------------------------------------------


def collection_lines(bench: Bench) -> list[str]:
    """How many cases there are, what was left out and why; with ``--collect-only`` every case."""
    if not bench.planned:
        gate_notes = bench.gating.notes if bench.gating is not None else []
        notes = [f"ortbench: {note}" for note in (*bench.collection.notes, *gate_notes)]
        if not bench.collection.complete:
            return notes  # an error ended it, which is what pytest says
        return [f"ortbench: {_no_case(bench)}", *notes, *_skip_lines(bench)]
    from pytest_ortbench.runtimes.installed import installed

    here = installed()
    repair = [f"repair: {command}" for command in here.repair()]
    gate_notes = bench.gating.notes if bench.gating is not None else []
    lines = [
        f"ortbench: {note}"
        for note in (
            *bench.collection.notes,
            *bench.asked_limits.notes,
            *gate_notes,
            *here.problems(),
            *repair,
        )
    ]
    refused = [planned for planned in bench.planned.values() if planned.refusal is not None]
    lines.append(f"ortbench: {_cases(len(bench.planned))}" + _less(len(refused)))
    lines += _resume_lines(bench)
    lines += _skip_lines(bench)
    if bench.config.option.collectonly:
        for planned in bench.planned.values():
            inputs = ", ".join(
                f"{spec.name} {list(spec.shape)}"
                + (f" ({spec.sizes_text})" if spec.sizes_text else "")
                for spec in planned.case.inputs
            )
            reason = f"refused: {planned.refusal.message}" if planned.refusal else inputs
            lines.append(f"  {bench.collection.name_of(planned)}  {reason}")
    return lines


def _no_case(bench: Bench) -> str:
    if bench.collection.empty:
        return (
            "no test here takes the ortbench fixture. Measure a file with 'pytest MODEL.onnx', or "
            "the shipped suites with 'pytest --pyargs pytest_ortbench.suites'"
        )
    return f"no case to measure: {bench.collection.why_no_case}"


def _skip_lines(bench: Bench) -> list[str]:
    """What was left out and why, the rest counted."""
    skips = list(bench.collection.skips)
    lines = []
    for skip in skips[:_LISTED_SKIPS]:
        where = f" in {skip.runtime}" if skip.runtime not in ("", "current") else ""
        lines.append(f"ortbench: left out {skip.what}{where}: {skip.reason}")
    rest = len(skips) - _LISTED_SKIPS
    return [*lines, f"ortbench: left out {rest} more"] if rest > 0 else lines


def _cases(count: int) -> str:
    return f"{count} case{'s' if count != 1 else ''}"


def _resume_lines(bench: Bench) -> list[str]:
    """What ``--ort-resume`` takes over, also if that is nothing."""
    if bench.resumable is None:
        return []
    taken = sum(
        planned.refusal is None and key in bench.resumable.results
        for key, planned in bench.planned.items()
    )
    where = f"run {_listed(bench.resumable.runs)}"
    if not taken:
        results = relative_to(bench.options.results, bench.collection.root)
        where = f"{results}, which holds no interrupted run of this plan with a measured case"
    return [f"ortbench: resumed: {_taken(taken, len(bench.planned))} from {where}"]


def _taken(taken: int, of: int) -> str:
    return f"{taken or 'none'} of {_cases(of)} taken"


def _listed(runs: Sequence[str]) -> str:
    return " and ".join(runs)


def _less(refused: int) -> str:
    return f", {refused} of them can't run as asked" if refused else ""


# -- at the end ------------------------------------------------------------------------------------


def write_summary(bench: Bench, reporter: pytest.TerminalReporter) -> None:
    """Print the table, the lines that answer the question, and where the files are."""
    run = bench.finished
    if run is None:
        _write_errors(bench, reporter)
        return
    with bench.shield.held():
        _write_run(bench, run, reporter)
        _write_errors(bench, reporter)
    bench.shield.down()


def _write_run(bench: Bench, run: Run, reporter: pytest.TerminalReporter) -> None:
    from pytest_ortbench.gate.report.lines import gate_lines
    from pytest_ortbench.report.answers import answer_lines
    from pytest_ortbench.report.blocks import block_lines
    from pytest_ortbench.report.operator_profile import run_profile_lines
    from pytest_ortbench.report.precisions import precision_lines
    from pytest_ortbench.report.table import render_table

    encoding = getattr(reporter._tw._file, "encoding", None) or "utf-8"
    if reporter.verbosity >= 0:
        reporter.write_sep("=", "ortbench")
        color = bool(reporter._tw.hasmarkup)
        table = render_table(
            bench.shown,
            width=_width(reporter),
            color=color,
            encoding=encoding,
            # Said already when the tests were collected, unless there were too many.
            skips=len(run.skips) > _LISTED_SKIPS,
        )
        reporter.write(table)
        for line in precision_lines(bench.shown, width=_width(reporter), encoding=encoding):
            reporter.write_line(line)
        for line in block_lines(bench.shown, encoding=encoding):
            reporter.write_line(line)
        for line in run_profile_lines(bench.shown, width=_width(reporter), encoding=encoding):
            reporter.write_line(line)
        reporter.write_line("")
    for line in (
        *answer_lines(bench.shown, encoding=encoding),
        *gate_lines(run, encoding=encoding),
    ):
        reporter.write_line(line)
    for what, path in bench.files:
        reporter.write_line(f"{what}: {relative_to(path, bench.collection.root)}")
    if bench.resumable is not None:
        source = f" from run {_listed(bench.resumable.runs)}" if run.resumed else ""
        reporter.write_line(f"resumed: {_taken(run.resumed, len(run.cases))}{source}")
    if bench.left_out:
        reporter.write_line(f"left out after the interrupt: {', '.join(bench.left_out)}")


def _write_errors(bench: Bench, reporter: pytest.TerminalReporter) -> None:
    for remark in bench.remarks:
        reporter.write_line(f"ortbench: {remark}", yellow=True)
    for error in bench.errors:
        reporter.write_line(f"ortbench: {error}", red=True)


def _width(reporter: pytest.TerminalReporter) -> int:
    """Columns to use: a log has no edge, so it gets the whole table unless COLUMNS says less."""
    width = int(reporter._tw.fullwidth)
    return width if reporter.isatty or "COLUMNS" in os.environ else max(width, _LOG_WIDTH)


def relative_to(path: Path, root: Path) -> Path:
    """Return a path as a reader of the terminal sees it: from ``root``, where it lies below."""
    with suppress(ValueError):
        return path.relative_to(root)
    return path
