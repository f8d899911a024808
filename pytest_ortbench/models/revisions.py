"""Model files as they were at a git revision, read through git; nothing is checked out."""

from __future__ import annotations

import re
import shlex
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pytest_ortbench.core.errors import ModelError, UsageError, nearest, says
from pytest_ortbench.core.lfs_pointer import POINTER
from pytest_ortbench.core.model_spec import is_model_file, is_onnx_file

_PLACE = "--ort-against=git"
_GIT_S = 300.0
_WITHOUT_GIT = (
    "To compare without Git, name the file of the earlier model, e.g. "
    "--ort-against=model:old/net.onnx"
)
#: Of what Git says of a repository that another user owns.
_DUBIOUS = re.compile(r"dubious ownership in repository at '(.+)'")
#: Names of branches and tags, without those that may be commits.
_REF = re.compile(r"(?![0-9a-f]{4,40}$)[\w./-]+")
#: Names of tags: a version. Git takes no annotated tag for a branch.
_TAG = re.compile(r"[vV]?\d+(\.\w+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One commit of one working tree.

    Attributes:
        name: As the user called it.
        commit: Its full id.
        top: Top folder of the working tree.
    """

    name: str
    commit: str
    top: Path

    def has(self, path: Path) -> bool:
        """Whether there was such a file."""
        return bool(self._listed(self._inside(path)))

    def models_below(self, folder: Path, *, of_any_format: bool = False) -> list[Path]:
        """Model files that lay in a folder or below, as paths of the working tree.

        Args:
            folder: In the working tree.
            of_any_format: Whether those of ONNX Runtime's own format count, too.
        """
        is_model = is_model_file if of_any_format else is_onnx_file
        names = self._listed(self._inside(folder))
        return [self.top / name for name in names if is_model(PurePosixPath(name))]

    def text(self, path: Path) -> str | None:
        """Return what a text file held; ``None`` where there was no such file."""
        try:
            inside = self._inside(path)
        except UsageError:
            return None
        if not self._listed(inside):
            return None
        return _git(self.top, "cat-file", "blob", f"{self.commit}:{inside}").decode(
            "utf-8", "replace"
        )

    def extract(self, path: Path, folder: Path) -> Path:
        """Write a model as it was, and the files of its folder that hold its weights.

        Args:
            path: The model file in the working tree.
            folder: Where to write; the path below it is the one in the tree, so that models keep
                their names.

        Raises:
            ModelError: if git can't give it.
        """
        inside = self._inside(path)
        target = folder / inside
        self._write(inside, target)
        for location in external_locations(target):
            name = str(PurePosixPath(inside).parent / location)
            self._write(name, target.parent / location)
        return target

    def _inside(self, path: Path) -> str:
        try:
            return path.resolve().relative_to(self.top).as_posix()
        except ValueError:
            raise UsageError(
                f"{path} is outside the Git repository {self.top}, so Git has no earlier version "
                "of it",
                place=_PLACE,
                hint="Run it alone, against the file of its earlier version, e.g. "
                f"--ort-against={shlex.quote(f'model:old/{path.name}')}",
            ) from None

    def _listed(self, inside: str) -> list[str]:
        found = _git(self.top, "ls-tree", "-r", "-z", "--name-only", self.commit, "--", inside)
        return [name for name in found.decode("utf-8", "surrogateescape").split("\0") if name]

    def _write(self, inside: str, target: Path) -> None:
        # With the filters that a checkout would apply, among them that of Git LFS.
        content = _git(self.top, "cat-file", "--filters", f"{self.commit}:{inside}")
        if content.startswith(POINTER):
            raise ModelError(
                "the file is stored with Git LFS, and its content at this revision has not been "
                "fetched",
                place=f"{self.name}:{inside}",
                hint=f"Run 'git lfs install', then 'git lfs fetch origin {self.name}'",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def revision(name: str, folder: Path) -> Revision:
    """Find a revision.

    Args:
        name: Branch, tag, commit, ``HEAD~3``.
        folder: A folder of the working tree.

    Raises:
        UsageError: if this is no working tree, or it has no such revision.
    """
    try:
        top = _git(folder, "rev-parse", "--show-toplevel").decode().strip()
    except ModelError as error:
        owned = _DUBIOUS.search(error.message)
        raise UsageError(
            f"Git can't find the revision {name!r}, since it opens no repository at "
            f"{str(folder)!r} ({error.message})",
            place=_PLACE,
            hint=f"Run: git config --global --add safe.directory '{owned[1]}'"
            if owned
            else _WITHOUT_GIT,
        ) from error
    try:
        commit = _git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except ModelError as error:
        raise UsageError(
            f"the revision {name!r} does not exist in the Git repository {top}",
            place=_PLACE,
            hint=_nearest(name, folder),
        ) from error
    return Revision(name=name, commit=commit.decode().strip(), top=Path(top).resolve())


def _nearest(name: str, folder: Path) -> str:
    """How to come to a revision that is not there: one called alike, or to fetch it."""
    try:
        names = _git(folder, "for-each-ref", "--format=%(refname:short)").decode().split()
        is_shallow = _git(folder, "rev-parse", "--is-shallow-repository").decode().strip()
    except ModelError:
        return "Name one that 'git branch --all' lists"
    near = nearest(name, names)
    branch = name.removeprefix("origin/")
    target = name if branch == name else f"refs/remotes/{name}"
    wanted = f" {branch}:{target}" if _REF.fullmatch(name) else ""
    wanted = f" tag {name}" if _TAG.fullmatch(name) else wanted
    if is_shallow == "true":
        how = f"--depth=1 origin{wanted}" if wanted else "--unshallow origin"
        return f"This clone is shallow. Fetch the revision: 'git fetch {how}'"
    if near:
        return f"Did you mean 'git:{near}'? If not, run 'git fetch origin{wanted}'"
    return (
        f"If the server has it, run 'git fetch origin{wanted}'. If not, name one that 'git branch "
        "--all' or 'git tag' lists"
    )


def _git(folder: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(folder), *arguments]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                content, said = process.communicate(timeout=_GIT_S)
            except subprocess.TimeoutExpired as error:
                raise _too_slow(arguments, _ended_with_children(process.pid)) from error
            except BaseException:
                _ended_with_children(process.pid)
                raise
    except OSError as error:  # of no file: whatever is asked of Git can't be told
        raise UsageError(
            f"Git can't be run ({says('the system', error.strerror or str(error))})",
            place=_PLACE,
            hint=f"Install Git. {_WITHOUT_GIT}",
        ) from error
    if process.returncode:
        told = said.decode("utf-8", "replace").strip().splitlines()
        fatal = [line for line in told if line.startswith("fatal:")]
        reason = (fatal or told or [""])[-1]
        raise ModelError(says("Git", reason), place=f"git {arguments[0]}", hint=_WITHOUT_GIT)
    return content


def _ended_with_children(pid: int) -> str:
    """End Git and what it started, and return the command of that; empty where there is none.

    A filter of Git's that hangs would live on.
    """
    import psutil  # only where Git does not end

    try:
        git = psutil.Process(pid)
        running = [*git.children(recursive=True), git]
    except psutil.NoSuchProcess:
        return ""
    commands = []
    for process in running:
        with suppress(psutil.Error):
            commands.append(" ".join(process.cmdline()))
            process.kill()
    # Of a filter Git starts a shell, and this the command, which is the last one before Git here.
    return commands[-2] if len(commands) > 1 else ""


def _too_slow(arguments: tuple[str, ...], waited_for: str) -> ModelError:
    wanted = f"'git {' '.join(arguments)}' did not end within {_GIT_S:.0f} s"
    if waited_for:
        wanted = f"{wanted}, because it waited for the command '{waited_for}'"
    first = "Mend that command" if waited_for else "Run again"
    return ModelError(wanted, place=_PLACE, hint=f"{first}. {_WITHOUT_GIT}")


def external_locations(model: Path) -> list[str]:
    """Names of the files beside a model that hold weights; none for one that can't be read."""
    import onnx  # a heavy import, needed for this question only
    from google.protobuf.message import (  # type: ignore[import-untyped, unused-ignore]
        DecodeError,
    )

    from pytest_ortbench.models.inspection import all_tensors

    try:
        proto = onnx.load(str(model), load_external_data=False)
    except DecodeError:
        return []  # whoever reads the model next says what is wrong with it
    names: dict[str, None] = {}
    for tensor in all_tensors(proto):
        for entry in tensor.external_data:
            plain = PurePosixPath(entry.value)
            safe = not plain.is_absolute() and ".." not in plain.parts
            if entry.key == "location" and safe:
                names[entry.value] = None
    return list(names)
