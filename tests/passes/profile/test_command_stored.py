"""``ortbench profile CASE --run=FILE``: the document says which case, and never what runs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from onnx import helper

from pytest_ortbench.cli.application import run
from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.passes.profile.facts import OperatorProfile
from pytest_ortbench.store.folder import write_document
from tests.launch.cases import case_of, relu, save
from tests.results_factory import make_result, make_run

#: Makes a file in the current folder that tells that it ran.
STARTS = ("/bin/sh", "-c", "touch STARTED; exec cat")

#: What a profile without an operator ends with, as of a stand-in.
NOTHING = 3


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A case whose model lies in the current folder."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return case_of(relu(tmp_path / "project" / "m.onnx"))


def _profile(stored: Case, *arguments: str) -> int:
    document = Path.cwd().parent / "theirs.json"
    write_document(make_run([make_result(case=stored)]), document)
    return run(["profile", stored.case_id, f"--run={document}", *arguments])


@pytest.fixture
def profiled(monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """The cases that would be profiled, none of which is started."""
    found: list[Case] = []

    def note(case: Case, *_: object) -> OperatorProfile:
        found.append(case)
        return OperatorProfile(reason="a stand-in")

    monkeypatch.setattr("pytest_ortbench.passes.profile.command.profile_case", note)
    return found


def _runtime(**changed: Any) -> dict[str, Any]:
    return {"runtime": replace(Runtime(), **changed)}


@pytest.mark.parametrize(
    ("change", "needed", "option"),
    [
        (_runtime(command=STARTS), 'the command "/bin/sh -c', "--runtimes=own"),
        (_runtime(label="edge", command=STARTS), "the runtime 'edge'", "--runtimes=current"),
        (
            _runtime(label="lab", requirements=("evil @ https://example.invalid/evil.whl",)),
            "the runtime 'lab'",
            "--runtimes=current",
        ),
        (_runtime(environment={"PYTHONPATH": "/x"}), "variable 'PYTHONPATH'", "--runtimes=own"),
        (_runtime(environment={"A": 'b"c'}), "variable 'A'", '"A" = "b\\"c"'),
    ],
    ids=["command", "command of a runtime", "requirements", "environment", "value"],
)
def test_a_runtime_of_the_document_is_not_started(
    case: Case,
    change: dict[str, Any],
    needed: str,
    option: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _profile(replace(case, **change)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert needed in captured.err
    assert option in captured.err
    assert not Path("STARTED").exists()


@pytest.mark.live
def test_the_planted_command_would_tell_if_it_ran(tmp_path: Path) -> None:
    """The tests here rest on it."""
    subprocess.run(STARTS, cwd=tmp_path, stdin=subprocess.DEVNULL, check=True)
    assert (tmp_path / "STARTED").exists()


@pytest.mark.live
def test_the_runtime_that_the_project_configures_is_started(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pyproject.toml").write_text(
        f"[tool.ortbench.runtimes.edge]\npython = {sys.executable!r}\n"
    )
    assert _profile(replace(case, **_runtime(label="edge", command=STARTS))) == 0
    assert capsys.readouterr().out.startswith("m/native/cpu/b1: ")
    assert not Path("STARTED").exists()


def test_a_runtime_of_the_command_line_is_started(case: Case, profiled: list[Case]) -> None:
    stored = replace(case, **_runtime(label="edge", command=STARTS))
    assert _profile(stored, "--runtimes=current") == NOTHING
    assert [(each.runtime.label, each.runtime.command) for each in profiled] == [
        ("current", (sys.executable,))
    ]


def test_with_a_model_only_a_case_can_be_meant(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    document = Path.cwd().parent / "theirs.json"
    write_document(make_run([make_result(case=case)]), document)
    assert run(["profile", "m/cpu/b1", f"--run={document}", "--model=m.onnx"]) == 2
    error = capsys.readouterr().err
    assert "'m/cpu/b1'" in error
    assert repr(case.case_id) in error


def test_libraries_and_options_of_the_document_are_not_loaded(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = Provider(
        alias="cpu", name="CPUExecutionProvider", library="/x/ep.so", options={"path": "/x/y"}
    )
    session = replace(
        case.session, custom_ops=("/x/ops.so",), entries={"session.x_file_path": "/x/out"}
    )
    inputs = tuple(replace(spec, path="/x/in.npz") for spec in case.inputs)
    assert _profile(replace(case, provider=provider, session=session, inputs=inputs)) == 2
    error = capsys.readouterr().err
    for option in (
        "--custom-ops=PATH",
        "--session-option='session.x_file_path=/x/out'",
        "--provider-option='cpu.path=/x/y'",
        "[tool.ortbench.plugins.cpu]",
        "--inputs=PATH",
    ):
        assert option in error


def test_what_the_document_lacks_is_written_into_the_file_that_is_read(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("ortbench.toml").write_text(
        '[runtimes.old]\nrequirements = ["onnxruntime==1.20.1"]\n'
        '[plugins.acme]\nlibrary = "libacme.so"\n'
    )
    provider = replace(case.provider, library="/x/ep.so")
    for change, table in (
        (_runtime(environment={"A": "1"}), "runtimes.own"),
        (_runtime(label="edge"), "runtimes.edge"),
        ({"provider": provider}, "plugins.cpu"),
    ):
        assert _profile(replace(case, **change)) == 2
        assert f"[{table}] in ortbench.toml" in capsys.readouterr().err


def test_what_a_profile_does_not_need_is_left_alone(case: Case, profiled: list[Case]) -> None:
    sampling = replace(case.sampling, load_logs="/x/logs", loads=("offline",))
    dataset = Dataset(path="/x/data.py", function="samples")
    stored = replace(case, stages="/x/stages.py", dataset=dataset, sampling=sampling)
    assert _profile(stored) == NOTHING
    assert [(each.stages, each.dataset, each.sampling.load_logs) for each in profiled] == [
        ("", None, "")
    ]


def test_an_option_that_is_given_again_is_used_and_what_differs_is_said(
    case: Case, profiled: list[Case], capsys: pytest.CaptureFixture[str]
) -> None:
    entry = "session.disable_prepacking"
    stored = replace(case, session=replace(case.session, entries={entry: "1"}))
    assert _profile(stored) == 2
    assert f"--session-option='{entry}=1'" in capsys.readouterr().err
    assert _profile(stored, f"--session-option={entry}=1") == NOTHING
    assert "note: " not in capsys.readouterr().err
    assert _profile(stored, f"--session-option={entry}=0") == NOTHING
    assert f"{entry} is '0' here, '1' in the run" in capsys.readouterr().err
    assert [each.session.entries for each in profiled] == [{entry: "1"}, {entry: "0"}]


@pytest.mark.parametrize("where", ["outside", "above", "another system"])
def test_a_path_of_the_document_is_not_followed_out_of_the_folder(
    case: Case,
    profiled: list[Case],
    tmp_path: Path,
    where: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outside = relu(tmp_path / "outside.onnx")
    Path(case.model.path).unlink()
    path = {
        "outside": str(outside),
        "above": "../outside.onnx",
        "another system": "\\\\server\\share\\outside.onnx",
    }[where]
    assert _profile(replace(case, model=replace(case.model, path=path))) == 2
    error = capsys.readouterr().err
    assert repr(path) in error
    assert "--model=FILE" in error
    assert profiled == []
    assert _profile(case, f"--model={outside}") == NOTHING
    assert [each.model.path for each in profiled] == [str(outside)]


def test_the_model_of_a_run_of_another_machine_is_found_in_the_project(
    case: Case, profiled: list[Case]
) -> None:
    Path("models").mkdir()
    Path(case.model.path).rename("models/m.onnx")
    stored = replace(case, model=replace(case.model, path="/home/ci/build/models/m.onnx"))
    assert _profile(stored) == NOTHING
    assert [each.model.path for each in profiled] == [str(Path("models/m.onnx").absolute())]


def test_a_file_with_another_content_is_not_taken_for_the_one_that_was_measured(
    case: Case, profiled: list[Case], capsys: pytest.CaptureFixture[str]
) -> None:
    other = save(Path(case.model.path), [helper.make_node("Neg", ["x"], ["y"])])
    assert _profile(case) == 2
    assert case.model.path in capsys.readouterr().err
    assert profiled == []
    assert _profile(case, f"--model={other}") == NOTHING
    assert capsys.readouterr().err.startswith("note: ")
    assert len(profiled) == 1


def test_the_choices_of_the_document_are_planned_again(
    case: Case, profiled: list[Case], capsys: pytest.CaptureFixture[str]
) -> None:
    session = replace(
        case.session,
        intra_op_num_threads=1,
        graph_optimization_level="basic",
        execution_mode="parallel",
        inter_op_num_threads=2,
        enable_mem_pattern=False,
        enable_mem_reuse=False,
        arena_extend_strategy="kSameAsRequested",
        arena_initial_chunk_bytes=4096,
    )
    stored = replace(case, batch=3, session=session, knobs={"threads": "1", "opt": "basic"})
    assert _profile(stored) == NOTHING
    [again] = profiled
    assert (again.session, again.batch, again.knobs) == (session, 3, stored.knobs)
    odd = replace(stored, session=replace(session, graph_optimization_level="/x/level"))
    assert _profile(odd) == 2
    assert "'/x/level'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        {"call": "async", "knobs": {"call": "async"}},
        {"io": "device", "knobs": {"io": "device"}},
        {"concurrency": 2, "knobs": {"concurrency": "2"}},
        {"sessions": 2, "knobs": {"sessions": "2"}},
        {"seed": 7},
        {"batch": 5},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_choice_stays_what_it_was(
    case: Case, profiled: list[Case], change: dict[str, Any]
) -> None:
    _profile(replace(case, **change))
    [again] = profiled
    assert {name: getattr(again, name) for name in change} == change
