"""``ortbench gate``: compares two stored runs, and tests the gate itself."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ortbench.cli.arguments import FiniteRange, epilog, load_run, results_option
from pytest_ortbench.cli.terminal import ExitCode, encoding, say, table, warn
from pytest_ortbench.core.acceptance import FILE_NAME
from pytest_ortbench.core.errors import UsageError, WorkerError
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.patterned import refuse_unfitting
from pytest_ortbench.core.units import counted
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.measuring.self_test import SelfTest
from pytest_ortbench.gate.measuring.stored_self_test import spreads_on, stored_trials
from pytest_ortbench.gate.measuring.trial_log import StoredTrialLog, TrialLog
from pytest_ortbench.gate.numbers.acceptance import mends
from pytest_ortbench.gate.numbers.rules import parse_rules, refuse_rules_of_sides
from pytest_ortbench.gate.numbers.same_models import models_of, twins
from pytest_ortbench.gate.numbers.stored import gate_runs
from pytest_ortbench.gate.report.lines import gate_lines, gate_naming, runtimes_of
from pytest_ortbench.gate.report.self_test import (
    HEADER,
    MODEL_HEADER,
    model_rows,
    self_test_rows,
    self_test_sentences,
)
from pytest_ortbench.gate.report.stored_self_test import (
    CASE_HEADER,
    VERDICT_HEADER,
    rows_by_case,
    stored_sentences,
    verdict_rows,
)
from pytest_ortbench.launch.machine import fingerprint
from pytest_ortbench.models.widened import write_widened
from pytest_ortbench.planning.axes import split_list
from pytest_ortbench.planning.project_root import root_directory
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.session import Session
from pytest_ortbench.store.accepted import load_acceptances

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case
    from pytest_ortbench.gate.numbers.self_test import Trial
    from pytest_ortbench.gate.numbers.stored_trials import StoredTrial

#: Small, middling and large, as far as two CPUs go.
_MODELS = ("zoo:silero-vad", "builtin:mobilenet_v2", "zoo:nudenet-320n")


@click.command(
    epilog=epilog(
        "ortbench gate baseline/run.json latest",
        "ortbench gate baseline/run.json latest '--limits=peak_rss:5%,placement:>=95%'",
        "ortbench gate --self-test --minutes=30 --resume",
        "ortbench gate --self-test --threads=2 --resume --file=self-test.jsonl",
        "ortbench gate --self-test --stored --minutes=60 --resume",
    )
)
@click.argument("runs", metavar="[BASELINE CONTENDER]", nargs=-1)
@click.option(
    "--limits",
    metavar="LIMITS",
    multiple=True,
    help="As --ort-gate of pytest: latency:3%, peak_rss:2%+1MiB, PATTERN@latency:5%.",
)
@click.option("--strict", is_flag=True, help="Inconclusive comparisons fail.")
@click.option(
    "--accepted",
    type=click.Path(path_type=Path),
    help=f"File of accepted changes. [default: {FILE_NAME} in pytest's root directory]",
)
@results_option
@click.option("--self-test", is_flag=True, help="Run gates on sides whose difference is known.")
@click.option(
    "--stored",
    is_flag=True,
    help="With --self-test: measure the same code again and again, and judge each run by the "
    "others, as --ort-baseline does.",
)
@click.option(
    "--minutes",
    type=FiniteRange(min=0),
    default=10.0,
    show_default=True,
    help="How long the self-test runs; 0 with --resume only counts the trials so far.",
)
@click.option("--resume", is_flag=True, help="Count the trials of earlier calls, too.")
@click.option(
    "--models",
    metavar="SPEC",
    multiple=True,
    help=f"Models of the self-test. [default: {', '.join(_MODELS)}]",
)
@click.option("--threads", type=click.IntRange(min=1), help="Intra-op threads of the self-test.")
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the self-test's trials; by default in the user's state folder, by machine, "
    "where pytest looks up what this machine can resolve.",
)
def command(
    runs: tuple[str, ...],
    limits: tuple[str, ...],
    strict: bool,
    accepted: Path | None,
    results: Path,
    self_test: bool,
    stored: bool,
    minutes: float,
    resume: bool,
    models: tuple[str, ...],
    threads: int | None,
    file: Path | None,
) -> int:
    """Compare the run CONTENDER with the run BASELINE, or test the gate itself.

    Status, memory, size, placement and accuracy are gated always; latency only where both runs are
    of the same dedicated machine and their recorded noise allows the margin. To decide about
    latency on a shared machine, measure both sides in one run: pytest --ort-against=SIDE.

    The self-test counts how often verdicts on this machine are right; with --stored, verdicts of a
    run against stored runs.
    """
    if self_test:
        if runs:
            raise UsageError(
                f"the self-test takes no runs, but {len(runs)} {'is' if len(runs) == 1 else 'are'} "
                "named",
                place="--self-test",
                hint=f"For a self-test, leave {' and '.join(runs)} out. To compare two runs, leave "
                "--self-test out",
            )
        of_kind = _stored_self_test if stored else _self_test
        return of_kind(minutes, resume, models or _MODELS, threads, file)
    if stored:
        raise UsageError(
            "this option is for the self-test only",
            place="--stored",
            hint="Leave --stored out" if runs else "Write 'ortbench gate --self-test --stored'",
        )
    if len(runs) != 2:
        raise UsageError(
            f"a gate compares two runs, but {len(runs) or 'none'} "
            f"{'is' if len(runs) < 2 else 'are'} named",
            place="gate",
            hint="Write the older run, then the newer one, e.g. 'ortbench gate old/run.json "
            "new/run.json'",
        )
    return _compare(runs, limits, strict, accepted, results)


def _compare(
    runs: Sequence[str],
    limits: Sequence[str],
    strict: bool,
    accepted: Path | None,
    results: Path,
) -> int:
    place = "--limits"
    rules = parse_rules(split_list(tuple(limits), place=place), place=place)
    baseline, contender = (load_run(spec, results) for spec in runs)
    if baseline.run_id == contender.run_id:
        warn(f"note: both sides are {baseline.run_id}: a run is compared with itself")
    case_ids = {case.case.case_id: None for run in (contender, baseline) for case in run.cases}
    refuse_unfitting(rules, case_ids, place=place)
    refuse_rules_of_sides(rules, place=place)
    acceptances = load_acceptances(accepted, root_directory(Path.cwd()))
    judged = [
        acceptances.applied(result, strict=strict, case_ids=case_ids)
        for result in gate_runs(baseline, contender, rules, spreads_on(contender.machine))
    ]
    gated = replace(contender, gate=tuple(judged))
    for line in gate_lines(gated, encoding=encoding())[1:]:
        say(line)
    for verdict in judged:
        for mend in mends([verdict], strict=strict):
            warn(f"note: {verdict.case_id}{verdict.role_note}: {mend}")
    for remark in acceptances.remarks(judged, case_ids):
        warn(f"note: {remark}")
    name = gate_naming(runtimes_of(gated))
    same = twins(models_of(baseline).values(), models_of(contender).values())
    measured = {result.case.key: result.status == "measured" for result in baseline.cases}
    both = 0
    for case in contender.cases:
        key = same.key_of(case.case)
        both += bool(key and measured.get(key) and case.status == "measured")
        if key not in measured:
            doubt = same.doubtful.get(case.case.model.name, "")
            new = name(GateResult.undecided(case.case, baseline=""))
            say(f"new: {new}{f' ({doubt})' if doubt else ''}")
    told = any(result.failures or result.accepted for result in judged)
    if not both and not told:
        warn("ortbench: nothing was compared: no case was measured in both runs")
        return ExitCode.NOTHING
    failed = any(result.failures or (strict and result.warnings) for result in judged)
    return ExitCode.LIMIT_FAILED if failed else ExitCode.FINE


def _self_test(
    minutes: float, resume: bool, models: Sequence[str], threads: int | None, file: Path | None
) -> int:
    machine = fingerprint()
    log = TrialLog.of(machine) if file is None else TrialLog(file)
    earlier = log.read() if resume else ()
    trials = [trial for trial in earlier if threads is None or trial.threads == threads]
    if len(trials) < len(earlier):
        warn(f"note: {len(earlier) - len(trials)} trials with other --threads are not counted")
    if minutes:
        _try_for(minutes, models, threads, log, trials)
    if not trials:
        warn("ortbench: no trial was finished. Raise --minutes")
        return ExitCode.NOTHING
    say(table(self_test_rows(trials), header=HEADER))
    say("")
    say(table(model_rows(trials), header=MODEL_HEADER))
    say("")
    for sentence in self_test_sentences(trials):
        say(sentence)
    say(f"stored: {log.path}")
    return ExitCode.FINE


def _stored_self_test(
    minutes: float, resume: bool, models: Sequence[str], threads: int | None, file: Path | None
) -> int:
    log = StoredTrialLog.of(fingerprint()) if file is None else StoredTrialLog(file)
    trials = list(log.read()) if resume else []
    if minutes:
        _measure_for(minutes, models, threads, log, trials)
    if not trials:
        warn("ortbench: no run was finished. Raise --minutes")
        return ExitCode.NOTHING
    say(table(verdict_rows(trials), header=VERDICT_HEADER))
    say("")
    say(table(rows_by_case(trials), header=CASE_HEADER))
    say("")
    for sentence in stored_sentences(trials):
        say(sentence)
    say(f"stored: {log.path}")
    return ExitCode.FINE


def _measure_for(
    minutes: float,
    models: Sequence[str],
    threads: int | None,
    log: StoredTrialLog,
    trials: list[StoredTrial],
) -> None:
    """Measure for so long, on top of the runs that there are; each is on disk at once."""
    until = time.monotonic() + 60 * minutes
    with (
        OwnFolder("self-test") as folder,
        Session(Path.cwd(), notify=warn) as session,
    ):
        made = stored_trials(
            _cases(session, models, threads),
            session.launcher,
            folder,
            until=until,
            version=VERSION,
            seed=len(trials),
        )
        try:
            for trial in made:
                log.append(trial)
                trials.append(trial)
                warn(_run_line(trial))
        except WorkerError as error:
            warn(f"ortbench: {error}")
        except KeyboardInterrupt:
            warn("stopped; the runs so far are stored")


def _run_line(trial: StoredTrial) -> str:
    ratio = trial.relative
    said = f"no ratio ({trial.cause})" if ratio is None else f"ratio {ratio.value:.4g}"
    flags = f" {' '.join(trial.flags)}" if trial.flags else ""
    threads = counted(trial.threads, "thread") if trial.threads else "all threads"
    return f"{trial.model}, {threads}: {said}, {trial.wall_s:.0f} s, load {trial.load:.1f}{flags}"


def _try_for(
    minutes: float, models: Sequence[str], threads: int | None, log: TrialLog, trials: list[Trial]
) -> None:
    """Make trials for so long, on top of those that there are; each is on disk at once."""
    until = time.monotonic() + 60 * minutes
    with _prepared(models, threads) as test:
        try:
            for trial in test.run(until, done=len(trials)):
                log.append(trial)
                trials.append(trial)
                warn(_line(trial))
        except WorkerError as error:
            warn(f"ortbench: {error}")
        except KeyboardInterrupt:
            warn("stopped; the trials so far are stored")
        if test.left_out:
            warn(
                f"note: {test.left_out} gates with added work were left out while the machine was "
                "busy, so the trials come from calmer moments"
            )


def _line(trial: Trial) -> str:
    effect = "" if trial.effect is None else f" {100 * trial.effect:+.2f} %"
    flags = f" {' '.join(trial.flags)}" if trial.flags else ""
    reason = f" ({trial.reason})" if trial.reason else ""
    return (
        f"{trial.model} {trial.kind}: {trial.verdict}{effect}, {trial.launches} launches, "
        f"{trial.wall_s:.0f} s, load {trial.load:.1f}{flags}{reason}"
    )


@contextmanager
def _prepared(models: Sequence[str], threads: int | None) -> Iterator[SelfTest]:
    """The self-test with its models resolved; ends every process that is left."""
    with (
        OwnFolder("self-test") as folder,
        Session(Path.cwd(), notify=warn) as session,
    ):
        narrow, wide = write_widened(folder / "widened")
        yield SelfTest(
            launcher=session.launcher,
            machine=fingerprint(),
            cases=_cases(session, models, threads),
            wider=(_pair(session, narrow, wide, threads), 0.071),
            scratch=folder,
            version=VERSION,
            seed=time.time_ns() % 2**31,
            notify=warn,
        )


def _cases(session: Session, models: Sequence[str], threads: int | None) -> list[Case]:
    request = PlanRequest(models=tuple(models), threads=() if threads is None else (threads,))
    cases = []
    for entry in session.plan(request).entries:
        if entry.refusal is not None:
            message = f"{entry.case.case_id}: {entry.refusal.message}"
            raise UsageError(message, place="--models", hint=entry.refusal.hint)
        cases.append(entry.case)
    return cases


def _pair(session: Session, narrow: Path, wide: Path, threads: int | None) -> Pair:
    baseline, contender = _cases(session, (str(narrow), str(wide)), threads)
    return Pair(baseline=baseline, contender=contender)
