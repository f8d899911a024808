from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_ortbench.launch.noise import SEVERITIES, CpuTicks, Finding, cpu_ticks, noise


def machine(root: Path, **files: str) -> Path:
    """A machine whose kernel shows just these files; ``__`` stands for a slash."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def found(root: Path, name: str, **arguments) -> Finding | None:
    return next((each for each in noise(root, **arguments) if each.name == name), None)


CPU = "sys__devices__system__cpu__"


def test_a_kernel_that_shows_nothing_gives_no_finding_but_the_cpus(tmp_path):
    assert [each.name for each in noise(tmp_path)] == ["cpus"]
    assert cpu_ticks(tmp_path) is None


def test_the_machine_that_runs_the_tests_is_described():
    for finding in noise():
        assert finding.value
        assert finding.severity in SEVERITIES
        assert bool(finding.advice) is (finding.severity != "fine")


@pytest.mark.parametrize(
    ("files", "name", "value", "severity"),
    [
        (
            {f"{CPU}cpu0__cpufreq__scaling_governor": "performance\n"},
            "governor",
            "performance",
            "fine",
        ),
        (
            {
                f"{CPU}cpu0__cpufreq__scaling_governor": "performance\n",
                f"{CPU}cpu1__cpufreq__scaling_governor": "powersave\n",
            },
            "governor",
            "performance, powersave",
            "noisy",
        ),
        ({f"{CPU}intel_pstate__no_turbo": "0\n"}, "turbo", "on", "note"),
        ({f"{CPU}intel_pstate__no_turbo": "1\n"}, "turbo", "off", "fine"),
        ({f"{CPU}cpufreq__boost": "1\n"}, "turbo", "on", "note"),
        ({f"{CPU}cpufreq__boost": "0\n"}, "turbo", "off", "fine"),
        ({"proc__cpuinfo": "flags\t\t: fpu avx2\n"}, "hypervisor", "none seen", "fine"),
        (
            {"proc__cpuinfo": "flags\t\t: fpu hypervisor\n"},
            "hypervisor",
            "virtual machine (of unknown make)",
            "note",
        ),
        (
            {
                "proc__cpuinfo": "flags\t\t: fpu hypervisor\n",
                "sys__class__dmi__id__sys_vendor": "QEMU\n",
                "sys__class__dmi__id__product_name": "Standard PC\n",
            },
            "hypervisor",
            "virtual machine (QEMU Standard PC)",
            "note",
        ),
        (
            {"proc__stat": "cpu  100 0 100 700 0 0 0 100 0 0\ncpu0 1 1 1 1 1 1 1 1\n"},
            "steal",
            "10.0% of CPU time since boot",
            "noisy",
        ),
        (
            {"proc__stat": "cpu  100 0 100 799 0 0 0 1 0 0\n"},
            "steal",
            "0.1% of CPU time since boot",
            "fine",
        ),
        ({"proc__meminfo": "SwapTotal: 0 kB\nSwapFree: 0 kB\n"}, "swap", "off", "fine"),
        (
            {"proc__meminfo": "SwapTotal: 2000000 kB\nSwapFree: 1000000 kB\n"},
            "swap",
            "1024 MB of 2048 MB in use",
            "note",
        ),
        (
            {"proc__meminfo": "SwapTotal: 2000000 kB\nSwapFree: 2000000 kB\n"},
            "swap",
            "0 MB of 2048 MB in use",
            "fine",
        ),
        (
            {
                "sys__class__power_supply__AC__type": "Mains\n",
                "sys__class__power_supply__AC__online": "0\n",
            },
            "power",
            "battery",
            "noisy",
        ),
        (
            {
                "sys__class__power_supply__AC__type": "Mains\n",
                "sys__class__power_supply__AC__online": "1\n",
            },
            "power",
            "mains",
            "fine",
        ),
        (
            {"sys__devices__system__clocksource__clocksource0__current_clocksource": "tsc\n"},
            "clock",
            "tsc",
            "fine",
        ),
        (
            {"sys__devices__system__clocksource__clocksource0__current_clocksource": "hpet\n"},
            "clock",
            "hpet",
            "noisy",
        ),
        ({"proc__sys__kernel__randomize_va_space": "2\n"}, "ASLR", "on", "note"),
        ({"proc__sys__kernel__randomize_va_space": "0\n"}, "ASLR", "off", "fine"),
    ],
)
def test_what_the_kernel_shows_is_judged(tmp_path, files, name, value, severity):
    finding = found(machine(tmp_path, **files), name)
    assert (finding.value, finding.severity) == (value, severity)


def test_steal_can_be_taken_from_a_moment_on(tmp_path):
    root = machine(tmp_path, proc__stat="cpu  100 0 100 700 0 0 0 100 0 0\n")
    assert cpu_ticks(root) == CpuTicks(total=1000, steal=100)
    before = CpuTicks(total=800, steal=99)
    assert found(root, "steal", since=before).value.startswith("0.5% ")
    assert found(root, "steal", since=CpuTicks(total=1000, steal=100)).severity == "fine"


def test_load_is_judged_by_the_cpus_that_may_be_used(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    root = machine(tmp_path, proc__loadavg="0.50 0.40 0.30 1/200 1234\n")
    assert found(root, "load").severity == "fine"
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    finding = found(root, "load")
    assert re.findall(r"[\d.]+", finding.value) == ["0.50", "2"]
    assert finding.severity == "noisy"


def test_a_quota_is_worse_than_fewer_cpus(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    root = machine(
        tmp_path, proc__self__cgroup="0::/\n", **{"sys__fs__cgroup__cpu.max": "150000 100000\n"}
    )
    finding = found(root, "cpus")
    assert finding.severity == "noisy"
    assert finding.value == (
        "2 usable, 2 threads by default (cgroup v2 quota); a quota of 1.5 on 4 CPUs"
    )
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    assert found(root, "cpus").severity == "fine"
