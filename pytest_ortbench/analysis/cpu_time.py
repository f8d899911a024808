"""How many of its CPUs a process got while a case was timed, and what that leaves open.

Threads of ONNX Runtime spin while they wait for each other, so a process with two of them keeps two
CPUs busy unless somebody else has these. What it lacked makes an inference longer, by a factor that
nobody knows: the same CPU time on all of its CPUs is the least that one could take.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.flags import CPU_SHARE
from pytest_ortbench.core.outcome import CaseResult

#: About as long a process keeps a CPU, where several want it (Linux: 0.75 to 3 ms, by the number of
#: CPUs). Inferences that are shorter are not all interrupted.
TURN_S = 0.003


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTime:
    """CPUs of the processes of a case, on average over the time in which it was timed.

    Attributes:
        used: How many were in use.
        usable: How many its threads could have used at a time.
    """

    used: float
    usable: int

    @property
    def share(self) -> float:
        """Share of the CPUs that it could use; at most 1."""
        return min(1.0, self.used / self.usable)

    @property
    def words(self) -> str:
        """``0.39 of 2 CPUs``."""
        return f"{self.used:.2f} of {self.usable} CPU{'s' if self.usable > 1 else ''}"


def runs_on_cpus(result: CaseResult) -> bool | None:
    """Return whether the CPUs of the machine computed; ``None`` where nothing tells."""
    seen: dict[str, tuple[str, ...]] = {}
    for measurement in result.measurements:
        seen |= measurement.runtime.provider_devices
    return result.case.provider.runs_on_cpus(seen)


def cpu_time(result: CaseResult) -> CpuTime | None:
    """Return what the processes of a case used; ``None`` where that was not read."""
    measured = result.measurements
    wall_ns = sum(measurement.samples.wall_ns for measurement in measured)
    used_ns = sum(measurement.samples.cpu_ns for measurement in measured)
    usable = max(
        (
            min(measurement.cpus, max(measurement.threads, result.case.callers))
            for measurement in measured
            if measurement.threads
        ),
        default=0,
    )
    if not wall_ns or not used_ns or usable < 1:
        return None
    return CpuTime(used=used_ns / wall_ns, usable=usable)


def lacked_cpus(result: CaseResult) -> CpuTime | None:
    """Return what a case got of its CPUs, where it is flagged that it lacked some of them."""
    time = cpu_time(result)
    if time is None or time.share >= 1 or not runs_on_cpus(result):
        return None
    return time if any(flag.name == CPU_SHARE for flag in result.flags) else None
