"""How much a machine serves at a time: what was measured of it, and what stays open.

A case with one caller is one queue. What the machine does with several at a time is known only if
it was measured: in several processes, with several callers, or by a search for the peak of a load.
Without that, the truth lies between the one queue and as many as there are CPUs, none of which
slows another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.fleet.numbers.facts import CaseFacts, ParallelPoint

#: More at a time that bring no more than this share of throughput: the machine is full.
FULL = 0.1

#: Settings that only say how many inferences run at a time.
_AT_A_TIME = ("concurrency", "sessions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """Requests that a machine serves at a time, each in a queue of its own.

    Attributes:
        measured: How many were measured at a time.
        most: How many there may be; the same where the measurement settles it, ``None`` where
            nothing says how many.
    """

    measured: int = 1
    most: int | None = 1

    @property
    def is_open(self) -> bool:
        """Whether the machine may serve more at a time than was measured."""
        return self.most != self.measured


def at_a_time(case: CaseFacts) -> int:
    """Return how many inferences ran at a time where a case's numbers were taken."""
    return case.callers * case.processes


def ways(case: CaseFacts) -> tuple[CaseFacts, ...]:
    """Return a case as it was measured, and in each number of processes that was measured."""
    return (case, *(_in_processes(case, point) for point in case.parallel if point.processes > 1))


def _in_processes(case: CaseFacts, point: ParallelPoint) -> CaseFacts:
    """A case in several processes: its rate, its service times; its intervals are as wide."""
    quantities = dict(case.quantities)
    throughput = case.quantities.get("throughput")
    if throughput is not None and throughput.value > 0:
        quantities["throughput"] = _grown(throughput, point.rate_per_s / throughput.value)
    mean = case.quantities.get("latency_mean")
    if point.service_s and mean is not None and mean.value > 0:
        longer = math.fsum(point.service_s) / len(point.service_s) / mean.value
        quantities["latency_mean"] = _grown(mean, longer)
    median = case.quantities.get("latency_p50")
    if median is not None and median.value > 0:
        quantities["latency_p50"] = _grown(median, point.latency_s / median.value)
    return replace(
        case,
        quantities=quantities,
        service_s=point.service_s,
        served=(),
        processes=point.processes,
        threads=point.threads,
        parallel=(),
    )


def _grown(quantity: Quantity, factor: float) -> Quantity:
    return replace(
        quantity,
        value=quantity.value * factor,
        low=None if quantity.low is None else quantity.low * factor,
        high=None if quantity.high is None else quantity.high * factor,
    )


def family(case: CaseFacts) -> tuple[object, ...]:
    """Return what cases share that differ only in how many inferences run at a time."""
    knobs = tuple(pair for pair in case.knobs if pair[0] not in _AT_A_TIME)
    return (*case.request, case.precision, case.provider, case.runtime, knobs)


def queues(case: CaseFacts, members: Sequence[CaseFacts]) -> Queues:
    """Return how many queues a machine is with a case.

    Args:
        case: One way of the family.
        members: All ways of its family on this machine.
    """
    measured = at_a_time(case)
    if is_settled(members):
        return Queues(measured=measured, most=measured)
    cpus = max(member.cpus for member in members)
    return Queues(measured=measured, most=max(cpus, measured) if cpus else None)


def is_settled(members: Sequence[CaseFacts]) -> bool:
    """Whether what was measured of a family says what the machine serves at a time.

    It does where there is but one CPU, and where several at a time, or arrivals up to the peak,
    had a thread for every CPU or brought no more than fewer at a time did.
    """
    cpus = max((member.cpus for member in members), default=0)
    if cpus == 1:
        return True
    searched = [member for member in members if any(load.searched for load in member.served)]
    several = [member for member in members if at_a_time(member) > 1]
    if any(cpus and member.threads >= cpus for member in (*searched, *several)):
        return True
    rates: dict[int, float] = {}
    for member in members:
        throughput = member.quantities.get("throughput")
        if throughput is not None:
            count = at_a_time(member)
            rates[count] = max(rates.get(count, 0.0), throughput.value)
    if not several or len(rates) < 2:
        return False
    below, last = (rates[count] for count in sorted(rates)[-2:])
    return last <= below * (1 + FULL)


def counts_to_measure(cpus: int) -> str:
    """Return the numbers of processes that would settle it: ``1,2,4,8``."""
    counts = [2**step for step in range(20) if 2**step < max(cpus, 2)]
    return ",".join(map(str, [*counts, max(cpus, 2)]))
