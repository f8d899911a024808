"""What a memory limit counts and sets: families of processes, and cgroups of version 2."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.cpus import cgroup_folders
from pytest_ortbench.core.descendants import descendants_of
from pytest_ortbench.launch import memory_limit
from pytest_ortbench.launch.memory_limit import MemoryLimit

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")

_MB = 1 << 20
#: Starts a process that starts one with 200 MB of its own, and waits.
_FAMILY = """
import subprocess, sys, time
inner = "import time; held = bytearray(b'x') * (200 << 20); print('held', flush=True); "
inner += "time.sleep(300)"
middle = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
subprocess.run([sys.executable, "-c", middle])
"""
#: Holds 200 MB and shares them with two forks.
_FORKS = """
import os, time
held = bytearray(b'x') * (200 << 20)
if os.fork() == 0 or os.fork() == 0:
    time.sleep(300)
print("held", flush=True)
time.sleep(300)
"""


@pytest.fixture
def process(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs a program until the test ends, with all that it started."""
    command = [sys.executable, "-c", request.param]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert started.stdout is not None
    try:
        assert started.stdout.readline() == b"held\n"
        yield started
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()
        started.stdout.close()


@pytest.mark.live
@pytest.mark.parametrize("process", [_FAMILY], indirect=True, ids=["family"])
def test_what_a_grandchild_takes_counts(process: subprocess.Popen[bytes]) -> None:
    assert len(descendants_of(process.pid)) == 2
    assert memory_limit._resident(process.pid) < 150 * _MB
    assert MemoryLimit(process.pid, 150 * _MB, kernel=False).exceeded()
    assert not MemoryLimit(process.pid, 1000 * _MB, kernel=False).exceeded()


@pytest.mark.live
@pytest.mark.parametrize("process", [_FORKS], indirect=True, ids=["forks"])
def test_what_forks_share_counts_once(process: subprocess.Popen[bytes]) -> None:
    pids = [process.pid, *descendants_of(process.pid)]
    assert len(pids) == 3
    assert sum(map(memory_limit._resident, pids)) > 600 * _MB
    assert not MemoryLimit(process.pid, 400 * _MB, kernel=False).exceeded()
    assert MemoryLimit(process.pid, 150 * _MB, kernel=False).exceeded()


def test_a_process_that_is_gone_takes_nothing() -> None:
    assert descendants_of(2**22 + 1) == []
    assert not MemoryLimit(2**22 + 1, 1, kernel=False).exceeded()


@pytest.fixture
def unified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree as of cgroups of version 2, in plain files; the parent of this process' own group."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/user.slice/app.scope\n")
    own = tmp_path / "sys/fs/cgroup/user.slice/app.scope"
    own.mkdir(parents=True)
    for folder in (own, own.parent, own.parent.parent):
        (folder / "cgroup.procs").write_text("")
    monkeypatch.setattr(
        memory_limit, "cgroup_folders", functools.partial(cgroup_folders, root=tmp_path)
    )
    return own.parent


def _without_controller(monkeypatch: pytest.MonkeyPatch, *parents: Path) -> None:
    """Let groups below these have no files of memory, as where it is not handed on to them."""
    write = Path.write_text

    def refusing(path: Path, text: str, **more: Any) -> int:
        if path.parent.parent in parents and path.name.startswith("memory."):
            raise PermissionError(13, "Permission denied", str(path))
        return write(path, text, **more)

    monkeypatch.setattr(Path, "write_text", refusing)


def _ended_by(limit: MemoryLimit, folder: Path) -> None:
    """Remove the files of a group, which a real one takes along when it is removed."""
    for file in folder.iterdir():
        file.unlink()
    limit.close()


def test_a_group_of_version_2_is_made_with_its_limit(unified: Path) -> None:
    limit = MemoryLimit(4242, 900 * _MB)
    (group,) = (unified / "app.scope").glob("ortbench-*")
    found = {file.name: file.read_text() for file in group.iterdir()}
    assert found == {
        "memory.max": str(900 * _MB),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cgroup.procs": "4242",
    }
    assert limit.by_kernel
    assert not limit.exceeded()
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\n")
    assert not limit.killed()
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\n")
    assert limit.killed()
    _ended_by(limit, group)
    assert not group.exists()


def test_a_group_that_holds_processes_gets_a_sister(
    unified: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a group has processes of its own, it hands no controller on."""
    _without_controller(monkeypatch, unified / "app.scope")
    limit = MemoryLimit(4242, 900 * _MB)
    assert list((unified / "app.scope").glob("ortbench-*")) == []
    (group,) = unified.glob("ortbench-*")
    assert (group / "memory.max").read_text() == str(900 * _MB)
    _ended_by(limit, group)


def test_without_a_right_to_groups_the_host_looks_itself(
    unified: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_controller(monkeypatch, unified, unified / "app.scope")
    limit = MemoryLimit(os.getpid(), 1 * _MB)
    assert not limit.by_kernel
    assert limit.exceeded()
    assert list(unified.rglob("ortbench-*")) == []


@pytest.mark.live
def test_what_is_left_in_a_group_ends_with_it(unified: Path) -> None:
    left = subprocess.Popen(["sleep", "300"])
    try:
        limit = MemoryLimit(left.pid, 900 * _MB)
        limit.close()
        assert left.wait(600) == -signal.SIGKILL
    finally:
        left.kill()
        left.wait()
