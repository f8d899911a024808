"""``ortbench init``: a suite, its options and a CI job for the models of a repository."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import click

from pytest_ortbench.cli.adoption.repository import GITHUB, GITLAB, Repository, look_at, shown
from pytest_ortbench.cli.adoption.suite import OPTIONS, SUITE, literal, options, patterns, suite
from pytest_ortbench.cli.adoption.workflows import (
    GITHUB_FILE,
    GITLAB_FILE,
    GITLAB_INCLUDED,
    github_workflow,
    gitlab_job,
    ignored,
)
from pytest_ortbench.cli.adoption.writing import (
    RESULTS,
    NewFile,
    is_free,
    refuse_impossible,
    write_file,
)
from pytest_ortbench.cli.arguments import epilog
from pytest_ortbench.cli.terminal import ExitCode, say, warn, write
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.model_spec import is_by_name
from pytest_ortbench.core.option_text import OptionText, exists
from pytest_ortbench.core.units import counted
from pytest_ortbench.planning.named_models import suite_file
from pytest_ortbench.plugin.option_readers import read_budget

IGNORE_FILE = ".gitignore"

#: What a job may take beside its budget: installing, fetching models, the launches of a gate.
_BESIDE_MINUTES = 30
#: What a run may take that has no budget.
_UNBOUNDED_S = 3600.0


@click.command(
    epilog=epilog(
        "ortbench init",
        "ortbench init --ci=gitlab --budget=5m --yes",
        "ortbench init --model=zoo:silero-vad --ci=none",
    )
)
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.option(
    "--ci",
    type=click.Choice(["auto", GITHUB, GITLAB, "none"]),
    default="auto",
    show_default=True,
    help="The service to write a job for; auto: what the repository has, or where it comes from.",
)
@click.option(
    "--model",
    "specs",
    metavar="SPEC",
    multiple=True,
    help="A model beside or in place of those of the repository: zoo:NAME, builtin:NAME.",
)
@click.option("--budget", default="10m", show_default=True, help="Time that a run may take.")
@click.option(
    "--linux-only", is_flag=True, help="Write no jobs for Windows and macOS, which start by hand."
)
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--force", is_flag=True, help="Write over files that are there, too.")
def command(
    folder: Path,
    ci: str,
    specs: tuple[str, ...],
    budget: str,
    linux_only: bool,
    yes: bool,
    force: bool,
) -> int:
    """Write a suite, its options and a CI job for the models of FOLDER, a repository of git.

    Says what it would write, and asks. Where nobody can be asked it prints the files and writes
    nothing, unless --yes is given. A file that is there stays as it is, unless --force is given.
    """
    minutes = _minutes(budget)
    repository = look_at(folder)
    _refuse_specs(specs)
    if not repository.models and not specs:
        _say_notes(repository.notes)
        warn(
            f"ortbench: {str(folder)!r} has no model file (.onnx, .ort) that git tracks or could "
            "track. Add one, or name another model: --model=zoo:silero-vad"
        )
        return ExitCode.NOTHING
    service = repository.service if ci == "auto" else ci
    results = next((name for name in RESULTS if is_free(repository.root / name)), RESULTS[-1])
    files = [
        NewFile(name=SUITE, text=suite(repository.models, specs, repository.left_out)),
        NewFile(name=OPTIONS, text=options(budget=" ".join(budget.split()), results=results)),
        *_job(repository, service, results, minutes, others=not linux_only),
    ]
    to_ignore = _not_ignored(repository.root, ignored(results=results, service=service))
    if to_ignore and not (repository.root / IGNORE_FILE).exists():
        files.append(NewFile(name=IGNORE_FILE, text="\n".join((*to_ignore, ""))))
        to_ignore = []
    _say_found(repository, specs)
    return _write(repository, files, to_ignore, yes=yes, force=force)


def _minutes(budget: str) -> int:
    """How long a job may take.

    Raises:
        UsageError: if the budget is none that pytest would take.
    """
    written = OptionText(texts=(budget,), place="--budget", is_typed=True, base=Path())
    return _BESIDE_MINUTES + math.ceil((read_budget(written) or _UNBOUNDED_S) / 60)


def _refuse_specs(specs: Sequence[str]) -> None:
    for spec in specs:
        if not is_by_name(spec):
            hint = "Choose a name that 'ortbench models' lists, e.g. --model=zoo:silero-vad"
            if exists(Path(spec)):
                hint = "Leave --model out: init finds all model files of the repository"
            elif "://" in spec:
                hint = (
                    "Leave --model out, and add a step to the CI job that downloads the file "
                    "before pytest runs"
                )
            raise UsageError(
                f"{spec!r} is not the name of a model that 'ortbench models' lists",
                place="--model",
                hint=hint,
            )


def _job(
    repository: Repository, service: str, results: str, minutes: int, *, others: bool
) -> list[NewFile]:
    """The file of the CI service, if there is one."""
    if service == GITHUB:
        text = github_workflow(
            branch=repository.branch,
            lfs=repository.has_pointers,
            results=results,
            minutes=minutes,
            others=others,
        )
        return [NewFile(name=GITHUB_FILE, text=text)]
    if service == GITLAB:
        text = gitlab_job(results=results, minutes=minutes, others=others)
        return [_gitlab(repository.root, text)]
    return []


def _not_ignored(root: Path, lines: Sequence[str]) -> list[str]:
    """Lines that an own ``.gitignore`` does not have, with or without slashes around them."""
    path = root / IGNORE_FILE
    there = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    known = {line.strip().strip("/") for line in there.splitlines()}
    return [line for line in lines if line.strip("/") not in known]


def _gitlab(root: Path, text: str) -> NewFile:
    """The job as the file that GitLab reads, or beside one that is there."""
    own = NewFile(name=GITLAB_FILE, text=text)
    return own if own.state(root) != "other" else NewFile(name=GITLAB_INCLUDED, text=text)


def _say_found(repository: Repository, specs: Sequence[str]) -> None:
    say(f"{counted(len(repository.models) + len(specs), 'model')}:")
    for name in (*repository.models, *specs):
        say(f"  {shown(name)}")
    _say_notes(repository.notes)


def _say_notes(notes: Sequence[str]) -> None:
    for note in notes:
        warn(f"note: {note}")


def _write(
    repository: Repository,
    files: Sequence[NewFile],
    to_ignore: Sequence[str],
    *,
    yes: bool,
    force: bool,
) -> int:
    root = repository.root
    states = {file.name: file.state(root) for file in files}
    to_write = [
        file
        for file in files
        if states[file.name] == "new" or (force and states[file.name] == "other")
    ]
    for file in files:
        if file not in to_write:
            say(f"unchanged: {file.name}" if states[file.name] == "same" else _kept(file))
            if file.name == SUITE and states[file.name] == "other":
                _say_lacking(repository)
    if not to_write:
        return ExitCode.FINE
    if not yes and not sys.stdin.isatty():
        for file in to_write:
            # As it would be written, to be copied: names in it are escaped already, and what looks
            # like a secret is none.
            write(f"\n--- {file.name}\n{file.text}")
        warn("ortbench: nothing was written. To write the files that are shown above, add --yes")
        return ExitCode.WRONG_CALL
    refuse_impossible(to_write, root)
    if not yes:
        for file in to_write:
            say(f"{'write over' if states[file.name] == 'other' else 'write'}: {file.name}")
        if not click.confirm("Write these files?", default=True):
            say("nothing was written")
            return ExitCode.FINE
    for file in to_write:
        write_file(file, root)
        say(f"written: {file.name}")
    _say_next(repository, [file.name for file in to_write], to_ignore)
    return ExitCode.FINE


def _say_lacking(repository: Repository) -> None:
    """Say which models of the repository a suite that is there names in no way."""
    path = repository.root / SUITE
    if not path.is_file():
        return
    there = suite_file(SUITE, path.read_text(encoding="utf-8", errors="replace"))
    lacking = [name for name in repository.models if not there.means(PurePosixPath(name))]
    if lacking:
        say(f"{counted(len(lacking), 'model')} that {SUITE} does not name; add to MODELS:")
        for pattern in patterns(lacking, repository.left_out):
            say(f"  ROOT / {literal(pattern)},")


def _kept(file: NewFile) -> str:
    return f"kept: {file.name} already exists with other content; --force replaces it"


def _say_next(repository: Repository, written: Sequence[str], to_ignore: Sequence[str]) -> None:
    """What is left to do by hand; nothing that was there is changed."""
    say(f"\nnext: pytest @{OPTIONS}")
    if GITLAB_INCLUDED in written:
        say(f"then add to {GITLAB_FILE}:\n\ninclude:\n  - local: {GITLAB_INCLUDED}\n")
    if to_ignore:
        say(f"then add to {IGNORE_FILE}, before git add:\n\n{chr(10).join(to_ignore)}\n")
    if "tox" in repository.runners:
        say(
            "for tox, add to tox.ini:\n\n[testenv:benchmarks]\ndeps = pytest-ortbench[cpu]\n"
            f"pass_env = CI, GITHUB_*, CUDA_*, HF_*\ncommands = pytest @{OPTIONS} {{posargs}}\n"
        )
    if "nox" in repository.runners:
        say(
            "for nox, add to noxfile.py:\n\n@nox.session\ndef benchmarks(session):\n"
            '    session.install("pytest-ortbench[cpu]")\n'
            f'    session.run("pytest", "@{OPTIONS}", *session.posargs)\n'
        )
