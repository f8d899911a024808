"""What a process may use, on laid-out copies of /proc and /sys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_ortbench.core.cpus import CpuAllowance, allowance, quota, throttle_files


def lay(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def cpus(count: int, *, per_core: int = 1) -> dict[str, str]:
    """Files of a machine with that many logical CPUs."""
    files = {"sys/devices/system/cpu/online": f"0-{count - 1}\n" if count > 1 else "0\n"}
    for cpu in range(count):
        first = cpu // per_core * per_core
        siblings = f"{first}-{first + per_core - 1}" if per_core > 1 else str(cpu)
        files[f"sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list"] = f"{siblings}\n"
    return files


def allow(monkeypatch: pytest.MonkeyPatch, numbers: set[int]) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: numbers, raising=False)


V2 = {"proc/self/cgroup": "0::/box/inner\n"}
V1 = {"proc/self/cgroup": "4:cpu,cpuacct:/box\n3:memory:/other\n"}


@pytest.mark.parametrize(
    ("allowed", "files", "expected"),
    [
        ({0, 1, 2, 3}, {}, (4, 4, "physical cores", None)),
        ({2}, {}, (1, 1, "affinity", None)),
        (
            {0, 1, 2, 3},
            {**V2, "sys/fs/cgroup/box/inner/cpu.max": "200000 100000\n"},
            (2, 2, "cgroup v2 quota", 2.0),
        ),
        (
            {0, 1, 2, 3},
            {**V2, "sys/fs/cgroup/box/inner/cpu.max": "150000 100000\n"},
            (2, 2, "cgroup v2 quota", 1.5),
        ),
        (
            {0, 1, 2, 3},
            {**V2, "sys/fs/cgroup/box/inner/cpu.max": "max 100000\n"},
            (4, 4, "physical cores", None),
        ),
        # The tightest level counts, wherever it is.
        (
            {0, 1, 2, 3},
            {
                **V2,
                "sys/fs/cgroup/box/inner/cpu.max": "300000 100000\n",
                "sys/fs/cgroup/box/cpu.max": "50000 100000\n",
            },
            (1, 1, "cgroup v2 quota", 0.5),
        ),
        # A container whose own path is not visible in its mount.
        (
            {0, 1, 2, 3},
            {**V2, "sys/fs/cgroup/cpu.max": "100000 100000\n"},
            (1, 1, "cgroup v2 quota", 1.0),
        ),
        (
            {0, 1, 2, 3},
            {
                **V1,
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "250000\n",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
            },
            (3, 3, "cgroup v1 quota", 2.5),
        ),
        (
            {0, 1, 2, 3},
            {
                **V1,
                "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000\n",
            },
            (4, 4, "physical cores", None),
        ),
        # A quota above what the affinity gives limits nothing.
        (
            {0, 1},
            {**V2, "sys/fs/cgroup/box/inner/cpu.max": "800000 100000\n"},
            (2, 2, "affinity", 8.0),
        ),
        # Hybrid: the unified hierarchy has no cpu controller, v1 has the quota.
        (
            {0, 1, 2, 3},
            {
                "proc/self/cgroup": "1:cpu:/\n0::/\n",
                "sys/fs/cgroup/unified/cgroup.procs": "",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            (1, 1, "cgroup v1 quota", 1.0),
        ),
    ],
)
def test_threads_follow_affinity_and_quota(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    allowed: set[int],
    files: dict[str, str],
    expected: tuple[int, int, str, float | None],
) -> None:
    """T3: quotas of both versions and affinity decide, and the source is kept."""
    allow(monkeypatch, allowed)
    found = allowance(lay(tmp_path, {**cpus(4), **files}))
    assert (found.cpus, found.threads, found.source, found.quota) == expected


def test_two_threads_of_one_core_count_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, set(range(8)))
    found = allowance(lay(tmp_path, cpus(8, per_core=2)))
    assert found == CpuAllowance(cpus=8, threads=4, source="physical cores", affinity=8)


def test_an_affinity_of_two_siblings_is_one_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, {0, 1})
    found = allowance(lay(tmp_path, cpus(8, per_core=2)))
    assert (found.cpus, found.threads, found.source) == (2, 1, "physical cores")


def test_unknown_topology_counts_the_affinity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, {0, 1, 5})
    found = allowance(tmp_path)
    assert (found.cpus, found.threads) == (3, 3)


def test_no_cgroup_is_no_quota(tmp_path: Path) -> None:
    assert quota(tmp_path) is None
    assert throttle_files(tmp_path) == []


def test_throttling_is_counted_where_the_kernel_counts_it(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            **V2,
            "sys/fs/cgroup/box/inner/cpu.stat": "usage_usec 5\nthrottled_usec 7\n",
            "sys/fs/cgroup/box/cpu.stat": "usage_usec 5\n",
        },
    )
    assert throttle_files(tmp_path) == [
        (tmp_path / "sys/fs/cgroup/box/inner/cpu.stat", "throttled_usec", 1000)
    ]


def test_a_real_process_may_use_something() -> None:
    found = allowance()
    assert 1 <= found.threads <= found.cpus <= found.affinity
