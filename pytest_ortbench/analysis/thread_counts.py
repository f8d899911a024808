"""Where more threads are slower than fewer, as two rows of one run show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pytest_ortbench.analysis.candidates import speed_metric
from pytest_ortbench.analysis.judgements import flag_names
from pytest_ortbench.analysis.precisions import ratio_between
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.quantity import Quantity

#: Where the number of threads comes from that the user set.
CHOSEN = "option"
_KNOB = "threads"

#: By less nobody needs to be told.
_MATTERS = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowerThreads:
    """Two cases that differ in their threads only, of which the one with more is slower.

    Attributes:
        case_id: Both without their threads.
        runtime: Label of the runtime.
        fewer: Threads of the faster one.
        more: Threads of the slower one.
        is_default: Whether nobody chose the larger number.
        faster: Time of the faster one.
        slower: Time of the slower one.
        factor: How many times as long the slower one takes.
        low: Lower bound of that.
        high: Upper bound.
        blurred_by: Flags that blur the time of either: on CPUs that a process did not get, fewer
            threads are faster whatever the model.
    """

    case_id: str
    runtime: str
    fewer: int
    more: int
    is_default: bool
    faster: Quantity
    slower: Quantity
    factor: float
    low: float
    high: float
    blurred_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _ThreadRow:
    threads: int
    is_default: bool
    summary: Summary


def slower_threads(members: Iterable[tuple[CaseResult, Summary]]) -> tuple[SlowerThreads, ...]:
    """Return where the most threads are slower than the best smaller number of them.

    The intervals of both rows hold them apart, by 5 % at least, and they are no tie between fresh
    processes. Flags may leave doubt all the same.

    Args:
        members: Results of one run with their numbers.
    """
    groups: dict[tuple[str, str], list[_ThreadRow]] = {}
    for result, summary in members:
        if summary.status != "measured" or not result.measurements:
            continue
        first = result.measurements[0]
        if not first.threads:
            continue
        case = result.case
        knobs = {name: value for name, value in case.knobs.items() if name != _KNOB}
        key = replace(case, knobs=knobs).key
        row = _ThreadRow(first.threads, first.threads_source != CHOSEN, summary)
        groups.setdefault(key, []).append(row)
    found = (_slower(key, rows) for key, rows in groups.items())
    return tuple(remark for remark in found if remark is not None)


def _slower(key: tuple[str, str], rows: list[_ThreadRow]) -> SlowerThreads | None:
    most = max(rows, key=lambda row: row.threads)
    metric = speed_metric(most.summary.case)
    best: SlowerThreads | None = None
    for row in rows:
        if row.threads >= most.threads:
            continue
        ratio = ratio_between(row.summary, most.summary, metric)
        if (
            ratio is None
            or ratio.tie
            or ratio.one_worker
            or ratio.low is None
            or ratio.high is None
            or ratio.low < _MATTERS
        ):
            continue
        if best is None or ratio.value > best.factor:
            best = SlowerThreads(
                case_id=key[0],
                runtime=key[1],
                fewer=row.threads,
                more=most.threads,
                is_default=most.is_default,
                faster=row.summary.quantities[metric],
                slower=most.summary.quantities[metric],
                factor=ratio.value,
                low=ratio.low,
                high=ratio.high,
                blurred_by=tuple(
                    dict.fromkeys(
                        name
                        for side in (row.summary, most.summary)
                        for name in flag_names(side.flags, "blurs")
                    )
                ),
            )
    return best
