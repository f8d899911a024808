"""What each precision of a model gains and costs, on each provider, against fp32 on the same one.

Ratios are contender ÷ baseline: a latency ratio of 0.5 is twice as fast. They are given for every
measured case, flagged or not: that a quantised model is slower, or fast and wrong, is a finding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_ortbench.analysis.candidates import Candidate, is_tie, speed_metric
from pytest_ortbench.analysis.inaccuracy import ACCURACY
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.model import Variant
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.run import Run

#: What a precision is compared with, the first of these that was measured on the same provider.
REFERENCES = ("fp32", "native")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionRatio:
    """Contender ÷ baseline.

    Attributes:
        value: The ratio.
        low: Lower end of its 95 % interval, ``None`` where a side has none.
        high: Upper end, likewise.
        tie: Whether the two can't be told apart, by the rule that ranks cases: the interval holds
            1, or the gap is smaller than what one process, or a blurred number, can prove.
        same_file: Whether both sides ran the very same file, so that any gap is chance.
        one_worker: Whether a side is of a single process, so that no gap in time is proven.
    """

    value: float
    low: float | None = None
    high: float | None = None
    tie: bool = False
    same_file: bool = False
    one_worker: bool = False

    @property
    def certain(self) -> bool:
        """Whether the interval lies on one side of 1, and the gap is one that counts."""
        if self.tie or self.same_file or self.one_worker:
            return False
        if self.low is None or self.high is None:
            return False
        return self.low > 1 or self.high < 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionRow:
    """One precision on one provider.

    Attributes:
        precision: Name of the precision, recipe or own variant.
        provider: Label of the provider.
        case_id: Full id.
        status: ``measured`` or the kind of the failure.
        is_reference: Whether the others are compared with this one.
        latency: Its median, of requests that of the time per token; ``None`` if not measured.
        latency_ratio: Against the reference on the same provider.
        size_ratio: Likewise, of the model's size.
        memory_ratio: Likewise, of the peak resident memory.
        sqnr_db: Smallest signal to noise ratio against the reference outputs, or against channels
            of them that are much smaller than the others.
        exact: Whether outputs are the reference's, bit for bit.
        finite: Whether outputs hold numbers only; ``None`` if they were not compared.
        judged: Whether it is known how good the answers are.
        on_drawn_inputs: Whether nothing but random inputs says so.
        top1: Share of rows whose class agrees, with its exact interval.
        result: The case behind it, for what passes say of its answers.
        flags: Names of the validity flags.
        reason: Why it was not measured; empty otherwise.
        variant: The file, with its size and counts.
        reference_variant: That of the reference on the same provider; ``None`` for itself.
        recipe: How the file was made.
        notes: What a reader should know of how it was made.
    """

    precision: str
    provider: str
    case_id: str
    status: str
    result: CaseResult
    is_reference: bool = False
    latency: Quantity | None = None
    latency_ratio: PrecisionRatio | None = None
    size_ratio: PrecisionRatio | None = None
    memory_ratio: PrecisionRatio | None = None
    sqnr_db: float | None = None
    exact: bool = False
    finite: bool | None = None
    judged: bool = True
    on_drawn_inputs: bool = False
    top1: Quantity | None = None
    flags: tuple[str, ...] = ()
    reason: str = ""
    variant: Variant | None = None
    reference_variant: Variant | None = None
    recipe: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionBlock:
    """All precisions × providers of one model at one set of sizes, in the order of measuring.

    Attributes:
        model: Name of the model.
        at: What else the cases share, for people: ``b8, seq:128``; empty where all are alike.
        rows: One entry a case.
    """

    model: str
    at: str
    rows: tuple[PrecisionRow, ...]


def precision_blocks(run: Run, summaries: Sequence[Summary]) -> list[PrecisionBlock]:
    """Return a block for each model that was asked for in more than one precision.

    Args:
        run: Any run.
        summaries: One for each of its cases, in their order.
    """
    groups: dict[tuple[object, ...], list[tuple[CaseResult, Summary]]] = {}
    for result, summary in zip(run.cases, summaries, strict=True):
        groups.setdefault(_workload(result), []).append((result, summary))
    several = {key for key, members in groups.items() if len(_precisions(members)) > 1}
    crowded = {key[0] for key in several if sum(other[0] == key[0] for other in several) > 1}
    return [
        _block(members, named=key[0] in crowded)
        for key, members in groups.items()
        if key in several
    ]


def _precisions(members: Sequence[tuple[CaseResult, Summary]]) -> set[str]:
    return {result.case.variant.precision for result, _ in members}


def _workload(result: CaseResult) -> tuple[object, ...]:
    """All that two cases must share for one to be another precision of the other."""
    case = result.case
    return (
        case.model.name,
        case.batch,
        tuple(sorted(case.dims.items())),
        tuple(sorted(case.knobs.items())),
        case.runtime.label,
    )


def _block(members: Sequence[tuple[CaseResult, Summary]], *, named: bool) -> PrecisionBlock:
    by_provider: dict[str, dict[str, Summary]] = {}
    for result, summary in members:
        if summary.status == "measured":
            by_precision = by_provider.setdefault(result.case.provider.label, {})
            by_precision.setdefault(result.case.variant.precision, summary)
    case = members[0][0].case
    parts = [f"b{case.batch}"]
    parts += [f"{name}:{value}" for name, value in {**case.dims, **case.knobs}.items()]
    if case.runtime.label != "current":
        parts.append(f"+{case.runtime.label}")
    return PrecisionBlock(
        model=case.model.name,
        at=", ".join(parts) if named else "",
        rows=tuple(
            _row(result, summary, by_provider.get(result.case.provider.label, {}))
            for result, summary in members
        ),
    )


def _row(result: CaseResult, summary: Summary, on_provider: Mapping[str, Summary]) -> PrecisionRow:
    reference = next((on_provider[name] for name in REFERENCES if name in on_provider), None)
    itself = reference is not None and reference.case.key == summary.case.key
    measured = summary.status == "measured"
    compared = reference if measured and not itself else None
    quantities = summary.quantities
    finite = quantities.get("accuracy_finite")
    return PrecisionRow(
        precision=result.case.variant.precision,
        provider=result.case.provider.described,
        case_id=result.case.case_id,
        status=summary.status,
        result=result,
        is_reference=itself,
        latency=quantities.get(speed_metric(result.case)),
        latency_ratio=ratio_between(compared, summary, speed_metric(result.case)),
        size_ratio=ratio_between(compared, summary, "model_size"),
        memory_ratio=ratio_between(compared, summary, "peak_rss"),
        sqnr_db=summary.worst_db,
        exact=summary.exact,
        finite=None if finite is None else bool(finite.value),
        judged=not any(
            judgement.of == ACCURACY and judgement.is_unjudged for judgement in summary.judgements
        ),
        on_drawn_inputs=summary.on_drawn_inputs,
        top1=quantities.get("accuracy_top1"),
        flags=tuple(flag.name for flag in summary.flags),
        reason="" if result.failure is None else result.failure.message,
        variant=result.case.variant,
        reference_variant=None if compared is None else compared.case.variant,
        recipe=result.case.variant.recipe,
        notes=result.case.variant.notes + _unchecked(result),
    )


def _unchecked(result: CaseResult) -> tuple[str, ...]:
    """Why a variant was never run; nothing for one that was measured."""
    reason = result.case.variant.unchecked
    return () if result.status == "measured" or not reason else (reason,)


def ratio_between(
    reference: Summary | None, summary: Summary, metric: str
) -> PrecisionRatio | None:
    """Return how a number of one case stands to that of another; ``None`` where a side has none."""
    if reference is None:
        return None
    before, after = reference.quantities.get(metric), summary.quantities.get(metric)
    if before is None or after is None or not before.value:
        return None
    value = after.value / before.value
    judged = PrecisionRatio(
        value=value,
        tie=metric != "model_size" and is_tie(reference, summary, metric),
        same_file=_same_file(reference.case.variant, summary.case.variant),
        one_worker=metric == speed_metric(summary.case)
        and any(Candidate(side, "").one_worker for side in (reference, summary)),
    )
    bounds = (before.low, before.high, after.low, after.high)
    if any(bound is None for bound in bounds) or not before.low or not before.high:
        return judged
    assert after.low is not None
    assert after.high is not None
    return replace(judged, low=after.low / before.high, high=after.high / before.low)


def _same_file(variant: Variant, other: Variant) -> bool:
    return bool(variant.digest) and variant.digest == other.digest
