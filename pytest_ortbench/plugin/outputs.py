"""What a pytest run leaves behind: lines after collection, documents, the table and its answer."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.plugin.settling import DEFECT, keep, settle

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.core.run import Canary, Run
    from pytest_ortbench.plugin.bench import Bench

_LISTED_SKIPS = 20
_LOG_WIDTH = 150


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
                + (f" ({'; '.join(spec.resolved)})" if spec.resolved else "")
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
        results = _shown(bench.options.results, bench.collection.root)
        where = f"{results}, which holds no interrupted run of this plan with a measured case"
    return [f"ortbench: resumed: {_taken(taken, len(bench.planned))} from {where}"]


def _taken(taken: int, of: int) -> str:
    return f"{taken or 'none'} of {_cases(of)} taken"


def _listed(runs: Sequence[str]) -> str:
    return " and ".join(runs)


def _less(refused: int) -> str:
    return f", {refused} of them can't run as asked" if refused else ""


def finish(bench: Bench, *, interrupted: bool) -> bool:
    """Write everything that a run leaves on disk.

    Args:
        bench: The run.
        interrupted: Whether it was stopped before its end.

    Returns:
        Whether the run failed as a whole: cases were tried and none of them gave a number, or the
        run document or a file that the user named could not be written.
    """
    if bench.finished is not None:
        return False
    keep(bench)
    wrong = settle(bench)
    verdicts = bench.gating.results if bench.gating is not None and bench.ran else ()
    results = bench.engine.results if bench.started else ()
    if not results and not verdicts:
        return wrong
    measured = any(result.status == "measured" for result in results)
    canary, stopped = None, interrupted
    if measured:
        canary, stopped = _canary(bench, stopped=interrupted)
    run = replace(bench.engine.run(canary=canary, interrupted=interrupted), gate=verdicts)
    bench.finished = run
    # Where nothing was tried, only verdicts on what is gone are there to tell.
    failed = wrong or (bool(results) and not measured)
    for output in _outputs(bench, run):
        outcome = _write(bench, output, stopped=stopped or bench.shield.taken)
        stopped = stopped or outcome == "left out"
        failed = failed or (outcome == "failed" and output.asked_for)
    return failed


def _canary(bench: Bench, *, stopped: bool) -> tuple[Canary | None, bool]:
    """Measure the canary unless the run was stopped; say whether it is now."""
    if not stopped:
        try:
            return bench.measure_canary(), False
        except KeyboardInterrupt:
            pass
    if bench.folder is not None:
        bench.left_out.append("canary")
    return None, True


@dataclass(frozen=True, slots=True)
class _Output:
    """One thing that a run leaves behind.

    Attributes:
        what: The name that an error is reported under.
        write: Writes it.
        later: The command that makes it from the document; empty for what takes no time, which
            is written even when somebody waits for the end.
        asked_for: Whether the run is not what was asked for without it.
    """

    what: str
    write: Callable[[], None]
    later: str = ""
    asked_for: bool = True


def _write(
    bench: Bench, output: _Output, *, stopped: bool
) -> Literal["written", "failed", "left out"]:
    """Write one output, unless it takes long and the run was stopped."""
    if output.later and stopped:
        _leave_out(bench, output)
        return "left out"
    # The numbers are more than their files: the table is printed whatever happens here.
    try:
        # What takes no time is not left half done.
        with nullcontext() if output.later else bench.shield.held(), warnings.catch_warnings():
            # What drawing warns of is shown, and is no error where a project makes errors of its
            # own warnings.
            warnings.simplefilter("default")
            output.write()
    except (OrtbenchError, OSError) as error:
        bench.errors.append(f"{output.what}: {error}")
        return "failed"
    except KeyboardInterrupt:
        _leave_out(bench, output)
        return "left out"
    except Exception as error:  # noqa: BLE001 - a defect, of ours or of what we draw with
        said = next(iter(str(error).splitlines()), "")
        text = f"{output.what}: {type(error).__name__}: {said}".removesuffix(": ")
        bench.errors.append(f"{text}. {DEFECT}")
        return "failed"
    return "written"


def _leave_out(bench: Bench, output: _Output) -> None:
    document = next((path for what, path in bench.files if what == "run"), None)
    later = ""
    if output.later and document is not None:
        later = f" ({output.later} {_shown(document, bench.collection.root)})"
    bench.left_out.append(f"{output.what}{later}")


def _outputs(bench: Bench, run: Run) -> list[_Output]:
    """What to write, what takes no time first."""
    options = bench.options
    outputs: list[_Output] = []
    folder = bench.folder
    if folder is not None:
        outputs.append(_Output("run document", lambda: _note(bench, "run", folder.finish(run))))
    json_path, html_path = options.json, options.html
    if json_path is not None:
        outputs.append(_Output("--ort-json", lambda: _write_json(bench, run, json_path)))
    prometheus_path = options.prometheus
    if prometheus_path is not None:
        outputs.append(
            _Output("--ort-prometheus", lambda: _write_prometheus(bench, run, prometheus_path))
        )
    job_summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if job_summary:
        outputs.append(
            _Output(
                "job summary",
                lambda: _write_job_summary(run, Path(job_summary)),
                asked_for=False,
            )
        )
    plots = options.plots or (folder.path / "plots" if folder is not None else None)
    if plots is not None:
        outputs.append(
            _Output(
                "plots",
                lambda: _write_plots(bench, run, plots),
                later="ortbench plot",
                asked_for=options.plots is not None,
            )
        )
    if html_path is not None:
        outputs.append(
            _Output("--ort-html", lambda: _write_html(bench, run, html_path), "ortbench report")
        )
    return outputs


def _note(bench: Bench, what: str, path: Path) -> None:
    bench.files.append((what, path))


def _write_json(bench: Bench, run: Run, path: Path) -> None:
    from pytest_ortbench.store.folder import write_document

    write_document(run, path)
    _note(bench, "run", path)


def _write_plots(bench: Bench, run: Run, folder: Path) -> None:
    from pytest_ortbench.report.figures import write_figures
    from pytest_ortbench.report.figures.slo import slo_of_limits

    folder.mkdir(parents=True, exist_ok=True)
    if write_figures(run, folder, slo=slo_of_limits(bench.limits)):
        _note(bench, "plots", folder)


def _write_html(bench: Bench, run: Run, path: Path) -> None:
    from pytest_ortbench.report.figures.slo import slo_of_limits
    from pytest_ortbench.report.html import write_html

    path.parent.mkdir(parents=True, exist_ok=True)
    write_html(run, path, slo=slo_of_limits(bench.limits))
    _note(bench, "report", path)


def _write_job_summary(run: Run, path: Path) -> None:
    from pytest_ortbench.gate.report.lines import gate_markdown
    from pytest_ortbench.report.markdown import job_summary

    with path.open("a", encoding="utf-8") as file:
        file.write(job_summary(run) + gate_markdown(run))


def _write_prometheus(bench: Bench, run: Run, path: Path) -> None:
    from pytest_ortbench.report.prometheus import render_prometheus
    from pytest_ortbench.store.journal import replace_file

    replace_file(path, render_prometheus(run).encode())
    _note(bench, "metrics", path)


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
            run,
            width=_width(reporter),
            color=color,
            encoding=encoding,
            # Said already when the tests were collected, unless there were too many.
            skips=len(run.skips) > _LISTED_SKIPS,
        )
        reporter.write(table)
        for line in precision_lines(run, width=_width(reporter), encoding=encoding):
            reporter.write_line(line)
        for line in block_lines(run, encoding=encoding):
            reporter.write_line(line)
        for line in run_profile_lines(run, width=_width(reporter), encoding=encoding):
            reporter.write_line(line)
        reporter.write_line("")
    for line in (*answer_lines(run, encoding=encoding), *gate_lines(run, encoding=encoding)):
        reporter.write_line(line)
    for what, path in bench.files:
        reporter.write_line(f"{what}: {_shown(path, bench.collection.root)}")
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


def _shown(path: Path, root: Path) -> Path:
    with suppress(ValueError):
        return path.relative_to(root)
    return path
