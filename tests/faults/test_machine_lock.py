"""Two runs never measure at the same time, unless one of them was told not to wait."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_ortbench.core.own_folder import start_of
from pytest_ortbench.core.stop_signals import GAVE_UP_WAITING, GaveUpWaiting, StoppedWaiting
from pytest_ortbench.launch import machine_lock
from pytest_ortbench.launch.machine_lock import HELD, PLACE, MachineLock, holder_of, lock_file
from pytest_ortbench.launch.waiting_line import WaitingLine

from .runs import BARE, started, write_model

pytest.importorskip("fcntl", reason="locks of POSIX")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of the test's own, which nothing that started this process holds."""
    monkeypatch.setenv(PLACE, str(tmp_path / "machine.lock"))
    monkeypatch.delenv(HELD, raising=False)
    return tmp_path / "machine.lock"


@pytest.fixture
def held(place: Path) -> Iterator[MachineLock]:
    """The lock of a run that measures, of which this process's environment does not tell."""
    lock = MachineLock(_nobody)
    assert lock.take() >= 0
    os.environ.pop(HELD)
    yield lock
    lock.close()


def _nobody(_: str) -> None:
    raise AssertionError("nobody is waited for")


def test_one_that_does_not_wait_names_the_other_and_is_seen_by_it(held: MachineLock) -> None:
    assert held.other() == ""
    beside = MachineLock(_nobody, waits=False)
    assert beside.take() >= 0
    assert str(os.getpid()) in beside.other()
    assert held.other()
    beside.close()
    assert held.other() == ""


def test_once_the_machine_is_free_one_that_did_not_wait_has_its_turn(held: MachineLock) -> None:
    beside = MachineLock(_nobody, waits=False)
    beside.take()
    held.close()
    assert beside.other() == ""
    other = MachineLock(_nobody, waits=False)
    os.environ.pop(HELD)
    again = MachineLock(_nobody, waits=False)
    again.take()
    assert again.other()
    for lock in (beside, other, again):
        lock.close()


def test_what_a_run_starts_measures_under_its_lock(place: Path) -> None:
    lock = MachineLock(_nobody)
    lock.take()
    assert os.environ[HELD].endswith(str(place))
    child = MachineLock(_nobody)
    assert (child.take(), child.other()) == (0.0, "")
    lock.close()
    assert HELD not in os.environ


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"pid": "x", "since": 1}', b"\xff" * 900])
def test_what_others_wrote_into_the_file_is_no_harm(held: MachineLock, content: bytes) -> None:
    lock_file().write_bytes(content)
    beside = MachineLock(_nobody, waits=False)
    beside.take()
    assert beside.other()
    beside.close()


@pytest.mark.parametrize("ends", [b"null", b"-1", b"1e999", b'"soon"', b"[2]"])
def test_an_end_that_is_none_is_not_told(held: MachineLock, ends: bytes) -> None:
    lock_file().write_bytes(b'{"pid": 4242, "since": 5.0, "ends": %s}' % ends)
    assert holder_of(lock_file()).ends == 0.0


def test_a_run_tells_those_that_wait_when_it_expects_to_end(
    held: MachineLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert holder_of(lock_file()).ends == 0.0
    monkeypatch.setattr("pytest_ortbench.launch.machine_lock.time.time", lambda: 5000.0)
    held.expect(90.0)
    assert holder_of(lock_file()).ends == 5090.0
    held.expect(20.0)
    assert holder_of(lock_file()).ends == 5020.0
    waiting = MachineLock(_nobody)
    assert waiting.awaited() == str(holder_of(lock_file()))
    assert held.awaited() == ""
    assert MachineLock(_nobody, waits=False).awaited() == ""
    held.close()
    assert waiting.awaited() == ""


def test_a_run_that_knew_its_end_before_its_turn_tells_it_then(place: Path) -> None:
    lock = MachineLock(_nobody)
    lock.expect(60.0)
    lock.take()
    holder = holder_of(lock_file())
    assert holder.pid == os.getpid()
    assert holder.ends - holder.since == pytest.approx(60.0, abs=30.0)
    lock.close()


def test_links_and_pipes_in_its_place_are_not_opened(place: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"data")
    place.symlink_to(precious)
    lock = MachineLock(_nobody)
    lock.take()
    assert (lock.other(), precious.read_bytes()) == ("", b"data")
    lock.close()
    place.unlink()
    os.mkfifo(place)
    lock = MachineLock(_nobody)
    lock.take()
    lock.close()


def test_the_file_is_the_same_for_all_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PLACE)
    monkeypatch.setenv("TMPDIR", "/somewhere/else")
    assert str(lock_file().parent) in machine_lock._FOLDERS


@pytest.mark.live
def test_every_user_may_lock_the_file(place: Path) -> None:
    before = os.umask(0o077)
    try:
        lock = MachineLock(_nobody)
        lock.take()
        lock.close()
    finally:
        os.umask(before)
    assert place.stat().st_mode & 0o777 == 0o666


_HOLDER = """
import sys, time
from pytest_ortbench.launch.machine_lock import MachineLock
MachineLock(print).take()
print("held", flush=True)
time.sleep(300)
"""


@pytest.mark.live
def test_a_run_that_is_killed_gives_its_turn_back(place: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        told: list[str] = []
        lock = MachineLock(lambda text: (told.append(text), holder.kill())[0])
        assert lock.take() > 0
        assert [str(holder.pid) in text for text in told] == [True, False]
        lock.close()
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


_WAITER = """
import sys, time
from pytest_ortbench.launch.machine_lock import MachineLock
lock = MachineLock(lambda text: print("waits", flush=True))
lock.take()
with open(sys.argv[1], "a") as order:
    order.write(sys.argv[2])
lock.close()
"""


@contextmanager
def waiter(order: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for its turn, and writes its name then."""
    command = [sys.executable, "-c", _WAITER, str(order), name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"waits\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.live
def test_those_that_wait_have_their_turn_in_the_order_in_which_they_came(
    held: MachineLock, tmp_path: Path
) -> None:
    order = tmp_path / "order"
    with waiter(order, "a") as first, waiter(order, "b") as second:
        # One that does not wait takes no turn before them, ...
        for process in (first, second):
            process.send_signal(signal.SIGSTOP)
        beside = MachineLock(_nobody, waits=False)
        held.close()
        beside.take()
        assert beside.other()
        for process in (second, first):
            process.send_signal(signal.SIGCONT)
        assert (first.wait(), second.wait()) == (0, 0)
        # ... and has it when nobody waits any more.
        assert beside.other() == ""
        beside.close()
    assert order.read_text() == "ab"


@pytest.mark.live
def test_one_that_died_while_it_waited_is_not_waited_for(held: MachineLock, tmp_path: Path) -> None:
    order = tmp_path / "order"
    with waiter(order, "a") as first, waiter(order, "b") as second:
        first.kill()
        first.wait()
        held.close()
        assert second.wait() == 0
    assert order.read_text() == "b"


@pytest.mark.live
def test_one_that_is_suspended_while_it_waits_keeps_nobody_from_a_free_machine(
    held: MachineLock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_lock, "_LEFT_TO_OTHERS", 1)
    with waiter(tmp_path / "order", "a") as first:
        first.send_signal(signal.SIGSTOP)
        held.close()
        lock = MachineLock(lambda _: None)
        assert lock.take() > 0
        assert lock.other() == ""
        lock.close()
        first.send_signal(signal.SIGCONT)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b'[["x", 1]]', b"[[1, 2, 3]]", b'[[-5, ""]]', b"\xff" * 900]
)
def test_what_others_wrote_into_the_line_is_no_harm(place: Path, content: bytes) -> None:
    place.with_name(f"{place.name}.waiting").write_bytes(content)
    lock = MachineLock(_nobody)
    lock.take()
    assert lock.other() == ""
    lock.close()


def test_one_that_another_wrote_out_of_the_line_stands_in_it_again(place: Path) -> None:
    line = WaitingLine(place.with_name("line"))
    line.join()
    assert line.ahead() == 0
    stranger = [os.getppid(), start_of(os.getppid())]
    line.path.write_text(json.dumps([stranger]), encoding="ascii")
    line.join()
    assert line.ahead() == 1
    own = [os.getpid(), start_of(os.getpid())]
    assert json.loads(line.path.read_text(encoding="ascii")) == [stranger, own]


def test_one_that_is_interrupted_while_it_waits_says_so(
    held: MachineLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_ortbench.launch.machine_lock.time.sleep", interrupt)
    with pytest.raises(StoppedWaiting) as caught:
        MachineLock(lambda _: None).take()
    assert str(os.getpid()) in str(caught.value)
    # It stands in nobody's way.
    assert WaitingLine(lock_file().with_name(f"{lock_file().name}.waiting")).ahead() == 0
    monkeypatch.setattr(WaitingLine, "leave", lambda _: interrupt(0))
    with pytest.raises(StoppedWaiting):  # one that is interrupted twice, too
        MachineLock(lambda _: None).take()


@pytest.mark.parametrize("longest_s", [0.0, 1.5])
def test_one_that_waits_only_so_long_gives_up_and_names_the_other(
    held: MachineLock, monkeypatch: pytest.MonkeyPatch, longest_s: float
) -> None:
    began = time.monotonic()
    slept: list[float] = []
    monkeypatch.setattr("pytest_ortbench.launch.machine_lock.time.sleep", slept.append)
    monkeypatch.setattr(
        "pytest_ortbench.launch.machine_lock.time.monotonic", lambda: began + sum(slept)
    )
    with pytest.raises(GaveUpWaiting) as caught:
        MachineLock(lambda _: None, longest_s=longest_s).take()
    assert str(os.getpid()) in str(caught.value)
    assert sum(slept) == longest_s
    # It stands in nobody's way.
    assert WaitingLine(lock_file().with_name(f"{lock_file().name}.waiting")).ahead() == 0
    held.close()
    lock = MachineLock(_nobody, longest_s=longest_s)
    assert lock.take() == 0.0
    lock.close()


def test_one_that_gives_up_has_its_turn_where_the_other_ends_in_time(
    held: MachineLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_ortbench.launch.machine_lock.time.sleep", lambda _: held.close())
    lock = MachineLock(lambda _: None, longest_s=60.0)
    lock.take()
    assert lock.other() == ""
    lock.close()


@pytest.mark.live
def test_a_run_that_gives_up_waiting_ends_with_its_own_code_and_writes_no_run(
    held: MachineLock, tmp_path: Path
) -> None:
    write_model(tmp_path / "m.onnx")
    printed = tmp_path / "printed"
    arguments = ["m.onnx", "-k", "latency", "--ort-wait=0s", *BARE]
    with printed.open("w") as output, started(tmp_path, arguments, stdout=output) as run:
        run.end()
    said = printed.read_text()
    assert run.process.returncode == GAVE_UP_WAITING
    assert run.results() == []
    # One line tells it: the option, and who measures.
    (line,) = [line for line in said.splitlines() if line.startswith("!")]
    assert "--ort-wait" in line
    assert f"process {os.getpid()}" in line


@pytest.mark.live
def test_a_second_run_waits_and_says_so(held: MachineLock, tmp_path: Path) -> None:
    write_model(tmp_path / "m.onnx")
    printed = tmp_path / "printed"
    with printed.open("w") as output:
        arguments = ["m.onnx", "-k", "latency", *BARE]
        with started(tmp_path, arguments, stdout=output) as run:
            run.until(lambda: f"process {os.getpid()}" in printed.read_text())
            assert run.results() == []
            held.close()
            run.end()
    (case,) = run.results()
    assert (run.process.returncode, case["status"], case["other_run"]) == (0, "measured", "")


@pytest.mark.live
def test_a_run_that_does_not_wait_is_flagged(held: MachineLock, tmp_path: Path) -> None:
    write_model(tmp_path / "m.onnx")
    with started(tmp_path, ["m.onnx", "-k", "latency", "--ort-no-lock", *BARE]) as run:
        run.end()
    (case,) = run.results()
    assert "OTHER-RUN" in [flag["name"] for flag in case["flags"]]
    assert str(os.getpid()) in case["other_run"]


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_waits_ends_with_a_signal(
    held: MachineLock, tmp_path: Path, number: signal.Signals
) -> None:
    write_model(tmp_path / "m.onnx")
    printed = tmp_path / "printed"
    arguments = ["m.onnx", "-k", "latency", *BARE]
    with printed.open("w") as output, started(tmp_path, arguments, stdout=output) as run:
        run.until(lambda: f"process {os.getpid()}" in printed.read_text())
        run.signal(number)
        run.end()
    assert run.process.returncode == pytest.ExitCode.INTERRUPTED
    # One line tells it, and no place in our code.
    said = printed.read_text()
    assert len([line for line in said.splitlines() if line.startswith("!")]) == 1
    assert "machine_lock.py" not in said
