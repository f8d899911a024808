"""Return codes, counters of the kernel and ends of logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.launch.ending import Ending, ending, oom_kills, read_log, tail


@pytest.mark.parametrize(
    ("code", "expected", "words"),
    [
        (0, Ending(exit_code=0), "exited with 0"),
        (3, Ending(exit_code=3), "exited with 3"),
        (-11, Ending(signal="SIGSEGV"), "died with SIGSEGV"),
        (139, Ending(signal="SIGSEGV"), "died with SIGSEGV"),
        (137, Ending(signal="SIGKILL"), "died with SIGKILL"),
        (128, Ending(exit_code=128), "exited with 128"),
        (255, Ending(exit_code=255), "exited with 255"),
        (-63, Ending(signal="signal 63"), "died with signal 63"),
    ],
)
def test_return_codes(code: int, expected: Ending, words: str) -> None:
    assert ending(code) == expected
    assert str(ending(code)) == words


@pytest.mark.parametrize(
    ("cgroup", "file", "content"),
    [
        ("0::/box\n", "sys/fs/cgroup/box/memory.events", "oom 3\noom_kill 2\n"),
        ("0::/not/visible\n", "sys/fs/cgroup/memory.events", "oom 3\noom_kill 2\n"),
        (
            "4:memory:/box\n",
            "sys/fs/cgroup/memory/box/memory.oom_control",
            "under_oom 0\noom_kill 2\n",
        ),
    ],
)
def test_kills_for_memory_are_counted(tmp_path: Path, cgroup: str, file: str, content: str) -> None:
    for name, text in {
        "proc/self/cgroup": cgroup,
        "proc/vmstat": "oom_kill 5\n",
        file: content,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert oom_kills(tmp_path) == 7


def test_no_counters_count_nothing(tmp_path: Path) -> None:
    assert oom_kills(tmp_path) == 0


def test_a_tail_is_short_and_clean(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\n".join(b"\x1b[31mline %d\x1b[m" % n for n in range(100)) + b"\n\xff\n")
    lines = tail(read_log(log)).splitlines()
    assert len(lines) == 40
    assert lines[-2] == "line 99"
    assert lines[0] == "line 61"


def test_a_tail_of_long_lines_is_cut_by_bytes() -> None:
    assert len(tail("é" * 20_000).encode()) <= 8_000


def test_no_log_is_empty(tmp_path: Path) -> None:
    assert read_log(tmp_path / "none") == ""
