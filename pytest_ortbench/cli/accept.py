"""``ortbench accept``: a regression or a removal that is meant, written into the project's file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ortbench.cli.arguments import epilog, load_run, results_option
from pytest_ortbench.cli.terminal import ExitCode, say, table, warn
from pytest_ortbench.core.acceptance import FILE_NAME, AcceptedEntry, metric_name
from pytest_ortbench.core.errors import UsageError, did_you_mean, nearest
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.run import LATEST
from pytest_ortbench.planning.project_root import root_directory
from pytest_ortbench.store import accepted
from pytest_ortbench.store.accepted import accept, parse_day, parse_share, read_accepted
from pytest_ortbench.store.documents import list_runs

if TYPE_CHECKING:
    from pytest_ortbench.core.gate import GateFinding, GateResult
    from pytest_ortbench.core.model import Model
    from pytest_ortbench.core.run import Run

_HEADER = ["case", "metric", "accepted", "until", "state", "reason"]


@click.command(
    epilog=epilog(
        "ortbench accept resnet/native/cpu/b1 --reason='the new head costs 8 %, agreed'",
        "ortbench accept 'resnet*' --metric=model_size --reason='more classes' --until=2027-01-31",
        "ortbench accept old --metric=removed --reason='replaced by resnet'",
        "ortbench accept --list",
    )
)
@click.argument("case", required=False)
@click.option("--metric", metavar="METRIC", help="Accept only this: a metric, answers, removed, …")
@click.option("--reason", metavar="TEXT", help="Why it is accepted; it is shown in every run.")
@click.option("--until", metavar="DATE", help="The last day on which it is valid: 2027-01-31.")
@click.option(
    "--worse-by",
    metavar="SHARE",
    help="How much worse than the baseline it may be, e.g. 8%. [default: what the run saw, and "
    "what measuring it again may add]",
)
@click.option("--run", "spec", metavar="RUN", help="The run whose gate failed. [default: latest]")
@click.option("--list", "listing", is_flag=True, help="Show what is accepted, and what expired.")
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    help=f"The file of acceptances. [default: {FILE_NAME} in pytest's root directory]",
)
@results_option
def command(
    case: str | None,
    metric: str | None,
    reason: str | None,
    until: str | None,
    worse_by: str | None,
    spec: str | None,
    listing: bool,
    file: Path | None,
    results: Path,
) -> int:
    """Accept what a gate found worse in CASE, so that it does not fail the next run.

    CASE is the id of a case, whole parts of ids (a model's name) or a glob. A number is accepted up
    to the worsening that RUN measured, anything else for the model file that RUN measured.
    """
    root = root_directory(Path.cwd())
    path = root / FILE_NAME if file is None else file
    if listing:
        return _list(path, must_exist=file is not None)
    asked = _asked(case, metric, reason, until, worse_by)
    run = _run(spec, results)
    entries = _entries(asked, run)
    if run is not None:
        _compare_files(asked, run, root, is_named=spec is not None)
    return _write(path, entries)


def _asked(
    case: str | None,
    metric: str | None,
    reason: str | None,
    until: str | None,
    worse_by: str | None,
) -> AcceptedEntry:
    """What the command line asks for, as one entry.

    Raises:
        UsageError: if something is missing or wrong.
    """
    if case is None or not case.strip():
        raise UsageError(
            "no case is named" if case is None else f"{case!r} does not name a case",
            place="accept",
            hint="Write 'ortbench accept CASE --reason=TEXT', where CASE is a case or a model that "
            "'ortbench show' lists, e.g. net/native/cpu/b1",
        )
    if reason is None or not reason.strip():
        raise UsageError(
            "an acceptance needs a reason",
            place="--reason",
            hint="Write e.g. --reason='the new head costs 5 %'",
        )
    last = None if until is None else parse_day(until, place="--until")
    if last is not None:
        _refuse_past(last)
    return AcceptedEntry(
        case=_one_line(case),
        metric="" if metric is None else metric_name(metric.strip(), place="--metric"),
        reason=_one_line(reason),
        until=last,
        worse_by=None if worse_by is None else parse_share(worse_by, place="--worse-by"),
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _refuse_past(last: date) -> None:
    if last < accepted.today():
        raise UsageError(
            f"{last.isoformat()} is in the past: today is {accepted.today().isoformat()}",
            place="--until",
            hint="Name today or a later day. For an acceptance without an end, leave --until out",
        )


def _run(spec: str | None, results: Path) -> Run | None:
    """The run that was named, else the newest finished one; ``None`` where there is none."""
    if spec is None:
        if not any(run.state == "finished" for run in list_runs(results)):
            return None
        spec = LATEST
    return load_run(spec, results)


def _entries(asked: AcceptedEntry, run: Run | None) -> list[AcceptedEntry]:
    """What to write: an entry for each thing that the run's gate found worse in the case.

    Raises:
        UsageError: if the run has no such case, or nothing to accept.
    """
    if run is None:
        return [asked]
    judged = _judged(asked, run)
    failing = [
        (result, finding)
        for result in judged
        for finding in _failing(result.findings)
        if asked.is_about(finding.about)
    ]
    if not failing:
        if not asked.metric:
            in_advance = "To accept a change in advance, name the metric, e.g. --metric=latency"
            if not run.gate:
                raise UsageError(
                    f"the run {run.run_id} was not compared with a baseline, so it does not say "
                    "what got worse",
                    place="accept",
                    hint="Run pytest with --ort-against=git:main, and accept what that run finds. "
                    f"{in_advance}",
                )
            raise UsageError(
                f"the gate found nothing worse for {asked.case!r} in the run {run.run_id}, so "
                "there is nothing to accept",
                place="accept",
                hint=f"If another run got worse, name that run with --run=RUN. {in_advance}",
            )
        return [asked]
    if asked.metric:
        return list(_bounded(asked, failing))
    by_subject: dict[str, list[tuple[GateResult, GateFinding]]] = {}
    for result, finding in failing:
        by_subject.setdefault(finding.about, []).append((result, finding))
    return [
        entry
        for about, some in by_subject.items()
        for entry in _bounded(replace(asked, metric=about), some)
    ]


def _compare_files(asked: AcceptedEntry, run: Run, root: Path, *, is_named: bool) -> None:
    """Look whether a run measured the model files that lie here now, and say where it did not.

    Args:
        asked: What is to be accepted.
        run: The run that it was found in.
        root: Folder that the places of models start at.
        is_named: Whether the user named the run; the newest one may be of another branch.

    Raises:
        UsageError: if the newest run measured another file than the one that lies here.
    """
    models = {result.case.key: result.case.model for result in run.cases}
    judged = [
        models[key]
        for result in _judged(asked, run)
        if any(asked.is_about(finding.about) for finding in result.findings)
        and (key := (result.case_id, result.runtime)) in models
    ]
    for model in {model.name: model for model in judged}.values():
        now = _digest_now(model, root)
        if now in ("", model.digest):
            continue
        place = model.place or model.path
        differs = (
            f"{place} has changed since the run {run.run_id} measured it: its SHA-256 was "
            f"{_shown_digest(model.digest)} and is {_shown_digest(now)} now"
        )
        if is_named:
            warn(f"note: {differs}. What is accepted is what that run found")
            continue
        raise UsageError(
            differs,
            place="accept",
            hint="To accept the file as it is now, run pytest with --ort-against or "
            "--ort-baseline again first. To accept what the run above found, add "
            f"--run={run.run_id}",
        )


def _digest_now(model: Model, root: Path) -> str:
    """The digest of a model's file as it lies here; empty where none does, or it is no file."""
    if not model.digest or model.is_made or model.source != "file":
        return ""
    path = root / model.place if model.place else Path(model.path)
    external = tuple((name, path.parent / name) for name in sorted(model.external_files))
    try:
        return file_digest(path, external)
    except (OSError, ValueError):
        return ""


def _shown_digest(digest: str) -> str:
    return f"{digest[:_SHOWN_DIGEST]}…"


def _failing(findings: Sequence[GateFinding]) -> list[GateFinding]:
    """What fails; where nothing does, what --ort-gate-strict makes fail."""
    return [finding for finding in findings if finding.fails] or list(findings)


def _judged(asked: AcceptedEntry, run: Run) -> list[GateResult]:
    """The verdicts on the cases that are meant.

    Raises:
        UsageError: if the run has no such case.
    """
    names = {result.case.key for result in run.cases}
    names |= {(result.case_id, result.runtime) for result in run.gate}
    case_ids = {case_id for case_id, _ in names}
    if not any(asked.fits(case_id, runtime, case_ids) for case_id, runtime in names):
        models = {result.case.model.name for result in run.cases}
        models |= {result.model for result in run.gate if result.model}
        raise UsageError(
            f"{asked.case!r} matches no case of the run {run.run_id}",
            place="accept",
            hint=did_you_mean(asked.case, case_ids | models)
            if nearest(asked.case, case_ids | models)
            else f"{did_you_mean(asked.case, models)}. If another run has {asked.case!r}, name its "
            "file, e.g. --run=results/RUN/run.json",
        )
    return [result for result in run.gate if asked.fits(result.case_id, result.runtime, case_ids)]


def _bounded(
    entry: AcceptedEntry, failing: Sequence[tuple[GateResult, GateFinding]]
) -> Iterator[AcceptedEntry]:
    """The entry with how much is accepted, or of which model file: one entry a file."""
    shares = [finding.worse_by for _, finding in failing]
    numbers = [
        finding.worse_by + finding.slack for _, finding in failing if finding.worse_by is not None
    ]
    if entry.worse_by is None and len(numbers) == len(shares):
        # Rounded up to a whole percent: a number that people read and edit.
        entry = replace(entry, worse_by=math.ceil(100 * max(numbers) - 1e-9) / 100)
    if entry.worse_by is not None:
        yield entry
        return
    digests = {result.model_digest for result, _ in failing}
    if len(digests) == 1:
        yield replace(entry, model=digests.pop()[:_SHOWN_DIGEST])
        return
    for case_id, digest in {(result.case_id, result.model_digest): None for result, _ in failing}:
        yield replace(entry, case=case_id, model=digest[:_SHOWN_DIGEST])


#: So many digits of a digest tell the files of a project apart.
_SHOWN_DIGEST = 16


def _write(path: Path, entries: Sequence[AcceptedEntry]) -> int:
    replaced = {(entry.case, entry.metric) for entry in accept(path, entries)}
    for entry in entries:
        again = " again" if (entry.case, entry.metric) in replaced else ""
        say(f"accepted{again}: {entry.text}{_limits(entry)}: {entry.reason}")
    say(f"written to {path}: commit this file together with the change that it accepts")
    for entry in entries:
        if entry.worse_by is None and not entry.model and entry.metric != "removed":
            worse = entry.metric or "every metric"
            warn(
                f"note: no run says how much worse {entry.case} is, so {worse} may get worse by "
                "any amount. To set a limit, add --worse-by=8% or --run=RUN"
            )
    return ExitCode.FINE


def _limits(entry: AcceptedEntry) -> str:
    limits = []
    if entry.worse_by is not None:
        limits.append(f"up to {100 * entry.worse_by:.12g} % worse")
    if entry.model:
        limits.append(f"for the model file {entry.model}…")
    if entry.until is not None:
        limits.append(f"until {entry.until.isoformat()}")
    return f" {', '.join(limits)}" if limits else ""


def _list(path: Path, *, must_exist: bool) -> int:
    entries = read_accepted(path, must_exist=must_exist)
    if not entries:
        say(f"nothing is accepted in {path}")
        return ExitCode.FINE
    say(table(list(_rows(entries, accepted.today())), header=_HEADER))
    return ExitCode.FINE


def _rows(entries: Iterable[AcceptedEntry], day: date) -> Iterator[list[str]]:
    for entry in entries:
        is_over = entry.until is not None and entry.until < day
        bound = "any amount"
        if entry.metric == "removed":
            bound = ""
        if entry.model:
            bound = f"file {entry.model}…"
        if entry.worse_by is not None:
            bound = f"{100 * entry.worse_by:.12g} % worse"
        yield [
            entry.case,
            entry.metric or "everything",
            bound,
            "" if entry.until is None else entry.until.isoformat(),
            "expired" if is_over else "holds",
            entry.reason,
        ]
