"""How throughput and memory grow with callers and sessions, and with the way of calling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.analysis.judgements import is_barred
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.run import Run

#: Axes that a scaling is over, by their names in ids.
_AXES = ("concurrency", "sessions", "call", "spin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """One case of a scaling.

    Attributes:
        sessions: Sessions in the process.
        concurrency: Callers on each of them; asynchronous inferences in flight.
        call: ``sync`` or ``async``.
        spin: ``on`` or ``off``; empty where ONNX Runtime's default was left.
        total_threads: Threads that compute: callers, and the further threads of each session.
        throughput: Items per second of all callers.
        latency: Median time of one inference.
        cpu_s: CPU seconds per inference; ``None`` if not read.
        peak_rss: Rise of the resident size at its peak, in bytes; ``None`` if not read.
        efficiency: Throughput over that of the first point, divided by how many times more callers
            there are: 1 is perfect.
        barred: Whether a judgement or a flag keeps the case out of every ranking.
    """

    sessions: int
    concurrency: int
    call: str
    spin: str
    total_threads: int
    throughput: Quantity
    latency: Quantity | None
    cpu_s: float | None
    peak_rss: float | None
    efficiency: float
    barred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Measured cases of one model that differ in callers, sessions and the way of calling only.

    Attributes:
        name: Their id without these axes.
        runtime: Label of the runtime.
        points: At least two, by the number of callers; of as many the synchronous and spinning
            ones first.
    """

    name: str
    runtime: str
    points: tuple[ScalingPoint, ...]


def scalings(run: Run, summaries: Sequence[Summary]) -> list[Scaling]:
    """Return every scaling that a run holds, in the order of its cases.

    Args:
        run: Any run.
        summaries: One for each of its cases, in their order.
    """
    groups: dict[tuple[str, str], list[tuple[CaseResult, Summary]]] = {}
    for result, summary in zip(run.cases, summaries, strict=True):
        if result.status == "measured" and any(axis in result.case.knobs for axis in _AXES):
            groups.setdefault((_name(result.case), result.case.runtime.label), []).append(
                (result, summary)
            )
    curves = [
        Scaling(name=name, runtime=runtime, points=_points(members))
        for (name, runtime), members in groups.items()
    ]
    return [curve for curve in curves if len(curve.points) > 1]


def total_threads(result: CaseResult) -> int:
    """Threads that compute in one worker: each caller, and all but one of each session's.

    The caller of asynchronous inferences only waits.
    """
    threads = max((measurement.threads for measurement in result.measurements), default=1)
    if result.case.call == "async":
        return result.case.sessions * (threads - 1)
    return result.case.callers + result.case.sessions * (threads - 1)


def _name(case: Case) -> str:
    return replace(
        case, knobs={name: value for name, value in case.knobs.items() if name not in _AXES}
    ).case_id


def _points(pairs: Iterable[tuple[CaseResult, Summary]]) -> tuple[ScalingPoint, ...]:
    rated = [
        (result, summary, summary.quantities["throughput"])
        for result, summary in pairs
        if "throughput" in summary.quantities
    ]
    rated.sort(key=lambda member: _order(member[0].case))
    if not rated:
        return ()
    fewest, first = rated[0][0].case.callers, rated[0][2].value
    return tuple(
        ScalingPoint(
            sessions=result.case.sessions,
            concurrency=result.case.concurrency,
            call=result.case.call,
            spin=result.case.knobs.get("spin", ""),
            total_threads=total_threads(result),
            throughput=rate,
            latency=summary.quantities.get("latency_p50"),
            cpu_s=_value(summary, "cpu_per_inference"),
            peak_rss=_value(summary, "peak_rss"),
            efficiency=rate.value / first / (result.case.callers / fewest),
            barred=is_barred(result, summary.judgements),
        )
        for result, summary, rate in rated
    )


def _order(case: Case) -> tuple[int, int, bool, bool]:
    return (
        case.callers,
        case.sessions,
        case.call == "async",
        case.knobs.get("spin", "on") == "off",
    )


def _value(summary: Summary, name: str) -> float | None:
    quantity = summary.quantities.get(name)
    return None if quantity is None else quantity.value
