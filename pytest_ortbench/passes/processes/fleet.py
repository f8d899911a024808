"""What a comparison of many runs keeps of a case in several processes."""

from __future__ import annotations

from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.fleet.numbers.facts import ParallelPoint, service_times
from pytest_ortbench.passes.processes.numbers import process_scaling


def parallel(result: CaseResult, _summary: Summary) -> dict[str, tuple[ParallelPoint, ...]]:
    """Return the numbers of processes that a case was measured in, ascending."""
    samples = {
        point.asked: [process.samples for process in point.processes] for point in result.processes
    }
    return {
        "parallel": tuple(
            ParallelPoint(
                processes=point.processes,
                threads=point.total_threads,
                rate_per_s=point.rate,
                service_s=service_times(samples[point.processes]),
                latency_s=point.latency_s,
            )
            for point in process_scaling(result)
            if not point.reason
        )
    }
