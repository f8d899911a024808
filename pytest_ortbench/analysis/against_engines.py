"""How ONNX Runtime does beside each other engine and framework that ran the same work.

The best row of ONNX Runtime stands against the best row of each of them, of the same precision and
batch. Nothing is claimed without evidence: rows that are barred are not compared, and a number that
can't be told from the other one, or that one side lacks, is said to be so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pytest_ortbench.analysis.accuracy_figures import is_equal
from pytest_ortbench.analysis.candidates import (
    ONE_WORKER_GAP,
    Candidate,
    are_tied,
    doubts,
    speed_metric,
)
from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.analysis.ranked import Factor, factor_between, label_of, why_not_ranked
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.outcome import CaseResult, Measurement, OutputAccuracy
from pytest_ortbench.core.quantity import Quantity

#: A case with its numbers.
Member: TypeAlias = tuple[CaseResult, Summary]

#: Workers of each side from which on ranges that do not meet are told apart, however near.
_ENOUGH = 3


class Standing(Enum):
    """What a comparison found of ONNX Runtime."""

    BETTER = "better"
    WORSE = "worse"
    OPEN = "open"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedAt:
    """How fast ONNX Runtime is at one batch size.

    Attributes:
        batch: The batch size.
        finding: What was found; open where intervals meet or one side has none.
        factor: How many times as fast it is, or, where it is worse, the other one.
        blurred_by: Names of flags that blur either number, or leave doubt about the difference.
    """

    batch: int
    finding: Standing
    factor: Factor
    blurred_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """How two sides differ in what every worker has once.

    Attributes:
        finding: What was found; open where the ranges over the workers meet.
        value: Between the two sides: seconds, or a share of the other side's; never negative.
        low: The smallest difference between any two workers of the two sides.
        high: The largest one.
    """

    finding: Standing
    value: float = 0.0
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How near the outputs of both sides are to the reference.

    Attributes:
        is_exact: Whether every output of both is the reference's.
        sqnr_db: Smallest signal to noise ratio of outputs that differ; ``None`` where none has one.
        rows: Smallest share of rows whose class, or whole value, is the reference's; ``None`` where
            all are.
        output: The output with this share; empty without one.
        on_drawn_inputs: Whether random inputs alone judged them.
    """

    is_exact: bool = False
    sqnr_db: float | None = None
    rows: Quantity | None = None
    output: str = ""
    on_drawn_inputs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAnswer:
    """ONNX Runtime beside one engine or framework.

    Attributes:
        title: Name of the engine or framework.
        role: ``engine`` or ``framework``.
        ours: The row of ONNX Runtime at the smallest batch size; empty where nothing is compared.
        theirs: The row of the other one.
        speeds: One a batch size that both have, smallest first.
        memory: Whole processes at their peak, as a share of the other one's.
        ready: Seconds from the import to the first answer.
        agreement: How near the outputs are; ``None`` where that was not measured.
        reason: Why nothing is compared; empty where something is.
    """

    title: str
    role: str
    ours: str = ""
    theirs: str = ""
    speeds: tuple[SpeedAt, ...] = ()
    memory: Gap = Gap(finding=Standing.MISSING)
    ready: Gap = Gap(finding=Standing.MISSING)
    agreement: Agreement | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    result: CaseResult
    candidate: Candidate

    @property
    def kind(self) -> tuple[int, str]:
        """What two rows must share: batch and precision."""
        return self.result.case.batch, self.result.case.variant.precision

    @property
    def speed(self) -> float:
        return self.candidate.speed.value


def engine_answers(members: Sequence[Member], *, runtimes: bool) -> tuple[EngineAnswer, ...]:
    """Compare ONNX Runtime with each engine and framework; nothing where either is not there.

    Args:
        members: Cases of the same work, each with its numbers.
        runtimes: Whether labels name the runtime.
    """
    theirs: dict[str, list[Member]] = {}
    for member in members:
        theirs.setdefault(member[0].case.provider.described, []).append(member)
    ours = [member for member in members if member[0].case.provider.is_execution_provider]
    return tuple(
        _answer(ours, rivals, runtimes=runtimes)
        for rivals in theirs.values()
        if ours and not rivals[0][0].case.provider.is_execution_provider
    )


def _answer(ours: Sequence[Member], theirs: Sequence[Member], *, runtimes: bool) -> EngineAnswer:
    provider = theirs[0][0].case.provider
    pairs = _pairs(_rows(ours, runtimes=runtimes), _rows(theirs, runtimes=runtimes))
    if not pairs:
        reason = _why_none(ours, theirs)
        return EngineAnswer(title=provider.name, role=provider.role, reason=reason)
    first, other = pairs[0]
    return EngineAnswer(
        title=provider.name,
        role=provider.role,
        ours=first.candidate.label,
        theirs=other.candidate.label.removesuffix(provider.role_note),
        speeds=tuple(_speed(row, rival) for row, rival in pairs),
        memory=_gap(first, other, _process_peak, relative=True),
        ready=_gap(first, other, _ready, relative=False),
        agreement=_agreement(first, other, is_framework=provider.role == "framework"),
    )


def _rows(members: Sequence[Member], *, runtimes: bool) -> list[_Row]:
    """The cases that may be compared."""
    return [
        _Row(result, Candidate(summary, label_of(result, runtimes=runtimes)))
        for result, summary in members
        if not why_not_ranked(summary)
    ]


def _pairs(ours: Sequence[_Row], theirs: Sequence[_Row]) -> list[tuple[_Row, _Row]]:
    """For each batch size the fastest row of each side, in a precision that both have."""
    shared = {row.kind for row in ours} & {row.kind for row in theirs}
    pairs = []
    for batch in sorted({batch for batch, _ in shared}):
        rivals = [row for row in theirs if row.kind in shared and row.kind[0] == batch]
        rival = min(rivals, key=lambda row: row.speed)
        fitting = [row for row in ours if row.kind == rival.kind]
        pairs.append((min(fitting, key=lambda row: row.speed), rival))
    return pairs


def _why_none(ours: Sequence[Member], theirs: Sequence[Member]) -> str:
    for members in (theirs, ours):
        if all(why_not_ranked(summary) for _, summary in members):
            result, summary = members[0]
            return f"{label_of(result, runtimes=False)}: {why_not_ranked(summary)}"
    return "no row of ONNX Runtime has the same batch size and precision"


def _speed(row: _Row, rival: _Row) -> SpeedAt:
    metric = speed_metric(row.result.case)
    best, other = sorted((row.candidate, rival.candidate), key=lambda side: side.speed.value)
    factor = factor_between(best, other, metric)
    if factor.low is None or are_tied(best, other, metric):
        finding = Standing.OPEN
        factor = factor_between(row.candidate, rival.candidate, metric)
    else:
        finding = Standing.BETTER if best is row.candidate else Standing.WORSE
    doubtful = doubts(best, [other], metric)
    flags = (*row.candidate.blurred_by, *rival.candidate.blurred_by, *doubtful)
    return SpeedAt(
        batch=row.result.case.batch,
        finding=finding,
        factor=factor,
        blurred_by=tuple(dict.fromkeys(flags)),
    )


def _gap(
    row: _Row, rival: _Row, read: Callable[[Measurement], float | None], *, relative: bool
) -> Gap:
    ours = _known(map(read, row.result.measurements))
    theirs = _known(map(read, rival.result.measurements))
    if not ours or not theirs:
        return Gap(finding=Standing.MISSING)
    is_less = max(ours) < min(theirs)
    small, large = (ours, theirs) if is_less else (theirs, ours)
    if max(small) >= min(large) or (
        min(len(ours), len(theirs)) < _ENOUGH and min(large) <= max(small) * (1 + ONE_WORKER_GAP)
    ):
        return Gap(finding=Standing.OPEN)
    unit = _typical(theirs) if relative else 1.0
    return Gap(
        finding=Standing.BETTER if is_less else Standing.WORSE,
        value=(_typical(large) - _typical(small)) / unit,
        low=(min(large) - max(small)) / unit,
        high=(max(large) - min(small)) / unit,
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return sorted(value for value in values if value is not None)


def _typical(values: Sequence[float]) -> float:
    """The median of sorted values, the lower one of two."""
    return values[(len(values) - 1) // 2]


def _process_peak(measurement: Measurement) -> float | None:
    return measurement.memory.whole_process_bytes


def _ready(measurement: Measurement) -> float | None:
    """Seconds of a cold start; a worker that found something compiled had none."""
    startup = measurement.startup
    ready_ns = None if startup.cache == "warm" else startup.ready_ns
    return None if ready_ns is None else ready_ns * 1e-9


def _was_compared(row: _Row) -> bool:
    """Whether outputs were compared with a reference, all of which is known."""
    accuracy = row.result.accuracy
    return (
        accuracy is not None
        and accuracy.samples > 0
        and bool(accuracy.outputs)
        and "accuracy_finite" in row.candidate.summary.quantities
    )


def _agreement(row: _Row, rival: _Row, *, is_framework: bool) -> Agreement | None:
    """The worse of both sides; of a framework its own, which is that of the export.

    Of numbers and of labels each the worst: an output may have right probabilities and wrong
    labels. ``None`` where one side was not compared, or an output differs and nobody can say by
    how much.
    """
    sides = [rival] if is_framework else [rival, row]
    if not all(map(_was_compared, sides)):
        return None
    drawn = any(side.candidate.summary.on_drawn_inputs for side in sides)
    outputs = [
        output
        for side in sides
        for output in (side.result.accuracy.outputs if side.result.accuracy is not None else ())
        if not is_equal(output)
    ]
    if not outputs:
        return Agreement(is_exact=True, on_drawn_inputs=drawn)
    others = [output for output in outputs if _disagreeing_rows(output)]
    if any(output.sqnr_db is None and output not in others for output in outputs):
        return None
    worst = max(
        others, key=lambda output: _disagreeing_rows(output) / (output.rows or 1), default=None
    )
    return Agreement(
        sqnr_db=min(
            (output.sqnr_db for output in outputs if output.sqnr_db is not None), default=None
        ),
        rows=None if worst is None else _share(worst),
        output="" if worst is None else worst.name,
        on_drawn_inputs=drawn,
    )


def _disagreeing_rows(output: OutputAccuracy) -> int:
    return 0 if output.agree is None or output.rows is None else output.rows - output.agree


def _share(output: OutputAccuracy) -> Quantity:
    """The share of rows that agree, with its exact binomial interval."""
    agree, rows = output.agree or 0, output.rows or 1
    low, high = proportion_interval(agree, rows)
    return Quantity(value=agree / rows, unit="ratio", low=low, high=high, samples=rows)
