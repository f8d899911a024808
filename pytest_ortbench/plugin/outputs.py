"""The files that a pytest run leaves behind, and what it judges before it writes them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_ortbench.core.errors import REPORT_IT, OrtbenchError
from pytest_ortbench.core.model_spec import is_onnx_file
from pytest_ortbench.core.namesakes import HOW_TO_MEND, namesake_of
from pytest_ortbench.core.stop_signals import GAVE_UP_WAITING
from pytest_ortbench.plugin import ci_files
from pytest_ortbench.plugin.destinations import is_job_summary, job_summary
from pytest_ortbench.plugin.expected_time import canary_takes_s, figures_take_s
from pytest_ortbench.plugin.terminal import relative_to
from pytest_ortbench.store.writable import is_read

if TYPE_CHECKING:
    from pytest_ortbench.core.run import Canary, Run
    from pytest_ortbench.plugin.bench import Bench
    from pytest_ortbench.plugin.judges import Judges

#: Exit codes of runs that were stopped before their end; the first one is pytest's own.
STOPPED = (2, GAVE_UP_WAITING)


def finish(bench: Bench, judges: Judges, *, interrupted: bool) -> bool:
    """Write everything that a run leaves on disk.

    Args:
        bench: The run.
        judges: What its cases are held to.
        interrupted: Whether it was stopped before its end.

    Returns:
        Whether the run failed as a whole: cases were tried and none of them gave a number, or the
        run document or a file that the user named could not be written.
    """
    if bench.finished is not None:
        return False
    keep(bench)
    wrong = settle(bench, judges)
    gating = judges.gating if bench.ran else None
    verdicts, unnamed = ((), ()) if gating is None else (gating.results, gating.unnamed)
    results = bench.execution.results if bench.started else ()
    if not results and not verdicts:
        written = [_write(bench, output, stopped=False) for output in _outputs_of_nothing(bench)]
        return wrong or "failed" in written
    measured = any(result.status == "measured" for result in results)
    canary, stopped = None, interrupted
    if measured:
        canary, stopped = _canary(bench, stopped=interrupted)
    from pytest_ortbench.core.secrets import masked

    run = masked(
        replace(
            bench.execution.run(canary=canary, interrupted=interrupted),
            gate=verdicts,
            unnamed=unnamed,
        )
    )
    bench.finished = run
    # Where nothing was tried, only verdicts on what is gone are there to tell.
    failed = wrong or (bool(results) and not measured)
    for output in _outputs(bench, run):
        outcome = _write(bench, output, stopped=stopped or bench.shield.taken)
        stopped = stopped or outcome == "skipped"
        failed = failed or (outcome == "failed" and output.asked_for)
    if bench.folder is not None:
        bench.folder.settle()
    return failed


def _canary(bench: Bench, *, stopped: bool) -> tuple[Canary | None, bool]:
    """Measure the canary unless the run was stopped or lacks time; say whether it is stopped."""
    if not stopped and bench.folder is not None and _lacks_time(bench, canary_takes_s(bench)):
        bench.out_of_time.append("canary")
        return None, False
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
) -> Literal["written", "failed", "skipped", "out of time"]:
    """Write one output, unless it takes long and the run was stopped, or has no time for it."""
    if output.later and stopped:
        _leave_out(bench, output)
        return "skipped"
    if output.later and not output.asked_for and _lacks_time(bench, figures_take_s(bench)):
        bench.out_of_time.append(_made_later(bench, output))
        return "out of time"
    # The numbers are more than their files: the table is printed whatever happens here.
    try:
        # What takes no time is not left half done.
        with nullcontext() if output.later else bench.shield.held(), warnings.catch_warnings():
            # What drawing warns of is shown, and is no error where a project makes errors of its
            # own warnings.
            warnings.simplefilter("default")
            output.write()
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        bench.errors.append(f"{output.what}: {place}can't be written: {error.strerror or error}")
        return "failed"
    except OrtbenchError as error:
        bench.errors.append(f"{output.what}: {error}")
        return "failed"
    except KeyboardInterrupt:
        _leave_out(bench, output)
        return "skipped"
    except Exception as error:  # noqa: BLE001 - a defect, of ours or of what we draw with
        said = next(iter(str(error).splitlines()), "")
        hidden = namesake_of("numpy", "matplotlib", "jinja2")
        if hidden:
            bench.errors.append(f"{output.what}: {hidden}. {HOW_TO_MEND}")
            return "failed"
        text = f"{output.what}: {type(error).__name__}: {said}".removesuffix(": ")
        bench.errors.append(f"{text}. {REPORT_IT}")
        return "failed"
    return "written"


def _lacks_time(bench: Bench, seconds: float) -> bool:
    """Whether the budget of the run has no time for something that takes so long."""
    return bench.budget is not None and not bench.budget.has_time_for(seconds)


def _leave_out(bench: Bench, output: _Output) -> None:
    bench.left_out.append(_made_later(bench, output))


def _made_later(bench: Bench, output: _Output) -> str:
    """What is left out, and the command that makes it."""
    document = next((path for what, path in bench.files if what == "run"), None)
    later = ""
    if output.later and document is not None:
        later = f" ({output.later} {relative_to(document, bench.collection.root)})"
    return f"{output.what}{later}"


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
            _Output("--ort-prometheus", lambda: _write_prometheus(bench, prometheus_path))
        )
    summary = options.summary
    if summary is not None and not is_job_summary(summary):
        outputs.append(_Output("--ort-summary", lambda: ci_files.write_comment(bench, summary)))
    shown_by_job = job_summary()
    if shown_by_job is not None:
        outputs.append(
            _Output(
                "job summary",
                lambda: ci_files.write_job_summary(bench, shown_by_job),
                asked_for=summary is not None and is_job_summary(summary),
            )
        )
    outputs += _code_quality(bench)
    metrics = options.metrics_report
    if metrics is not None:
        outputs.append(
            _Output("--ort-metrics-report", lambda: ci_files.write_metrics_report(bench, metrics))
        )
    plots = options.plots or (folder.path / "plots" if folder is not None else None)
    if plots is not None:
        outputs.append(
            _Output(
                "plots",
                lambda: _write_plots(bench, plots),
                later="ortbench plot",
                asked_for=options.plots is not None,
            )
        )
    if html_path is not None:
        outputs.append(
            _Output("--ort-html", lambda: _write_html(bench, html_path), "ortbench report")
        )
    return outputs


def _outputs_of_nothing(bench: Bench) -> list[_Output]:
    """What a CI service is told of a run without a case; nothing of one that only collects."""
    if bench.config.option.collectonly:
        return []
    summary = bench.options.summary
    told = _code_quality(bench) if _is_free(bench, bench.options.code_quality) else []
    if summary is not None and _is_free(bench, summary):
        told.append(_Output("--ort-summary", lambda: ci_files.write_without_cases(bench, summary)))
    return told


def _is_free(bench: Bench, path: Path | None) -> bool:
    """Whether a refused run may write to a path: it leads to no model, planned or not."""
    return path is None or not (is_onnx_file(path) or is_read(path, bench.read_files))


def _code_quality(bench: Bench) -> list[_Output]:
    path = bench.options.code_quality
    if path is None:
        return []
    return [_Output("--ort-code-quality", lambda: ci_files.write_code_quality(bench, path))]


def _note(bench: Bench, what: str, path: Path) -> None:
    bench.files.append((what, path))


def _write_json(bench: Bench, run: Run, path: Path) -> None:
    from pytest_ortbench.store.folder import write_document

    write_document(run, path)
    _note(bench, "run", path)


def _write_plots(bench: Bench, folder: Path) -> None:
    from pytest_ortbench.report.figures import write_figures
    from pytest_ortbench.report.figures.slo import slo_of_limits

    if write_figures(bench.shown.entries, folder, slo=slo_of_limits(bench.limits)):
        _note(bench, "plots", folder)


def _write_html(bench: Bench, path: Path) -> None:
    from pytest_ortbench.report.figures.slo import slo_of_limits
    from pytest_ortbench.report.html import write_html

    write_html(bench.shown, path, slo=slo_of_limits(bench.limits))
    _note(bench, "report", path)


def _write_prometheus(bench: Bench, path: Path) -> None:
    from pytest_ortbench.core.whole_file import replace_file
    from pytest_ortbench.report.prometheus import render_prometheus

    replace_file(path, render_prometheus(bench.shown).encode())
    _note(bench, "metrics", path)


def keep(bench: Bench) -> None:
    """Write the document before anything is compared; it counts as unfinished until then."""
    if bench.started and bench.execution.results and bench.folder is not None:
        # What fails here fails again where it is reported.
        with bench.shield.held(), suppress(OrtbenchError):
            bench.folder.keep(bench.execution.run(interrupted=True))


def _fail(bench: Bench, text: str) -> bool:
    """Note an error that fails the run."""
    bench.errors.append(text)
    bench.complaints.of_run([text])
    return True


def settle(bench: Bench, judges: Judges) -> bool:
    """Judge what no test carried; say what was not judged, and whether that fails the run.

    Nothing is missing where no test was run.
    """
    if not bench.ran or bench.collection.usage_errors:
        return False
    try:
        judges.judging.settle()
    except OrtbenchError as error:
        return _fail(bench, f"gate: {error}")
    except Exception as error:  # noqa: BLE001 - a defect of ours must not cost what was measured
        return _fail(bench, f"gate: {type(error).__name__}: {error}. {REPORT_IT}")
    problems = judges.asked_limits.problems()
    if judges.gating is not None:
        problems += [f"gate: {text}" for text in judges.gating.problems()]
        bench.remarks += [f"gate: {text}" for text in judges.gating.remarks()]
    problems += bench.misplaced.problems(bench.outcomes)
    # Where all that was asked for is gone, the verdicts on that are what the run says.
    if bench.collection.left_out and not (judges.gating and judges.gating.items):
        problems.append(f"no case was measured: {bench.why_no_case}")
    bench.complaints.of_run([*judges.judging.problems_beside_gate(), *problems])
    bench.complaints.of_run(judges.judging.unreached(), are_unreached=True)
    problems = [*judges.judging.problems(), *problems]
    bench.errors += problems
    bench.remarks += [*judges.judging.remarks(), *judges.asked_limits.remarks()]
    bench.remarks += bench.marked_limits.remarks(bench.outcomes)
    return bool(problems)
