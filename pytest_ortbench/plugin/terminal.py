"""What a pytest run shows: the lines after collection, the table and its answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.model_spec import OPTIONS_FILE
from pytest_ortbench.plugin.budgeting import plan_lines, spent_line
from pytest_ortbench.plugin.expected_time import time_words
from pytest_ortbench.plugin.marked_tests import is_chosen_by_marker
from pytest_ortbench.plugin.missing_extras import missing_extras
from pytest_ortbench.plugin.next_commands import next_lines
from pytest_ortbench.plugin.option_sources import is_asked_for_now
from pytest_ortbench.runtimes.installed import installed

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.core.case import Key
    from pytest_ortbench.core.run import Run
    from pytest_ortbench.plugin.bench import Bench
    from pytest_ortbench.plugin.judges import Judges

_LISTED_SKIPS = 20
_LOG_WIDTH = 150


def collection_lines(bench: Bench, judges: Judges, any_test: bool) -> list[str]:
    """How many cases there are, what was left out and why; with ``--collect-only`` every case.

    Args:
        bench: The run.
        judges: What holds its cases to limits and gates.
        any_test: Whether any test is run, of ours or not.
    """
    gate_notes = judges.gating.notes if judges.gating is not None else []
    making = _making_lines(bench)
    if not bench.planned and making:
        told = (*bench.collection.notes, *judges.asked_limits.notes, *gate_notes)
        told_first = [f"ortbench: {note}" for note in told]
        return [*told_first, *making, *_budget_lines(bench), *_resume_lines(bench)]
    if not bench.planned:
        notes = [f"ortbench: {note}" for note in (*bench.collection.notes, *gate_notes)]
        if not bench.collection.complete:
            return notes  # an error ended it, which is what pytest says
        return [*_no_case_lines(bench, any_test), *notes, *_skip_lines(bench)]
    here = installed()
    repair = [f"repair: {command}" for command in here.repair()]
    lines = [
        f"ortbench: {note}"
        for note in (
            *bench.collection.notes,
            *judges.asked_limits.notes,
            *gate_notes,
            *here.problems(),
            *repair,
            *missing_extras(bench.planned.values()),
        )
    ]
    refused = [planned for planned in bench.planned.values() if planned.refusal is not None]
    left_s = 0.0
    if bench.countdown is not None and bench.budget is None:
        left_s = bench.countdown.left_s
    awaited = bench.session.machine.awaited()
    apart = f"; it waits first for another run on this machine ({awaited})" if awaited else ""
    estimate = f", about {time_words(left_s)} (estimate)" if left_s else ""
    estimate += apart
    lines.append(f"ortbench: {_cases(len(bench.planned))}{_less(len(refused))}{estimate}")
    lines += _budget_lines(bench)
    lines += making
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


def _budget_lines(bench: Bench) -> list[str]:
    """How the time of the run is to be divided, if it has a budget."""
    if bench.budget is None:
        return []
    return [f"ortbench: {line}" for line in plan_lines(bench.budget)]


def _making_lines(bench: Bench) -> list[str]:
    """How many tests make the models that they measure, whose cases come while they run."""
    number = len(bench.making)
    if not number:
        return []
    tests = "1 test makes its models" if number == 1 else f"{number} tests make their models"
    return [
        f"ortbench: {tests}, which are measured while {'it runs' if number == 1 else 'they run'}"
    ]


def _no_case_lines(bench: Bench, any_test: bool) -> list[str]:
    """Why there is nothing to measure; no line where other tests run and only keys ask for us."""
    only_others = any_test and not is_asked_for_now(bench.config)
    if not bench.collection.empty:
        if only_others and is_chosen_by_marker(bench.config):
            return []
        return [f"ortbench: no case to measure: {bench.why_no_case}"]
    if only_others:
        return []
    if (bench.config.rootpath / OPTIONS_FILE).is_file():
        return [
            "ortbench: no collected test takes the ortbench fixture. Run the suite of this "
            f"repository with 'pytest @{OPTIONS_FILE}'"
        ]
    return [
        "ortbench: no collected test takes the ortbench fixture. Measure a file with 'pytest "
        "MODEL.onnx', or run the shipped suites with 'pytest --pyargs "
        "pytest_ortbench.suites'"
    ]


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
        where = f"{results}, which contains no interrupted run of these cases that measured one"
    foreign = bench.resumable.foreign
    return [
        f"ortbench: resumed: {_taken(taken, len(bench.planned))} from {where}",
        *([f"ortbench: {foreign}"] if foreign else []),
    ]


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
        _write_annotations(bench, reporter)
        return
    with bench.shield.held():
        _write_run(bench, run, reporter)
        _write_errors(bench, reporter)
        _write_annotations(bench, reporter)
    bench.shield.down()


def _write_annotations(bench: Bench, reporter: pytest.TerminalReporter) -> None:
    """Tell GitHub Actions, where a line that begins so is a command, what is wrong and where."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from pytest_ortbench.plugin.ci_files import annotations_of

    for line in annotations_of(bench):
        reporter.write_line(line)


def _write_run(bench: Bench, run: Run, reporter: pytest.TerminalReporter) -> None:
    from pytest_ortbench.gate.report.lines import gate_lines
    from pytest_ortbench.report.answer_bars import bar_lines
    from pytest_ortbench.report.answers import answer_lines
    from pytest_ortbench.report.blocks import block_lines, detail_lines
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
            wanted=bench.wanted,
        )
        reporter.write(table)
        for line in precision_lines(bench.shown, width=_width(reporter), encoding=encoding):
            reporter.write_line(line)
        for line in block_lines(bench.shown, encoding=encoding):
            reporter.write_line(line)
        for line in detail_lines(bench.shown, width=_width(reporter), encoding=encoding):
            reporter.write_line(line)
        reporter.write_line("")
        for line in bar_lines(bench.shown, width=_width(reporter), encoding=encoding):
            reporter.write_line(line)
    for line in (
        *answer_lines(bench.shown, encoding=encoding),
        *gate_lines(run, told=_gates_told(bench), encoding=encoding),
    ):
        reporter.write_line(line)
    for what, path in bench.files:
        reporter.write_line(f"{what}: {relative_to(path, bench.collection.root)}")
    if bench.resumable is not None:
        source = f" from run {_listed(bench.resumable.runs)}" if run.resumed else ""
        reporter.write_line(f"resumed: {_taken(run.resumed, len(run.cases))}{source}")
    if bench.budget is not None:
        reporter.write_line(spent_line(bench.budget, run))
    if bench.out_of_time:
        reporter.write_line(f"left out for lack of time: {', '.join(bench.out_of_time)}")
    if bench.left_out:
        reporter.write_line(f"left out after the interrupt: {', '.join(bench.left_out)}")
    if reporter.verbosity >= 0:
        for line in next_lines(bench, encoding=encoding):
            reporter.write_line(line)


def _gates_told(bench: Bench) -> set[Key]:
    """The cases whose verdict pytest has printed as the failure of a test."""
    if bench.config.option.tbstyle == "no":
        return set()
    return bench.complaints.gates_told(bench.outcomes.failed)


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
