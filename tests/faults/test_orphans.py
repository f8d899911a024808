"""A worker that dies is told as that at once, and what it started ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_ortbench.core import descendants
from pytest_ortbench.core.descendants import MARK, end_marked
from pytest_ortbench.core.own_folder import start_of

from .runs import BARE, started, write_model

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc"),
]

_STAGE = """
import os, pathlib, signal, subprocess, time

def note(pid):
    pathlib.Path("pids").write_text(str(pid))

def preprocess(feeds):
    {body}
    return feeds
"""
_FORK = """
    if os.fork() == 0:
        {session}
        note(os.getpid()); time.sleep(300); os._exit(0)
    while not pathlib.Path("pids").exists(): time.sleep(0.01)
    {end}
"""
#: Twice: whoever made it is gone, and it belongs to nobody's group.
_DAEMON = "os.setsid(); os.fork() and os._exit(0)"


def _body(session: str, end: str) -> str:
    return _STAGE.format(body=_FORK.format(session=session, end=end).strip())


@pytest.mark.parametrize(
    ("body", "how"),
    [
        (_body("os.setsid()", "os.kill(os.getpid(), signal.SIGSEGV)"), "SIGSEGV"),
        (_body(_DAEMON, "os._exit(3)"), "exited with 3"),
        (
            _STAGE.format(
                body="note(subprocess.Popen(['sleep', '300'], start_new_session=True).pid); "
                "os.kill(os.getpid(), signal.SIGKILL)"
            ),
            "SIGKILL",
        ),
    ],
    ids=["fork", "daemon", "program"],
)
def test_a_crash_is_told_though_a_child_holds_the_pipe(tmp_path: Path, body: str, how: str) -> None:
    write_model(tmp_path / "m.onnx")
    (tmp_path / "stages.py").write_text(body)
    with started(tmp_path, ["m.onnx", "-k", "latency", "--ort-stages=stages.py", *BARE]) as run:
        printed = run.end()
    (case,) = run.results()
    assert case["status"] == "measured"
    assert how in case["stages"]["reason"], printed
    assert not start_of(int((tmp_path / "pids").read_text()))


def test_what_a_worker_left_behind_ends_with_a_healthy_run(tmp_path: Path) -> None:
    write_model(tmp_path / "m.onnx")
    once = 'if not pathlib.Path("pids").exists() and '
    (tmp_path / "stages.py").write_text(_body(_DAEMON, "").replace("if ", once, 1))
    with started(tmp_path, ["m.onnx", "-k", "latency", "--ort-stages=stages.py", *BARE]) as run:
        printed = run.end()
    (case,) = run.results()
    assert case["status"] == "measured", printed
    assert not start_of(int((tmp_path / "pids").read_text()))


def test_a_run_that_is_killed_takes_grandchildren_along(tmp_path: Path) -> None:
    write_model(tmp_path / "m.onnx")
    (tmp_path / "stages.py").write_text(_body("os.setsid()", "time.sleep(300)"))
    with started(tmp_path, ["m.onnx", "-k", "latency", "--ort-stages=stages.py", *BARE]) as run:
        run.until((tmp_path / "pids").exists)
        run.signal(signal.SIGKILL)
        run.end()
    grandchild = int((tmp_path / "pids").read_text())
    deadline = time.monotonic() + 600
    while start_of(grandchild):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_another_mark_is_left_alone() -> None:

    children = [
        subprocess.Popen(["sleep", "6000"], env={**os.environ, MARK: mark}, start_new_session=True)
        for mark in ("one-of-a-test", "one-of-a-test-2")
    ]
    try:
        assert end_marked("") == 0
        assert end_marked("one-of-a-test") == 1
        assert children[0].wait(600) == -signal.SIGKILL
        assert children[1].poll() is None
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_one_that_is_killed_and_not_yet_gone_is_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(["sleep", "6000"]) as child:  # not waited for: its id stays taken
        monkeypatch.setattr(descendants, "_readable", lambda: iter([child.pid]))
        monkeypatch.setattr(descendants, "_is_marked", lambda _pid, _mark: True)
        assert end_marked("one-of-a-test") == 1
