"""``ortbench init``: what it writes for which repository, and what it leaves alone."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_ortbench.cli import application
from pytest_ortbench.cli.adoption.suite import OPTIONS, SUITE, options, suite
from pytest_ortbench.cli.adoption.workflows import (
    GITHUB_FILE,
    GITLAB_FILE,
    GITLAB_INCLUDED,
    github_workflow,
    gitlab_job,
)
from pytest_ortbench.core.errors import DocumentError, UsageError
from tests.plugin.conftest import drawn_numbers, model_file

from .conftest import Ended

__all__ = ["drawn_numbers", "model_file"]

Tool = Callable[..., Ended]

#: Names that mean something to YAML, Python, a shell, Markdown or pytest.
ODD = ("yes", "a b: [x]#1", "${{ github.token }}", "'\"`\\", "- é", "&a *b !c %d @e", "null")


# -- what is written -------------------------------------------------------------------------------


def models_of(text: str) -> list[str]:
    """Every model that a suite names."""
    (values,) = [
        node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "MODELS"
    ]
    assert isinstance(values, ast.List)
    return [ast.literal_eval(getattr(entry, "right", entry)) for entry in values.elts]


def test_a_suite_names_every_model_whatever_it_is_called() -> None:
    names = [f"models/{name}.onnx" for name in ODD]
    written = models_of(suite(names, ["zoo:silero-vad"], ["models/more.onnx"]))
    assert written == [*names, "zoo:silero-vad"]


def test_a_folder_whose_models_are_all_meant_is_a_pattern() -> None:
    names = ["models/a.onnx", "models/b.onnx", "models/deep/c.onnx", "models/d.ort", "e.onnx"]
    patterns = ["models/*.onnx", "models/deep/*.onnx", "models/*.ort", "*.onnx"]
    assert models_of(suite(names, [])) == patterns
    assert models_of(suite(names, [], ["models/deep/x.onnx"]))[1] == "models/deep/c.onnx"
    odd = ["x[1]/a.onnx", "models/B.ONNX"]
    assert models_of(suite(odd, [])) == odd


def test_options_are_an_argument_a_line() -> None:
    assert options(budget="1h 30m", results="out").splitlines() == [
        SUITE, "--ort-budget=1h 30m", "--ort-results=out",
    ]  # fmt: skip


def steps(job: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {step.get("name") or step["uses"]: step for step in job["steps"]}


@pytest.mark.parametrize("branch", ["main", *ODD])
def test_a_workflow_has_budget_cache_comment_and_jobs_by_hand(branch: str) -> None:
    text = github_workflow(branch=branch, lfs=True, results="results", minutes=40)
    read = yaml.safe_load(text)
    triggers = read[True]  # YAML 1.1 takes 'on' for yes
    assert triggers["push"]["branches"] == [branch]
    assert {"pull_request", "workflow_dispatch"} <= set(triggers)
    assert read["permissions"] == {"contents": "read", "pull-requests": "write"}
    jobs = read["jobs"]
    assert {name: "if" in job for name, job in jobs.items()} == {
        "linux": False,
        "windows": True,
        "macos": True,
    }
    for name, job in jobs.items():
        assert job["timeout-minutes"] == 40
        found = steps(job)
        assert found["actions/checkout@v4"]["with"] == {"fetch-depth": 0, "lfs": True}
        assert found["actions/cache@v4"]["with"]["path"].endswith("/ortbench-cache")
        assert f"@{OPTIONS}" in found["Measure"]["run"]
        assert "${{" not in found["Measure"]["run"]
        assert found["Comment"]["run"].endswith(f"--key={name}")
    assert text.count("# Not run") == 2


def test_a_job_of_gitlab_has_reports_and_jobs_by_hand() -> None:
    text = gitlab_job(results="results", minutes=40)
    read = yaml.safe_load(text)
    assert list(read) == ["ortbench", "ortbench-windows", "ortbench-macos"]
    for name, job in read.items():
        assert job["timeout"] == "40 minutes"
        assert job["cache"]["paths"] == [".cache/"]
        assert set(job["artifacts"]["reports"]) == {"junit", "codequality", "metrics"}
        assert f"@{OPTIONS}" in job["script"][-1]
        by_hand = [rule.get("when") for rule in job["rules"]]
        assert by_hand == ([None] * 2 if name == "ortbench" else ["manual"] * 2)
    assert text.count("# Not run") == 2


# -- repositories ----------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run(["git", "-C", str(folder), *author, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one model that is in it; nobody can be asked."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    git(tmp_path, "init", "--initial-branch=trunk")
    (tmp_path / "models").mkdir()
    (tmp_path / "models/net.onnx").write_bytes(b"net")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "a model")
    return tmp_path


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a repository but git's own."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }


@pytest.mark.live
def test_nothing_is_written_where_nobody_can_be_asked(tool: Tool, repository: Path) -> None:
    before = files(repository)
    ended = tool("init")
    assert ended.code == 2
    assert files(repository) == before
    for name in (SUITE, OPTIONS, GITHUB_FILE):
        assert f"--- {name}" in ended.out
    # A reader copies it: nothing in it is masked.
    assert "${{ github.token }}" in ended.out


@pytest.mark.live
def test_yes_writes_four_files_and_changes_none(tool: Tool, repository: Path) -> None:
    before = files(repository)
    assert tool("init", "--yes").code == 0
    after = files(repository)
    assert set(after) - set(before) == {SUITE, OPTIONS, GITHUB_FILE, ".gitignore"}
    assert {name: after[name] for name in before} == before
    assert models_of(after[SUITE].decode()) == ["models/*.onnx"]
    workflow = yaml.safe_load(after[GITHUB_FILE])
    assert workflow[True]["push"]["branches"] == ["trunk"]
    again = tool("init", "--yes")
    assert again.code == 0
    assert again.out.count("unchanged: ") == 3  # what git ignores is ignored already
    assert files(repository) == after


@pytest.mark.live
def test_what_a_run_leaves_behind_is_ignored_by_git(tool: Tool, repository: Path) -> None:
    assert tool("init", "--yes", "--ci=gitlab").code == 0
    left = ("results/a/run.json", "ortbench.xml", "ortbench-summary.md", "ortbench-quality.json")
    for name in left:
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("x")
        git(repository, "check-ignore", "--quiet", name)  # ends with 1 for what is not ignored


@pytest.mark.live
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_lines_that_an_own_ignore_file_lacks_are_said(
    tool: Tool, repository: Path, force: tuple[str, ...]
) -> None:
    own = repository / ".gitignore"
    own.write_text("*.pyc\nresults/\n")
    ended = tool("init", "--yes", *force)
    assert own.read_text() == "*.pyc\nresults/\n"
    lines = ended.out.splitlines()
    assert [line in lines for line in ("/results/", "/ortbench.xml", "/ortbench-summary.md")] == [
        False,
        True,
        True,
    ]


@pytest.mark.live
@pytest.mark.parametrize(("ci", "name"), [("github", GITHUB_FILE), ("gitlab", GITLAB_FILE)])
def test_a_repository_may_have_jobs_for_linux_alone(
    ci: str, name: str, tool: Tool, repository: Path
) -> None:
    assert tool("init", "--yes", "--linux-only", f"--ci={ci}").code == 0
    text = (repository / name).read_text()
    assert "windows" not in text.lower()
    read = yaml.safe_load(text)
    assert list(read["jobs"] if ci == "github" else read) == [
        "linux" if ci == "github" else "ortbench"
    ]


@pytest.mark.live
def test_a_file_that_is_there_needs_force(tool: Tool, repository: Path) -> None:
    workflow = repository / GITHUB_FILE
    workflow.parent.mkdir(parents=True)
    workflow.write_text("on: push\n")
    assert tool("init", "--yes").code == 0
    assert workflow.read_text() == "on: push\n"
    assert (repository / SUITE).is_file()
    assert tool("init", "--yes", "--force").code == 0
    assert "linux" in yaml.safe_load(workflow.read_text())["jobs"]


@pytest.mark.live
def test_a_second_call_names_the_models_that_the_suite_lacks(tool: Tool, repository: Path) -> None:
    path = repository / SUITE
    path.parent.mkdir()
    path.write_text('MODELS = [ROOT / "models/net.onnx"]\n')
    for name in ("models/new.onnx", "more/other.onnx"):
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_bytes(b"net")
    lacking = [line for line in tool("init", "--yes").out.splitlines() if "ROOT / " in line]
    assert lacking == ['  ROOT / "models/*.onnx",', '  ROOT / "more/*.onnx",']
    path.write_text('MODELS = [*(ROOT / "models").glob("*.onnx"), ROOT / "more/*.onnx"]\n')
    assert "ROOT / " not in tool("init", "--yes").out


@pytest.mark.live
def test_gitlab_gets_a_file_beside_its_own(tool: Tool, repository: Path) -> None:
    own = repository / GITLAB_FILE
    own.write_text("stages: [test]\n")
    ended = tool("init", "--yes")
    assert ended.code == 0
    assert own.read_text() == "stages: [test]\n"
    assert next(iter(yaml.safe_load((repository / GITLAB_INCLUDED).read_text()))) == "ortbench"
    assert f"  - local: {GITLAB_INCLUDED}" in ended.out
    assert not (repository / GITHUB_FILE).exists()


@pytest.mark.live
@pytest.mark.parametrize(
    ("origin", "name"),
    [("https://gitlab.example/a/b.git", GITLAB_FILE), ("git@github.com:a/b.git", GITHUB_FILE)],
)
def test_the_service_is_the_one_that_origin_lies_on(
    tool: Tool, repository: Path, origin: str, name: str
) -> None:
    git(repository, "remote", "add", "origin", origin)
    assert tool("init", "--yes").code == 0
    assert (repository / name).is_file()


@pytest.mark.live
def test_what_tox_and_nox_need_is_said_and_not_written(tool: Tool, repository: Path) -> None:
    (repository / "tox.ini").write_text("[tox]\n")
    (repository / "noxfile.py").write_text("import nox\n")
    ended = tool("init", "--yes", "--ci=none")
    assert "[testenv:benchmarks]" in ended.out
    assert "@nox.session" in ended.out
    assert (repository / "tox.ini").read_text() == "[tox]\n"
    (repository / "tox.ini").write_text("[testenv:benchmarks]\n")
    again = tool("init", "--yes", "--ci=none", "--force", "--budget=5m")
    assert "[testenv:benchmarks]" not in again.out
    assert "@nox.session" in again.out
    assert not (repository / ".github").exists()


@pytest.mark.live
@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows does not take")
def test_models_are_what_a_job_will_have(tool: Tool, repository: Path, tmp_path: Path) -> None:
    for number, name in enumerate(name for name in ODD if "/" not in name):
        (repository / f"models/{name}.onnx").write_bytes(b"x" * (100 + number))
    (repository / "models/LOUD.ONNX").write_bytes(b"x")
    (repository / "ignored.ort").write_bytes(b"x")
    (repository / ".gitignore").write_text("*.ort\n")
    outside = tmp_path.parent / "outside.onnx"
    outside.write_bytes(b"x")
    (repository / "outside.onnx").symlink_to(outside)
    (repository / "gone.onnx").symlink_to("nowhere")
    (repository / "inside.onnx").symlink_to("models/net.onnx")
    (repository / "pointer.onnx").write_text("version https://git-lfs.github.com/spec/v1\n")
    ended = tool("init", "--yes")
    models = models_of((repository / SUITE).read_text())
    assert set(models) == {
        "models/LOUD.ONNX", "models/*.onnx", "inside.onnx", "pointer.onnx",
    }  # fmt: skip
    for name in ("outside.onnx", "gone.onnx", "ignored.ort"):
        assert f"note: {name} " in ended.err
    checkout = steps(yaml.safe_load((repository / GITHUB_FILE).read_text())["jobs"]["linux"])
    assert checkout["actions/checkout@v4"]["with"]["lfs"] is True


@pytest.mark.live
def test_a_file_called_results_is_left_alone(tool: Tool, repository: Path) -> None:
    (repository / "results").write_text("mine")
    assert tool("init", "--yes").code == 0
    assert "--ort-results=ortbench-results" in (repository / OPTIONS).read_text().splitlines()


@pytest.mark.live
@pytest.mark.parametrize("kind", ["link", "file"])
def test_no_file_is_written_where_a_folder_leads_elsewhere(
    tool: Tool, repository: Path, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    folder = repository / "benchmarks"
    if kind == "link":
        folder.symlink_to(outside)
    else:
        folder.write_text("mine")
    before = files(repository)
    ended = tool("init", "--yes", "--force")
    assert ended.code == 2
    assert isinstance(ended.error, UsageError)
    assert files(repository) == before
    assert list(outside.iterdir()) == []


@pytest.mark.live
def test_a_folder_that_takes_no_file_is_refused_before_the_first(
    tool: Tool, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_ortbench.cli.adoption import writing

    def refuse(folder: Path) -> None:
        if folder.name == "workflows":
            raise DocumentError("it can't be written to", place=str(folder))

    monkeypatch.setattr(writing, "check_writable", refuse)
    before = files(repository)
    assert tool("init", "--yes").code == 2
    assert files(repository) == before


@pytest.mark.live
def test_a_folder_without_a_repository_or_inside_of_one_is_refused(
    tool: Tool, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for folder in (tmp_path_factory.mktemp("plain"), repository / "models", repository / "gone"):
        ended = tool("init", folder, "--yes")
        assert ended.code == 2
        assert isinstance(ended.error, UsageError)


@pytest.mark.live
def test_what_keeps_a_folder_from_being_a_repository_is_told_apart(
    tool: Tool,
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tmp_path = tmp_path_factory.mktemp("places")
    (tmp_path / "file").write_text("")
    (tmp_path / "plain").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / ".git").write_text("gitdir: gone")
    names = ("file", "gone", "plain", "broken")
    errors = [tool("init", tmp_path / name, "--yes").error for name in names]
    monkeypatch.setenv("PATH", str(tmp_path))
    errors.append(tool("init", repository, "--yes").error)
    assert len({error.message.replace(str(tmp_path), "") for error in errors}) == 5
    assert [error.hint.split("'")[-2:-1] for error in errors] == [
        ["ortbench init FOLDER"],
        ["ortbench init FOLDER"],
        [f"git init {tmp_path / 'plain'}"],
        [f"git -C {tmp_path / 'broken'} status"],
        [],
    ]


@pytest.mark.live
def test_a_repository_without_a_model_names_one(tool: Tool, repository: Path) -> None:
    (repository / "models/net.onnx").unlink()
    assert tool("init", "--yes").code == 3
    assert not (repository / SUITE).exists()
    assert tool("init", "--yes", "--model=builtin:mlp").code == 0
    assert models_of((repository / SUITE).read_text()) == ["builtin:mlp"]


@pytest.mark.live
@pytest.mark.parametrize(
    ("model", "step"),
    [
        ("models/net.onnx", "Leave --model out"),
        ("https://example.com/net.onnx", "downloads"),
        ("silero-vad", "--model=zoo:"),
    ],
)
def test_a_model_without_a_name_has_its_own_step(
    tool: Tool, repository: Path, model: str, step: str
) -> None:
    assert step in tool("init", "--yes", f"--model={model}").error.hint
    assert not (repository / SUITE).exists()


@pytest.mark.live
@pytest.mark.parametrize(
    ("option", "place"), [("--budget=10", "--budget"), ("--model=a.onnx", "--model")]
)
def test_a_wrong_option_is_refused(tool: Tool, repository: Path, option: str, place: str) -> None:
    ended = tool("init", "--yes", option)
    assert (ended.code, ended.error.place) == (2, place)
    assert not (repository / SUITE).exists()


@pytest.mark.usefixtures("drawn_numbers")
def test_what_is_written_runs_and_a_bare_pytest_passes_over_it(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    name = "models/a b: [x]#1.onnx" if sys.platform != "win32" else "models/a b #1.onnx"
    model_file("models/net.onnx").rename(pytester.path / name)
    git(pytester.path, "init")
    assert application.run(["init", str(pytester.path), "--yes"]) == 0
    pytester.makeini("[pytest]\naddopts = --strict-config --strict-markers\n")
    pytester.makepyfile(test_own="def test_it(): pass")
    pytester.runpytest("-p", "no:ortbench").assert_outcomes(passed=1)
    pytester.runpytest(f"@{OPTIONS}", "--ort-summary=s.md").assert_outcomes(passed=3)
    assert (pytester.path / "s.md").read_text(encoding="utf-8").startswith("<!-- pytest-ortbench")
