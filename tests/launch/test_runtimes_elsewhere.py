"""Runtimes that are commands: through ssh, behind wrappers, without the host's files."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from pytest_ortbench.core.case import Case, InputSpec, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.core.outcome import CHANGED_FILE
from pytest_ortbench.core.own_folder import OWNER
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.launch.remote_shell import for_remote_shell
from pytest_ortbench.passes.profile.run import profile_case
from pytest_ortbench.schema.case_questions import (
    CheckOutputs,
    CompareOutputs,
    ProfilePlacement,
    TimeBlock,
)
from tests.launch.cases import case_of, relu, save
from tests.launch.ssh_server import SshServer, ssh_server

ELSEWHERE = Runtime(label="elsewhere", shares_files=False)


@pytest.fixture
def staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where workers put their files: a folder of this test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def external(folder: Path) -> Case:
    """A case whose weights lie beside the model, in a folder below it."""
    folder.mkdir()
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32) * 3, "w")
    model = onnx.load(save(folder / "inline.onnx", [node], weights=[weight]))
    (folder / "data").mkdir()
    onnx.save(
        model,
        folder / "m.onnx",
        save_as_external_data=True,
        location="data/w ü.bin",
        size_threshold=0,
    )
    (folder / "inline.onnx").unlink()
    case = case_of(folder / "m.onnx")
    data = "data/w ü.bin"
    digest = file_digest(folder / "m.onnx", ((data, folder / data),))
    return replace(
        case,
        model=replace(case.model, digest=digest, external_files=(data,)),
        variant=replace(case.variant, digest=digest),
    )


def measured_alike(launcher: ProcessLauncher, case: Case, folder: Path) -> None:
    """Measure a case in its runtime, reference included."""
    # As where the interpreter that runs pytest has no ONNX Runtime.
    launcher._current_refers = False
    reference = launcher.reference(case, folder)
    assert reference.parent == folder
    worker = launcher.open(case, worker=0, deadline=None)
    try:
        assert worker.opened.info.version == onnxruntime.__version__
        assert len(worker.ask(TimeBlock(iterations=5)).durations_ns) == 5
        assert worker.ask(ProfilePlacement()).executed == {"CPUExecutionProvider": 1}
        accuracy = worker.ask(CompareOutputs(reference=str(reference)))
        assert [output.exact for output in accuracy.outputs] == [True]
    finally:
        worker.close()


# -- files over the channel -----------------------------------------------------------------------


def test_model_external_data_and_reference_travel(
    launcher: ProcessLauncher, tmp_path: Path, staged: Path
) -> None:
    case = replace(external(tmp_path / "model"), runtime=ELSEWHERE)
    measured_alike(launcher, case, tmp_path / "scratch")
    assert list(staged.glob("ortbench-*")) == []


def test_copies_lie_in_a_folder_of_the_worker_while_it_lives(
    launcher: ProcessLauncher, tmp_path: Path, staged: Path
) -> None:
    case = replace(external(tmp_path / "model"), runtime=ELSEWHERE)
    worker = launcher.open(case, worker=0, deadline=None)
    (folder,) = staged.glob("ortbench-files-*")
    copies = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert copies == {OWNER, "model/model.onnx", "model/data/w ü.bin"}
    assert json.loads((folder / OWNER).read_text())["pid"] == worker.pid
    sent = (folder / "model/data/w ü.bin").read_bytes()
    assert sent == (tmp_path / "model/data/w ü.bin").read_bytes()
    worker.close()
    assert not folder.exists()


def test_the_trace_of_a_profile_travels(
    launcher: ProcessLauncher, tmp_path: Path, staged: Path
) -> None:
    case = replace(case_of(relu(tmp_path / "m.onnx")), runtime=ELSEWHERE)
    profile = profile_case(case, launcher, tmp_path / "trace.json")
    assert profile.trace == str(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())
    assert any(event["name"] == "model_run" for event in events)
    # Nothing was written where the host's model lies.
    assert {path.name for path in tmp_path.iterdir()} == {
        "m.onnx", "trace.json", "logs", "temporary",
    }  # fmt: skip


def test_input_files_travel(launcher: ProcessLauncher, tmp_path: Path, staged: Path) -> None:
    values = np.arange(8, dtype=np.float32).reshape(2, 4) - 4
    np.save(tmp_path / "x.npy", values)
    spec = InputSpec(
        name="x",
        type="tensor(float)",
        shape=(2, 4),
        hint=ValueHint(kind="normal"),
        path=str(tmp_path / "x.npy"),
    )
    here = case_of(relu(tmp_path / "m.onnx"), inputs=(spec,))
    digests = []
    for runtime in (Runtime(), ELSEWHERE):
        worker = launcher.open(replace(here, runtime=runtime), worker=0, deadline=None)
        digests.append(worker.ask(CheckOutputs(run="first")).digest)
        worker.close()
    assert digests[0] == digests[1]


def test_a_large_file_goes_in_pieces(
    launcher: ProcessLauncher, tmp_path: Path, staged: Path
) -> None:
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.normal(size=(4, 1 << 18)).astype(np.float32), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    case = case_of(save(tmp_path / "big.onnx", [node], weights=[weight]), runtime=ELSEWHERE)
    assert case.model.size_bytes > 4 << 20
    worker = launcher.open(case, worker=0, deadline=None)
    (copy,) = staged.glob("ortbench-files-*/model/model.onnx")
    assert copy.read_bytes() == (tmp_path / "big.onnx").read_bytes()
    worker.close()


def test_a_file_that_is_gone_is_a_failure_of_that_phase(
    launcher: ProcessLauncher, tmp_path: Path, staged: Path
) -> None:
    case = replace(case_of(tmp_path / "gone.onnx"), runtime=ELSEWHERE)
    with pytest.raises(WorkerError) as caught:
        launcher.open(case, worker=0, deadline=None)
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("error", CHANGED_FILE)
    assert failure.message.startswith(f"{tmp_path / 'gone.onnx'} was removed ")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_what_a_killed_worker_left_is_removed_by_the_next(
    launcher: ProcessLauncher, tmp_path: Path, staged: Path
) -> None:
    case = case_of(relu(tmp_path / "m.onnx"), runtime=ELSEWHERE)
    killed = launcher.open(case, worker=0, deadline=None)
    (left,) = staged.glob("ortbench-files-*")
    os.killpg(killed.pid, 9)
    with pytest.raises(WorkerError):
        killed.ask(TimeBlock(iterations=1))
    assert left.exists()
    alive = launcher.open(case, worker=1, deadline=None)
    (folder,) = staged.glob("ortbench-files-*")
    assert folder != left
    # One whose worker lives is left alone.
    launcher.open(case, worker=2, deadline=None).close()
    assert folder.exists()
    assert len(alive.ask(TimeBlock(iterations=1)).durations_ns) == 1
    alive.close()


# -- commands in front of an interpreter ----------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ("env", "ORTBENCH_X=a b"),
        ("nice", "-n", "1"),
        ("taskset", "-c", "0"),
        ("perf", "stat", "-e", "task-clock", "--"),
        ("numactl", "--localalloc"),
    ],
    ids=lambda command: command[0],
)
def test_a_wrapper_starts_the_interpreter(
    launcher: ProcessLauncher, tmp_path: Path, command: tuple[str, ...]
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not here")
    case = case_of(
        relu(tmp_path / "m.onnx"),
        runtime=Runtime(label="wrapped", command=(*command, sys.executable)),
    )
    measured_alike(launcher, case, tmp_path / "scratch")


def test_what_a_wrapper_limits_is_seen(launcher: ProcessLauncher, tmp_path: Path) -> None:
    if shutil.which("taskset") is None:
        pytest.skip("taskset is not here")
    runtime = Runtime(label="one", command=("taskset", "-c", "0", sys.executable))
    worker = launcher.open(
        case_of(relu(tmp_path / "m.onnx"), runtime=runtime), worker=0, deadline=None
    )
    assert (worker.opened.cpus, worker.opened.threads) == (1, 1)


def test_no_shell_reads_a_command(launcher: ProcessLauncher, tmp_path: Path) -> None:
    odd = tmp_path / "a b; $(touch sentinel) 'c'"
    odd.symlink_to(shutil.which("env") or "/usr/bin/env")
    runtime = Runtime(label="odd", command=(str(odd), sys.executable))
    assert launcher.inspect(runtime).version == onnxruntime.__version__
    assert not Path("sentinel").exists()


def test_a_command_that_is_not_there(launcher: ProcessLauncher) -> None:
    with pytest.raises(WorkerError) as caught:
        launcher.inspect(Runtime(label="box", command=("no-such-program", "python3")))
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("unavailable", "start")
    assert "'no-such-program'" in failure.message
    assert "'box'" in failure.hint


def test_a_command_that_starts_no_python(launcher: ProcessLauncher) -> None:
    with pytest.raises(WorkerError) as caught:
        launcher.inspect(Runtime(label="box", command=("cat",)))
    assert caught.value.failure.phase == "start"
    assert "exited with 1" in caught.value.failure.message


# -- ssh ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with ssh_server(tmp_path_factory.mktemp("sshd")) as running:
        yield running


def over(server: SshServer, *words: str, shares_files: bool = False) -> Runtime:
    """A runtime on the other machine."""
    return Runtime(
        label="remote",
        command=for_remote_shell((*server.command, *words)),
        through_shell=True,
        shares_files=shares_files,
    )


@pytest.mark.needs("sshd")
def test_a_case_over_ssh(server: SshServer, launcher: ProcessLauncher, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    # A path and a value that the login shell over there would take apart, were they not quoted.
    python = tmp_path / "my $HOME 'python'"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    case = replace(
        external(tmp_path / "model"),
        runtime=over(server, "env", f"TMPDIR={there}", "X=$HOME; exit", str(python)),
    )
    measured_alike(launcher, case, tmp_path / "scratch")
    assert list(there.glob("ortbench-*")) == []


@pytest.mark.needs("sshd")
def test_the_remote_worker_ends_and_cleans_up_when_the_connection_breaks(
    server: SshServer, launcher: ProcessLauncher, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    runtime = over(server, "env", f"TMPDIR={there}", sys.executable)
    case = case_of(relu(tmp_path / "m.onnx"), runtime=runtime)
    worker = launcher.open(case, worker=0, deadline=None)
    assert len(list(there.glob("ortbench-files-*"))) == 1
    os.killpg(worker.pid, 9)  # the client on this side
    deadline = time.monotonic() + 600
    while any(there.glob("ortbench-*")) or _runs(worker.opened.info.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.needs("sshd")
def test_a_host_that_does_not_let_us_in(
    server: SshServer, launcher: ProcessLauncher, tmp_path: Path
) -> None:
    stranger = [
        "nobody-of-that-name" if word == server.command[-2] else word for word in server.command
    ]
    with pytest.raises(WorkerError) as caught:
        launcher.inspect(over(replace(server, command=tuple(stranger)), sys.executable))
    failure = caught.value.failure
    assert failure.phase == "start"
    assert "exited with 255" in failure.message
    assert "Permission denied" in failure.log_tail


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


#: What ``sshd`` does with a command line, for whatever login shell.
_LOGIN = "import os, sys; os.execlp(sys.argv[1], sys.argv[1], '-c', ' '.join(sys.argv[2:]))"


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish", "tcsh"])
def test_every_login_shell_lets_the_loader_through(
    launcher: ProcessLauncher, tmp_path: Path, shell: str
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    python = tmp_path / "my $HOME 'python'"
    python.symlink_to(shutil.which("env") or "/usr/bin/env")
    words = for_remote_shell(("ssh", "host", str(python), "X=`a`; \\ *", sys.executable))[2:]
    runtime = Runtime(
        label="remote",
        command=(sys.executable, "-c", _LOGIN, shell, *words),
        through_shell=True,
    )
    assert launcher.inspect(runtime).version == onnxruntime.__version__
