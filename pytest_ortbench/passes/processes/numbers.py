"""What more processes buy: the rate and the memory of all of them together."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.analysis.samples import median_latency
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.processes.facts import ProcessPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessScaling:
    """One number of processes.

    Attributes:
        processes: How many ran at a time.
        total_threads: Threads that compute, in all of them.
        rate: Items per second of all together.
        latency_s: Median of the processes' median latencies.
        cpu_s: CPU seconds per inference.
        peak_bytes: Sum of the rises of their resident sizes; what they share is in each of them.
            ``None`` if not read.
        efficiency: Rate over that of the fewest processes, divided by how many times more there
            are: 1 is perfect.
        reason: Why there are no numbers; empty otherwise.
    """

    processes: int
    total_threads: int = 0
    rate: float = 0.0
    latency_s: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int | None = None
    efficiency: float = 0.0
    reason: str = ""


def process_scaling(result: CaseResult) -> tuple[ProcessScaling, ...]:
    """Return every asked number of processes, ascending."""
    points = sorted(result.processes, key=lambda point: point.asked)
    measured = [point for point in points if not point.reason]
    if not measured:
        return tuple(_refused(point) for point in points)
    first = measured[0]
    base = _rate(first, result) / first.asked
    return tuple(
        _refused(point) if point.reason else _scaled(point, result, base) for point in points
    )


def _refused(point: ProcessPoint) -> ProcessScaling:
    return ProcessScaling(processes=point.asked, reason=point.reason)


def _scaled(point: ProcessPoint, result: CaseResult, base: float) -> ProcessScaling:
    samples = [process.samples for process in point.processes]
    peaks = [process.peak_bytes for process in point.processes if process.peak_bytes is not None]
    rate = _rate(point, result)
    sync = result.case.callers if result.case.call == "sync" else 0
    threads_each = sync + result.case.sessions * (point.threads - 1)
    return ProcessScaling(
        processes=point.asked,
        total_threads=point.asked * threads_each,
        rate=rate,
        latency_s=median_latency(samples).value_ns * 1e-9,
        cpu_s=sum(sample.cpu_ns for sample in samples)
        * 1e-9
        / sum(sample.count for sample in samples),
        peak_bytes=sum(peaks) if len(peaks) == len(point.processes) else None,
        efficiency=rate / point.asked / base if base else 0.0,
    )


def _rate(point: ProcessPoint, result: CaseResult) -> float:
    """Items per second of all processes: each over its own timed blocks."""
    return sum(
        1e9 * result.case.batch * process.samples.count / process.samples.wall_ns
        for process in point.processes
    )
