"""Free memory: of the machine, and what the cgroups leave of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.free_memory import available

_MACHINE = "MemTotal: 16000 kB\nMemAvailable: 8000 kB\n"


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("line", "folder", "maximum", "current", "prefix"),
    [
        ("0::/job/one", "job/one", "memory.max", "memory.current", ""),
        ("0::/not/visible/here", "", "memory.max", "memory.current", ""),
        ("4:memory:/job", "memory/job", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    ],
    ids=["v2", "v2 in a container", "v1"],
)
def test_cached_pages_of_files_are_free_memory(
    tmp_path: Path, line: str, folder: str, maximum: str, current: str, prefix: str
) -> None:
    """What a container has read counts as used by it."""
    place = f"sys/fs/cgroup/{folder}"
    cached = f"{prefix}inactive_file 3000000\n{prefix}active_file 500000\n"
    _write(
        tmp_path,
        {
            "proc/self/cgroup": f"{line}\n",
            "proc/meminfo": _MACHINE,
            f"{place}/{maximum}": "4000000\n",
            f"{place}/{current}": "3900000\n",
            f"{place}/memory.stat": f"anon 400000\nfile 3500000\n{cached}",
        },
    )
    assert available(tmp_path) == 4_000_000 - 3_900_000 + 3_500_000


def test_a_limit_above_holds_as_well(tmp_path: Path) -> None:
    _write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a/b\n",
            "proc/meminfo": _MACHINE,
            "sys/fs/cgroup/a/memory.max": "3000\n",
            "sys/fs/cgroup/a/memory.current": "1000\n",
            "sys/fs/cgroup/a/b/memory.max": "max\n",
            "sys/fs/cgroup/a/b/memory.current": "1\n",
        },
    )
    assert available(tmp_path) == 2000


def test_without_a_limit_there_is_what_the_machine_has(tmp_path: Path) -> None:
    _write(tmp_path, {"proc/self/cgroup": "0::/\n", "proc/meminfo": _MACHINE})
    assert available(tmp_path) == 8_192_000


def test_a_system_that_says_nothing_has_no_number(tmp_path: Path) -> None:
    assert available(tmp_path) is None
