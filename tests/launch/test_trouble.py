"""Workers that crash, hang, chatter, leave or are killed: each ends as one failure, and is gone."""

from __future__ import annotations

import errno
import os
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pytest_ortbench.core.case import Provider, Runtime, SessionConfig
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.schema.case_questions import ReadMemory, TimeBlock
from tests.launch.cases import case_of, relu, stand_in
from tests.launch.moved_clock import moved_clock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups")


@pytest.fixture
def launcher(launcher: ProcessLauncher) -> Iterator[ProcessLauncher]:
    yield launcher
    launcher.close()
    assert psutil.Process().children() == []


def ends_with(launcher: ProcessLauncher, folder: Path, behaviour: str) -> Failure:
    """The failure of a case in an interpreter that misbehaves."""
    case = case_of(relu(folder / "m.onnx"), runtime=stand_in(folder, behaviour))
    with pytest.raises(WorkerError) as caught:
        launcher.open(case, worker=0, deadline=None).ask(TimeBlock(iterations=5))
    return caught.value.failure


@pytest.mark.parametrize("phase", ["import", "session", "first"])
def test_a_crash_names_signal_phase_and_log(
    launcher: ProcessLauncher, tmp_path: Path, phase: str
) -> None:
    failure = ends_with(launcher, tmp_path, f"segfault@{phase}")
    assert (failure.kind, failure.phase, failure.signal) == ("crash", phase, "SIGSEGV")
    assert (failure.tells_signal, "SIGSEGV" in failure.message) == (True, True)
    assert failure.log_tail == "about to fall"
    assert failure.exit_code is None


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_a_kernel_that_refuses_descriptors_of_processes(
    launcher: ProcessLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Old kernels, gVisor and system call filters: Python has the call, and it fails."""

    def refuse(pid: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    worker = launcher.open(case_of(relu(tmp_path / "m.onnx")), worker=0, deadline=None)
    assert len(worker.ask(TimeBlock(iterations=3)).durations_ns) == 3
    worker.close()
    failure = ends_with(launcher, tmp_path, "segfault@session")
    assert (failure.kind, failure.phase, failure.signal) == ("crash", "session", "SIGSEGV")


def test_a_crash_in_the_middle_of_measuring(launcher: ProcessLauncher, tmp_path: Path) -> None:
    failure = ends_with(launcher, tmp_path, "segfault@later")
    assert (failure.kind, failure.phase) == ("crash", "measure")


@pytest.mark.live
def test_a_session_that_never_comes_is_a_timeout_and_its_group_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T11: the next case runs."""
    clock = moved_clock(monkeypatch)
    with closing(ProcessLauncher(on_phase=clock.at("session", tmp_path / "child"))) as hung:
        failure = ends_with(hung, tmp_path, "hang@session")
    assert (failure.kind, failure.phase) == ("timeout", "session")
    assert (failure.tells_phase, "--ort-timeout" in failure.hint) == (True, True)
    child = int((tmp_path / "child").read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie"
    # The next case runs.
    clock.ahead_s = 0.0
    with closing(ProcessLauncher()) as launcher:
        worker = launcher.open(case_of(tmp_path / "m.onnx"), worker=0, deadline=None)
        assert worker.ask(TimeBlock(iterations=1)).durations_ns
    assert psutil.Process().children() == []


def test_chatter_on_stdout_goes_to_the_log(launcher: ProcessLauncher, tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"), runtime=stand_in(tmp_path, "print@later"))
    worker = launcher.open(case, worker=0, deadline=None)
    assert len(worker.ask(TimeBlock(iterations=3)).durations_ns) == 3
    worker.close()
    (log,) = (tmp_path / "logs").iterdir()
    assert log.read_text().count("chatter from Python\n") == 3
    assert log.read_text().count("chatter from below") == 3


def test_leaving_early_is_a_crash_with_its_exit_code(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    failure = ends_with(launcher, tmp_path, "leave@first")
    assert (failure.kind, failure.phase, failure.exit_code) == ("crash", "first", 7)
    assert failure.signal == ""
    assert " 7 " in failure.message


def test_sys_exit_of_an_imported_package_too(launcher: ProcessLauncher, tmp_path: Path) -> None:
    failure = ends_with(launcher, tmp_path, "sys.exit@import")
    assert (failure.kind, failure.phase, failure.exit_code) == ("crash", "import", 9)


def test_memory_that_runs_out_in_python(launcher: ProcessLauncher, tmp_path: Path) -> None:
    failure = ends_with(launcher, tmp_path, "memory@later")
    assert (failure.kind, failure.phase) == ("out_of_memory", "measure")
    assert "Unable to allocate 1.00 TiB for an array" in failure.message


def test_memory_that_runs_out_in_native_code(launcher: ProcessLauncher, tmp_path: Path) -> None:
    failure = ends_with(launcher, tmp_path, "abort@session")
    assert (failure.kind, failure.phase, failure.signal) == ("out_of_memory", "session", "SIGABRT")
    assert "std::bad_alloc" in failure.message


def test_what_python_raises_is_an_error_and_its_place_is_in_the_log(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    failure = ends_with(launcher, tmp_path, "raise@session")
    assert (failure.kind, failure.phase) == ("error", "session")
    assert failure.message.startswith("RuntimeError: ")
    assert "pytest_ortbench/worker/session.py" in failure.log_tail
    assert "session = ort.InferenceSession(" in failure.log_tail


@pytest.mark.live
def test_killed_from_outside_in_the_middle_of_a_block(tmp_path: Path) -> None:
    workers: list[int] = []

    def kill(phase: str) -> None:
        if phase == "measure":
            os.kill(workers[0], signal.SIGKILL)

    launcher = ProcessLauncher(on_phase=kill)
    worker = launcher.open(case_of(relu(tmp_path / "m.onnx")), worker=0, deadline=None)
    workers.append(worker.pid)
    with pytest.raises(WorkerError) as caught:
        worker.ask(TimeBlock(iterations=10_000_000))
    failure = caught.value.failure
    assert (failure.kind, failure.phase, failure.signal) == ("crash", "measure", "SIGKILL")
    assert "dmesg" in failure.hint
    with pytest.raises(WorkerError, match="SIGKILL"):
        worker.ask(ReadMemory())
    worker.pause()
    worker.resume()
    launcher.close()


@pytest.mark.live
def test_a_deadline_in_the_middle_of_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = moved_clock(monkeypatch)
    with closing(ProcessLauncher(on_phase=clock.at("measure"))) as launcher:
        worker = launcher.open(case_of(relu(tmp_path / "m.onnx")), worker=0, deadline=None)
        with pytest.raises(WorkerError) as caught:
            worker.ask(TimeBlock(iterations=10_000_000))
    assert (caught.value.failure.kind, caught.value.failure.phase) == ("timeout", "measure")


@pytest.mark.live
def test_ctrl_c_of_the_host_ends_the_worker(tmp_path: Path) -> None:
    pids: list[int] = []

    def interrupt(phase: str) -> None:
        pids.extend(child.pid for child in psutil.Process().children())
        if phase == "session":
            raise KeyboardInterrupt

    launcher = ProcessLauncher(on_phase=interrupt)
    with pytest.raises(KeyboardInterrupt):
        launcher.open(case_of(relu(tmp_path / "m.onnx")), worker=0, deadline=None)
    assert pids
    assert psutil.Process().children() == []
    launcher.close()


def test_ctrl_c_of_the_terminal_does_not_reach_the_worker(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    worker = launcher.open(case_of(relu(tmp_path / "m.onnx")), worker=0, deadline=None)
    assert os.getpgid(worker.pid) == worker.pid != os.getpgid(0)
    assert os.getsid(worker.pid) == worker.pid != os.getsid(0)


@pytest.mark.live
def test_a_worker_ends_with_its_host(tmp_path: Path) -> None:
    """Even one that hangs in a native call: the host that is killed can't end it."""
    relu(tmp_path / "m.onnx")
    script = f"""
import os, sys
from pathlib import Path
from pytest_ortbench.launch.launcher import ProcessLauncher
from tests.launch.cases import case_of, stand_in
import psutil
folder = Path({str(tmp_path)!r})

def die(phase):
    if phase == "session":
        print(psutil.Process().children()[0].pid, flush=True)
        os._exit(0)

case = case_of(folder / "m.onnx", runtime=stand_in(folder, "hang@session"))
ProcessLauncher(on_phase=die).open(case, worker=0, deadline=None)
"""
    root = Path(__file__).parents[2]
    host = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    pid = int(host.stdout)
    if psutil.pid_exists(pid):
        ended = os.pidfd_open(pid)
        assert select.select([ended], [], [], 600.0)[0]
        os.close(ended)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("/nope/python",), "'/nope/python', which starts the runtime 'odd', can't be started"),
        (("sh", "-c", "exit 5"), "exited with 5"),
        (("sh", "-c", "yes"), "over 1048576 bytes"),
        (("sh", "-c", "yes | tr -d '\\n'"), "over 1048576 bytes"),
        (("sh", "-c", 'shift 2; echo "$1 {broken"; cat >/dev/null'), "broken frame"),
    ],
)
def test_commands_that_are_no_interpreters(
    launcher: ProcessLauncher, command: tuple[str, ...], words: str
) -> None:
    with pytest.raises(WorkerError) as caught:
        launcher.inspect(
            Runtime(label="odd", command=(*command, "sh") if "sh" in command else command)
        )
    failure = caught.value.failure
    assert failure.phase == "start"
    assert failure.kind in ("error", "unavailable")
    assert words in failure.message


@pytest.mark.parametrize(
    ("provider", "option"),
    [
        (Provider(alias="cpu", name="CPUExecutionProvider"), "--ort-runtimes="),
        (Provider(alias="mnn", name="MNN", role="engine"), "leave mnn out of --ort-providers"),
    ],
)
def test_a_crash_tells_how_to_do_without_what_crashed(
    launcher: ProcessLauncher, tmp_path: Path, provider: Provider, option: str
) -> None:
    runtime = Runtime(label="odd", command=("sh", "-c", "kill -SEGV $$", "sh"))
    case = case_of(relu(tmp_path / "m.onnx"), runtime=runtime)
    with pytest.raises(WorkerError) as caught:
        launcher.open(replace(case, provider=provider), worker=0, deadline=None)
    failure = caught.value.failure
    assert (failure.kind, failure.signal) == ("crash", "SIGSEGV")
    assert option in failure.hint


def test_a_crash_beside_code_of_the_user_is_looked_for_there(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    runtime = Runtime(label="odd", command=("sh", "-c", "kill -SEGV $$", "sh"))
    case = case_of(relu(tmp_path / "m.onnx"), runtime=runtime)
    case = replace(case, session=SessionConfig(custom_ops=("/x/libmyops.so",)))
    with pytest.raises(WorkerError) as caught:
        launcher.open(case, worker=0, deadline=None)
    assert "/x/libmyops.so" in caught.value.failure.hint
    assert "--ort-runtimes" not in caught.value.failure.hint


def test_a_command_that_ends_is_not_called_python(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    runtime = Runtime(label="board", command=("sh", "-c", "exit 255", "sh"))
    case = case_of(relu(tmp_path / "m.onnx"), runtime=runtime)
    with pytest.raises(WorkerError) as caught:
        launcher.open(case, worker=0, deadline=None)
    failure = caught.value.failure
    assert "255" in failure.message
    assert "Python" not in failure.message
    assert shlex.join((*runtime.command, "--version")) in failure.hint


@pytest.mark.live
def test_too_many_open_files_are_no_fault_of_the_command(tmp_path: Path) -> None:
    script = """
import os, resource, sys
from pathlib import Path
from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import RAISE_OPEN_FILES, WorkerError
from pytest_ortbench.launch.launcher import ProcessLauncher

launcher = ProcessLauncher(log_folder=Path(sys.argv[1]))
free = os.dup(0)
resource.setrlimit(resource.RLIMIT_NOFILE, (free + 3, free + 3))
try:
    launcher.inspect(Runtime())
except WorkerError as error:
    print(error.failure.phase, error.failure.hint == RAISE_OPEN_FILES)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == ["start", "True"]
