"""What makes this machine a noisy place to measure on, as far as the kernel shows it.

Only reads ``/proc`` and ``/sys``; what they don't show (other platforms, containers) is left out
rather than guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.cpus import allowance, read_text
from pytest_ortbench.core.units import counted

_ROOT = Path("/")

#: ``fine``; ``note``: changes numbers, but nearly every machine has it; ``noisy``: worth a change.
SEVERITIES = ("fine", "note", "noisy")

#: Share of CPU time that the hypervisor may take, as in the flag STEAL.
_STEAL = 0.02
#: Load per usable CPU above which others disturb.
_LOAD = 0.2
#: Clock sources that cost a system call or worse for each reading.
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One property of the machine and what it means for numbers.

    Attributes:
        name: What it is about: ``governor``.
        value: What was found, for people.
        severity: One of :data:`SEVERITIES`.
        advice: What to do; empty if it is fine.
    """

    name: str
    value: str
    severity: str = "fine"
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTicks:
    """Clock ticks of all CPUs since boot.

    Attributes:
        total: All of them.
        steal: Those that the hypervisor gave to others.
    """

    total: int
    steal: int


def cpu_ticks(root: Path = _ROOT) -> CpuTicks | None:
    """Read the kernel's counters; ``None`` where there are none."""
    for line in read_text(root / "proc/stat").splitlines():
        name, *fields = line.split()
        if name == "cpu" and len(fields) >= 8:
            # user nice system idle iowait irq softirq steal; guest time is part of user's.
            ticks = [int(field) for field in fields[:8]]
            return CpuTicks(total=sum(ticks), steal=ticks[7])
    return None


def noise(root: Path = _ROOT, *, since: CpuTicks | None = None) -> list[Finding]:
    """Look at everything that is known to make numbers vary.

    Args:
        root: Where ``proc`` and ``sys`` are; tests pass a folder.
        since: Counters read a while ago: the hypervisor's share is taken from then on, else
            since boot.
    """
    looks: tuple[Callable[[Path], Finding | None], ...] = (
        _usable_cpus,
        _governor,
        _turbo,
        _hypervisor,
        lambda of: _steal(of, since),
        _load,
        _swap,
        _power_supply,
        _clock_source,
        _address_layout,
    )
    findings = (look(root) for look in looks)
    return [finding for finding in findings if finding is not None]


def _usable_cpus(root: Path) -> Finding:
    allowed = allowance(root)
    value = f"{allowed.cpus} usable, {allowed.threads} threads by default ({allowed.source})"
    if allowed.quota is not None and allowed.quota < allowed.affinity:
        return Finding(
            name="cpus",
            value=f"{value}; a quota of {allowed.quota:g} on {counted(allowed.affinity, 'CPU')}",
            severity="noisy",
            advice="The quota pauses the process while it runs: pin it to whole CPUs instead "
            "(docker --cpuset-cpus, taskset)",
        )
    return Finding(name="cpus", value=value)


def _governor(root: Path) -> Finding | None:
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    governors = sorted({text for file in files if (text := read_text(file).strip())})
    if not governors:
        return None
    if governors == ["performance"]:
        return Finding(name="governor", value="performance")
    return Finding(
        name="governor",
        value=", ".join(governors),
        severity="noisy",
        advice="The clock rate follows the load: sudo cpupower frequency-set -g performance",
    )


def _turbo(root: Path) -> Finding | None:
    no_turbo = read_text(root / "sys/devices/system/cpu/intel_pstate/no_turbo").strip()
    boost = read_text(root / "sys/devices/system/cpu/cpufreq/boost").strip()
    if not no_turbo and not boost:
        return None
    if no_turbo == "1" or (not no_turbo and boost == "0"):
        return Finding(name="turbo", value="off")
    switch = "intel_pstate/no_turbo (1)" if no_turbo else "cpufreq/boost (0)"
    return Finding(
        name="turbo",
        value="on",
        severity="note",
        advice="The clock rate depends on the temperature; for steadier but slower results write "
        f"/sys/devices/system/cpu/{switch}",
    )


def _hypervisor(root: Path) -> Finding | None:
    info = read_text(root / "proc/cpuinfo")
    flags = next((line for line in info.splitlines() if line.startswith("flags")), "")
    kind = read_text(root / "sys/hypervisor/type").strip()
    if "hypervisor" not in flags.split() and not kind:
        return Finding(name="hypervisor", value="none seen") if flags else None
    dmi = root / "sys/class/dmi/id"
    maker = " ".join(
        read_text(dmi / name).strip() for name in ("sys_vendor", "product_name")
    ).strip()
    return Finding(
        name="hypervisor",
        value=f"virtual machine ({maker or kind or 'of unknown make'})",
        severity="note",
        advice="Other virtual machines on the host can slow it down unnoticed: compare within "
        "one run, not across hours",
    )


def _steal(root: Path, since: CpuTicks | None) -> Finding | None:
    now = cpu_ticks(root)
    if now is None:
        return None
    total = now.total - (since.total if since else 0)
    stolen = now.steal - (since.steal if since else 0)
    share = stolen / total if total > 0 else 0.0
    value = f"{share:.1%} of CPU time {'just now' if since else 'since boot'}"
    if share <= _STEAL:
        return Finding(name="steal", value=value)
    return Finding(
        name="steal",
        value=value,
        severity="noisy",
        advice="The hypervisor gives CPU time to other machines: use one that is not shared",
    )


def _load(root: Path) -> Finding | None:
    first = read_text(root / "proc/loadavg").split(" ")[0]
    if not first:
        return None
    load, cpus = float(first), allowance(root).cpus
    value = f"{load:.2f} over the last minute on {counted(cpus, 'CPU')}"
    if load <= _LOAD * cpus:
        return Finding(name="load", value=value)
    return Finding(
        name="load",
        value=value,
        severity="noisy",
        advice="Other programs are running: stop them, or wait until they end",
    )


def _swap(root: Path) -> Finding | None:
    sizes = {
        name: int(rest.split()[0]) * 1024
        for line in read_text(root / "proc/meminfo").splitlines()
        for name, _, rest in [line.partition(":")]
        if name in ("SwapTotal", "SwapFree")
    }
    if len(sizes) < 2:
        return None
    used = sizes["SwapTotal"] - sizes["SwapFree"]
    if not sizes["SwapTotal"]:
        return Finding(name="swap", value="off")
    value = f"{used / 1e6:.0f} MB of {sizes['SwapTotal'] / 1e6:.0f} MB in use"
    if not used:
        return Finding(name="swap", value=value)
    return Finding(
        name="swap",
        value=value,
        severity="note",
        advice="Memory has been short; if it is short now, sizes and times are wrong",
    )


def _power_supply(root: Path) -> Finding | None:
    for supply in sorted((root / "sys/class/power_supply").glob("*")):
        if read_text(supply / "type").strip() == "Mains":
            if read_text(supply / "online").strip() == "1":
                return Finding(name="power", value="mains")
            return Finding(
                name="power",
                value="battery",
                severity="noisy",
                advice="The clock rate is low on battery power: connect the power supply",
            )
    return None


def _clock_source(root: Path) -> Finding | None:
    folder = root / "sys/devices/system/clocksource/clocksource0"
    source = read_text(folder / "current_clocksource").strip()
    if not source:
        return None
    if source not in _SLOW_CLOCKS:
        return Finding(name="clock", value=source)
    return Finding(
        name="clock",
        value=source,
        severity="noisy",
        advice="Reading this clock takes microseconds: small models can't be timed with it",
    )


def _address_layout(root: Path) -> Finding | None:
    setting = read_text(root / "proc/sys/kernel/randomize_va_space").strip()
    if not setting:
        return None
    if setting == "0":
        return Finding(name="ASLR", value="off")
    return Finding(
        name="ASLR",
        value="on",
        severity="note",
        advice="Each process has other addresses in memory, which is one reason for several "
        "workers",
    )
