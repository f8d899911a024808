"""Runs whose cases have an operator profile, from seeded draws."""

from __future__ import annotations

import dataclasses
import random

from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.passes.profile.facts import NodeTime, OperatorProfile, OperatorTime, Peak
from tests import results_factory as factory
from tests.report import sample_runs

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"

#: Share of a run, nodes, multiply-accumulates a byte and share of the nearer ceiling, by operator.
MIX: dict[str, tuple[float, int, float, float]] = {
    "Conv": (0.62, 53, 24.0, 0.55),
    "Gemm": (0.10, 1, 0.25, 0.8),
    "MatMul": (0.06, 12, 30.0, 0.4),
    "Add": (0.05, 16, 0.0, 0.9),
    "Relu": (0.03, 49, 0.0, 1.2),
    "Transpose": (0.02, 8, 0.0, 0.4),
    "MaxPool": (0.02, 1, 0.0, 0.3),
    "Concat": (0.02, 4, 0.0, 0.5),
    "Softmax": (0.015, 2, 0.0, 0.1),
    "Resize": (0.015, 6, 0.0, 0.2),
}


def profile_of(
    seed: str, run_ns: int, *, peak: bool = True, provider: str = CPU
) -> OperatorProfile:
    """A profile in which the operators of :data:`MIX` take about their shares."""
    rng = random.Random(seed)
    ceiling = Peak(
        macs_per_s=87e9 * rng.uniform(0.8, 1.2),
        bytes_per_s=14e9,
        provider=provider,
        element="float",
        threads=2,
        product="1024 x 1024 x 1024",
        copy_bytes=67_108_864,
    )
    operators, nodes = [], []
    for op, (share, count, intensity, reached) in MIX.items():
        time_ns = round(run_ns * share * rng.uniform(0.8, 1.0))
        moved, macs = _work(time_ns, intensity, reached, ceiling)
        kind = "move" if op in ("Transpose", "Concat") else "compute"
        operators.append(
            OperatorTime(
                op=op, provider=provider, time_ns=time_ns, nodes=count, kind=kind,
                macs=macs, moved_bytes=moved,
            )
        )  # fmt: skip
        for index in range(min(count, 8)):
            own_ns = round(time_ns / count * rng.uniform(0.5, 1.5))
            moved, macs = _work(own_ns, intensity * rng.uniform(0.3, 3), reached, ceiling)
            nodes.append(
                NodeTime(
                    name=f"layer{index}/{op}", op=op, provider=provider, time_ns=own_ns,
                    shapes="float [1,64,56,56] -> float [1,64,56,56]", macs=macs, moved_bytes=moved,
                )
            )  # fmt: skip
    operators.sort(key=lambda each: -each.time_ns)
    nodes.sort(key=lambda each: -each.time_ns)
    return OperatorProfile(
        runs=20,
        run_ns=run_ns,
        plain_ns=round(run_ns * 0.95),
        operators=tuple(operators),
        nodes=tuple(nodes),
        node_count=sum(each.nodes for each in operators),
        threads=2,
        cpus=2,
        macs=sum(each.macs or 0 for each in operators),
        moved_bytes=sum(each.moved_bytes or 0 for each in operators),
        work_source="nodes",
        peak=ceiling if peak else None,
    )


def _work(time_ns: int, intensity: float, reached: float, peak: Peak) -> tuple[int, int]:
    """Bytes and multiply-accumulates that reach a share of the nearer ceiling in a time."""
    assert peak.macs_per_s is not None
    assert peak.bytes_per_s is not None
    ceiling = min(peak.macs_per_s, intensity * peak.bytes_per_s) if intensity else 0.0
    rate = peak.bytes_per_s if not intensity else ceiling / intensity
    moved = rate * reached * time_ns * 1e-9
    return round(moved), round(moved * intensity)


def profiled(result: CaseResult, **options: bool) -> CaseResult:
    """The result with a profile; one that failed stays as it is."""
    if result.failure is not None or not result.measurements:
        return result
    median = sorted(result.measurements[0].samples.durations_ns)[0]
    profile = profile_of("/".join(result.case.key), median, **options)
    return dataclasses.replace(result, profile=profile)


def with_profiles(run: Run) -> Run:
    """The run with a profile for every measured case."""
    return factory.make_run([profiled(result) for result in run.cases])


def one_case() -> Run:
    return with_profiles(sample_runs.one_case())


def ten_cases() -> Run:
    return with_profiles(sample_runs.ten_cases())


def three_hundred_cases() -> Run:
    return with_profiles(sample_runs.three_hundred_cases())
