"""Revisions of models: what is said where Git can't tell."""

from __future__ import annotations

import random
import shlex
import subprocess
from pathlib import Path

import psutil
import pytest

from pytest_ortbench.core.errors import ModelError, UsageError
from pytest_ortbench.models import revisions
from pytest_ortbench.models.revisions import revision
from tests.refused import refused


@pytest.mark.live
def test_a_machine_without_git_is_not_taken_for_a_folder_without_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError) as refused:
        revision("main", tmp_path)
    assert isinstance(refused.value.__cause__, FileNotFoundError)


@pytest.mark.live
def test_a_repository_of_another_user_is_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = tmp_path / "git"
    said = f"fatal: detected dubious ownership in repository at '{tmp_path}'\n\n\tgit config"
    git.write_text(f"#!/bin/sh\necho {shlex.quote(said)} >&2\nexit 128\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with refused(UsageError, "'main'", str(tmp_path), hint=f"safe.directory '{tmp_path}'"):
        revision("main", tmp_path)


@pytest.mark.live
def test_a_folder_without_a_repository_is_compared_without_git(tmp_path: Path) -> None:
    with refused(UsageError, "'main'", str(tmp_path), hint="--ort-against=model:"):
        revision("main", tmp_path)


@pytest.mark.live
@pytest.mark.parametrize(
    ("name", "is_shallow", "command"),
    [
        ("feature", False, "'git fetch origin feature:feature'"),
        ("origin/feature", False, "'git fetch origin feature:refs/remotes/origin/feature'"),
        ("v1.1", False, "'git fetch origin tag v1.1'"),
        ("v1.1", True, "'git fetch --depth=1 origin tag v1.1'"),
        ("0123abcd", False, "'git fetch origin'"),
        ("HEAD~7", False, "'git fetch origin'"),
        ("feature", True, "'git fetch --depth=1 origin feature:feature'"),
        ("HEAD~7", True, "'git fetch --unshallow origin'"),
    ],
)
def test_the_command_that_fetches_a_revision_makes_it_known_by_its_name(
    name: str, is_shallow: bool, command: str, tmp_path: Path
) -> None:
    def git(*arguments: str) -> None:
        by = ("-c", "user.email=a@example.org", "-c", "user.name=a")
        subprocess.run(["git", *by, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--quiet", "there")
    for message in ("one", "two"):
        git("-C", "there", "commit", "--quiet", "--allow-empty", "-m", message)
    depth = ("--depth=1",) if is_shallow else ()
    git("clone", "--quiet", *depth, f"file://{tmp_path / 'there'}", "here")
    git("-C", "there", "branch", "feature")
    git("-C", "there", "tag", "-a", "v1.1", "-m", "a release")
    with refused(UsageError, repr(name), str(tmp_path / "here"), hint=command):
        revision(name, tmp_path / "here")
    if "HEAD" not in name and "0123" not in name:
        git("-C", "here", *shlex.split(command.strip("'"))[1:])
        assert revision(name, tmp_path / "here").name == name


@pytest.mark.live
def test_a_filter_of_git_that_hangs_is_named_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go on when Git is gone, since it is no child of ours."""

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    git("init", "--quiet")
    (tmp_path / "net.onnx").write_bytes(b"model")
    (tmp_path / ".gitattributes").write_text("*.onnx filter=store\n")
    git("add", "--all")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message=first")
    waiting = f"sleep {random.uniform(1000, 2000)}"
    git("config", "filter.store.smudge", waiting)
    found = revision("HEAD", tmp_path)
    monkeypatch.setattr(revisions, "_GIT_S", 2.0)
    with refused(ModelError, waiting, "2 s", "net.onnx"):
        found.extract(tmp_path / "net.onnx", tmp_path / "earlier")
    commands = [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
    assert waiting not in commands
