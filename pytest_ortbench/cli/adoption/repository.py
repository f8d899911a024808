"""A repository as ``ortbench init`` sees it: its models, its CI service, its names."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.lfs_pointer import is_pointer
from pytest_ortbench.core.model_spec import is_model_file

GITHUB, GITLAB = "github", "gitlab"

#: So many models are written into the suite; a repository of test files has hundreds.
MOST_MODELS = 12
#: Endings of model files, for git.
_PATTERNS = (":(icase)*.onnx", ":(icase)*.ort")
#: Folders of ignored files that hold no model of the project.
_NOT_OURS = {".tox", ".nox", ".venv", "venv", "env", "node_modules", "site-packages", "results"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """What matters of a repository.

    Attributes:
        root: Its folder.
        models: Paths of its model files, with slashes, the largest first.
        left_out: Paths of model files that a job could not measure, or that are too many.
        notes: What was left out, and why.
        has_pointers: Whether models lie in Git LFS and are not here.
        service: ``github`` or ``gitlab``: what its CI files or its origin say.
        branch: The branch that changes go to.
        runners: ``tox`` and ``nox``, whichever it has a file for that has no benchmarks yet.
    """

    root: Path
    models: tuple[str, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    has_pointers: bool
    service: str
    branch: str
    runners: tuple[str, ...]


def look_at(folder: Path) -> Repository:
    """Look at a repository.

    Raises:
        UsageError: if the folder is not the root of a repository of git.
    """
    root = _root(folder)
    models, left_out, notes = _models(root)
    return Repository(
        root=root,
        models=tuple(models),
        left_out=tuple(left_out),
        notes=tuple(notes),
        has_pointers=any(is_pointer(root / name) for name in models),
        service=_service(root),
        branch=_branch(root),
        runners=tuple(_runners(root)),
    )


def _root(folder: Path) -> Path:
    """The folder, if it is the root of a repository."""
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise UsageError(
            f"{str(folder)!r} {what}",
            place="init",
            hint="Name the folder of a Git repository: 'ortbench init FOLDER'",
        )
    if shutil.which("git") is None:
        raise UsageError(
            "the program git, which init needs, is not in PATH",
            place="init",
            hint="If Git is not installed, install it. If it is, add its folder to PATH",
        )
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        place = shlex.quote(str(folder))
        inner = folder.resolve()
        if any((part / ".git").exists() for part in (inner, *inner.parents)):
            raise UsageError(
                f"git can't use the repository of {str(folder)!r}",
                place="init",
                hint=f"To see why, run 'git -C {place} status'",
            )
        raise UsageError(
            f"{str(folder)!r} is not in a Git repository",
            place="init",
            hint="If another folder is the repository, run 'ortbench init FOLDER' with its path. "
            f"If there is no repository yet, run 'git init {place}' first",
        )
    root = Path(top.rstrip("\n"))
    if root.resolve() != folder.resolve():
        raise UsageError(
            f"{str(folder)!r} is a folder inside the repository {str(root)!r}",
            place="init",
            hint="CI files belong in the root of a repository. Run "
            f"'ortbench init {shlex.quote(str(root))}'",
        )
    return folder


def _git(folder: Path, *arguments: str) -> str | None:
    """What git answers; ``None`` where it refuses, or is not installed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except OSError:
        return None
    return os.fsdecode(done.stdout) if done.returncode == 0 else None


def _listed(root: Path, *arguments: str) -> list[str]:
    """Model files that git lists, each once."""
    names = (_git(root, "ls-files", "-z", *arguments, "--", *_PATTERNS) or "").split("\0")
    return sorted({name for name in names if name and is_model_file(Path(name))})


def _models(root: Path) -> tuple[list[str], list[str], list[str]]:
    """The model files that a job will have, the largest first; others; and what to say of these."""
    notes: list[str] = []
    left_out: list[str] = []
    models: list[str] = []
    for name in _listed(root, "--cached", "--others", "--exclude-standard"):
        problem = _problem(root, name)
        if problem:
            left_out.append(name)
            notes.append(f"{shown(name)} was left out: {problem}")
        else:
            models.append(name)
    models.sort(key=lambda name: (-(root / name).stat().st_size, name))
    if len(models) > MOST_MODELS:
        left = len(models) - MOST_MODELS
        notes.append(f"{left} smaller models were left out: add them to MODELS in the suite")
    ignored = [
        name
        for name in _listed(root, "--others", "--ignored", "--exclude-standard")
        if not _NOT_OURS.intersection(Path(name).parts)
    ]
    if ignored:
        notes.append(
            f"{shown(ignored[0])}{_more(ignored)} is ignored by git, so a job does not have it: "
            "add it with Git LFS, or fetch it in the job before pytest"
        )
    return models[:MOST_MODELS], [*left_out, *models[MOST_MODELS:], *ignored], notes


def _more(names: Sequence[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def _problem(root: Path, name: str) -> str:
    """Why a model can't be measured in a job; empty if it can."""
    path = root / name
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return "nothing is there"
    if not target.is_relative_to(root.resolve()):
        return "it is a link that leads out of the repository"
    return "" if target.is_file() else "it is no file"


def shown(name: str) -> str:
    """Return a path as text that any terminal can write."""
    return name.encode("utf-8", "backslashreplace").decode()


def _service(root: Path) -> str:
    if (root / ".gitlab-ci.yml").exists():
        return GITLAB
    if (root / ".github").exists():
        return GITHUB
    origin = _git(root, "config", "--get", "remote.origin.url") or ""
    return GITLAB if GITLAB in origin.casefold() else GITHUB


def _branch(root: Path) -> str:
    """The branch that origin points to, else the present one."""
    remote = _git(root, "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    if remote is not None:
        return remote.strip().removeprefix("origin/")
    return (_git(root, "symbolic-ref", "--short", "HEAD") or "main").strip()


def _runners(root: Path) -> Iterator[str]:
    if any((root / name).is_file() for name in ("tox.ini", "tox.toml")) and not _says(
        root / "tox.ini", "[testenv:benchmarks]"
    ):
        yield "tox"
    if (root / "noxfile.py").is_file() and not _says(root / "noxfile.py", "def benchmarks("):
        yield "nox"


def _says(path: Path, text: str) -> bool:
    """Whether a file has a text already that would be proposed for it."""
    return path.is_file() and text in path.read_text(encoding="utf-8", errors="replace")
