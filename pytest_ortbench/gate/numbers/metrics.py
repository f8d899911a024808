"""Metrics other than paired latency: memory, size, placement, accuracy, status, limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from pytest_ortbench.analysis.inaccuracy import ACCURACY
from pytest_ortbench.analysis.judgements import judgements_of
from pytest_ortbench.analysis.limits import OF_PROVIDERS, LimitOutcome, check_limits
from pytest_ortbench.analysis.summary import MEMORY_FIELDS, Summary, summarise
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.gate import GateFinding, MetricVerdict
from pytest_ortbench.core.judgement import Judgement
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.units import amounts_apart, decimals_apart, format_amount
from pytest_ortbench.gate.numbers.rules import Allowance, CaseRules
from pytest_ortbench.passes.registry import PASSES, owner_of

#: Flags under which a number is never gated, since the case does not do what was asked. What could
#: not be judged is asked of the judgements, one by one.
_WRONG = tuple(
    name
    for name, kind in FLAGS.items()
    if kind.severity == "bars" and name not in ("SHAPES", "UNJUDGED")
)


#: So much may a number that was accepted differ when it is measured again: what the defaults allow.
_SLACK = 0.02

#: Judgements of what a case answers.
_OF_ANSWERS = (ACCURACY, *(entry.judgement for entry in PASSES if entry.judge))

#: What every run has that worked: without it, something went wrong.
_NEVER_LOST = ("model_size", "placement")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSide:
    """One side of a case.

    Attributes:
        result: Its raw facts; a paired side has no samples in it.
        summary: The numbers of the result.
        by_worker: Numbers of every worker, by metric, where the result does not hold them.
    """

    result: CaseResult
    summary: Summary
    by_worker: dict[str, tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, result: CaseResult) -> MetricSide:
        """Return the side of a result that holds all its numbers, which nobody has computed yet."""
        return cls(result=result, summary=summarise(result))

    def values(self, metric: str) -> tuple[float, ...]:
        """Return one number a worker, or one of the case; nothing if it was not measured."""
        if metric in self.by_worker:
            return self.by_worker[metric]
        # Read from every worker, so that one worker's accident decides nothing.
        if metric in MEMORY_FIELDS:
            readings = (
                getattr(measurement.memory, MEMORY_FIELDS[metric])
                for measurement in self.result.measurements
            )
            return tuple(float(value) for value in readings if value is not None)
        summary = self.summary
        quantity = summary.quantities.get(metric, summary.infinite.get(metric))
        return () if quantity is None else (quantity.value,)


def medians_of_units(case: Case, units: Sequence[object]) -> dict[str, float]:
    """Return what can be gated of the timed units of one launch, by metric: the median of each.

    Units that lack their times are left out; nothing is known of a launch in which all do.

    Args:
        case: The case; one that times inferences has none.
        units: What each unit took, in order.
    """
    owner = owner_of(case)
    if owner is None or owner.unit is None:
        return {}
    is_timed = owner.load(owner.unit.is_timed) if owner.unit.is_timed else None
    timed = [unit for unit in units if is_timed is None or is_timed(unit)]
    if not timed:
        return {}
    return {metric: median(map(owner.load(number), timed)) for metric, number in owner.unit.gated}


def judge_metrics(
    baseline: MetricSide,
    contender: MetricSide,
    rules: CaseRules,
    *,
    standard: Summary | None = None,
) -> tuple[MetricVerdict, ...]:
    """Judge status, everything that has an allowance, accuracy flags, and absolute limits.

    Args:
        baseline: The one side.
        contender: The other.
        rules: What holds for the case.
        standard: Numbers of the contender's standard pass where its side is a paired one:
            absolute limits are applied to them.
    """
    status = _status(baseline.result, contender.result)
    if contender.result.failure is not None:
        return (status,)
    limits = limit_verdicts(rules, contender.summary if standard is None else standard)
    if status.verdict != "same":
        return (status, *limits)
    verdicts = [status, _accuracy(baseline.result, contender.result)]
    sides = (baseline.result.case.provider, contender.result.case.provider)
    for metric, allowance in allowances_between(rules.allowances, *sides).items():
        before, after = baseline.values(metric), contender.values(metric)
        if before or after or (allowance.chosen and _is_of_unit(metric, contender.result.case)):
            verdicts.append(_relative(metric, before, after, allowance))
    return (*verdicts, *limits)


def allowances_between(
    allowances: Mapping[str, Allowance], baseline: Provider, contender: Provider
) -> dict[str, Allowance]:
    """Return the allowances that two sides can be held to.

    Where one is no execution provider, there is no placement to lose. Where they run on different
    libraries, memory is that of the whole process, since they rise from different baselines. What
    the user chose stays.

    Args:
        allowances: By metric.
        baseline: Where the one side runs.
        contender: Where the other one runs.
    """
    kept = dict(allowances)
    if baseline.is_execution_provider and contender.is_execution_provider:
        return kept
    for metric in OF_PROVIDERS:
        if metric in kept and not kept[metric].chosen:
            del kept[metric]
    on_one_library = baseline.role == contender.role and baseline.alias == contender.alias
    rise = kept.get("peak_rss")
    if rise is not None and not rise.chosen and not on_one_library:
        del kept["peak_rss"]
        kept.setdefault("process_peak_rss", rise)
    return kept


def _is_of_unit(metric: str, case: Case) -> bool:
    """Whether a metric is one of the units that a case times, so that it is due."""
    owner = owner_of(case)
    unit = None if owner is None else owner.unit
    return unit is not None and metric in dict(unit.gated)


def _status(baseline: CaseResult, contender: CaseResult) -> MetricVerdict:
    before, after = baseline.status, contender.status
    verdict = "same"
    if before != after:
        verdict = (
            "worse" if before == "measured" else "better" if after == "measured" else "informs"
        )
    failure = contender.failure
    reason = f"{before} → {after}" if before != after else ""
    if failure is not None and reason:
        reason += f": {failure.message}"
    return MetricVerdict(metric="status", verdict=verdict, reason=reason)


def _accuracy(baseline: CaseResult, contender: CaseResult) -> MetricVerdict:
    """Whether the contender is wrong, or can't be judged, where the baseline is and can.

    What can be judged on neither side is no sameness, and neither is a fault of both.
    """
    had = {flag.name for flag in (*baseline.flags, *flags_of(baseline))}
    wrong = [flag for flag in contender.flags if flag.name in _WRONG]
    new = [f"{flag.name}: {flag.detail}" for flag in wrong if flag.name not in had]
    known = [judgement.of for judgement in _of_answers(baseline) if not judgement.is_unjudged]
    judged = _of_answers(contender)
    unknown = [judgement for judgement in judged if judgement.is_unjudged]
    lost = [
        f"{judgement.of} could be judged in the baseline and can't be now: {judgement.reason}"
        for judgement in unknown
        if judgement.of in known
    ]
    if new or lost:
        return MetricVerdict(metric="accuracy", verdict="worse", reason="; ".join([*new, *lost]))
    there = {judgement.of for judgement in judged}
    # Nobody asked for it this time, so it is known to be neither worse nor the same.
    absent = [
        f"{of} could be judged in the baseline and can't be now: it was not requested"
        for of in known
        if of not in there
    ]
    if absent:
        return MetricVerdict(metric="accuracy", verdict="incomparable", reason="; ".join(absent))
    shared = [f"both sides are {flag.name}" for flag in wrong]
    shared += [
        f"{judgement.of} can't be judged on either side: {judgement.reason}"
        for judgement in unknown
    ]
    if shared:
        return MetricVerdict(metric="accuracy", verdict="informs", reason="; ".join(shared))
    return MetricVerdict(metric="accuracy", verdict="same")


def _of_answers(result: CaseResult) -> list[Judgement]:
    return [judgement for judgement in judgements_of(result) if judgement.of in _OF_ANSWERS]


def _relative(
    metric: str, before: Sequence[float], after: Sequence[float], allowance: Allowance
) -> MetricVerdict:
    lower_is_better = METRICS[metric].better == "lower"
    baseline = _worst(before, lower_is_better)
    contender = _worst(after, lower_is_better)
    text = f"worse by at most {allowance.text(metric)}"
    if baseline is None or contender is None:
        is_there = baseline is not None
        missing = "the contender" if is_there else "the baseline"
        # What was asked for, and what is gated always, must not get lost in silence.
        lost = is_there and (allowance.chosen or metric in _NEVER_LOST)
        return MetricVerdict(
            metric=metric,
            verdict="worse" if lost else "incomparable",
            baseline=_finite(baseline),
            contender=_finite(contender),
            allowed=text,
            reason=f"the {missing} has no number",
        )
    # Every worker must be worse than every worker of the baseline: min against max.
    best_after = min(after) if lower_is_better else max(after)
    gap = best_after - baseline if lower_is_better else baseline - best_after
    gap_back = min(before) - contender if lower_is_better else contender - max(before)
    if before and max(before) == min(before) == max(after) == min(after):
        verdict = "same"
    elif gap > allowance.of(baseline):
        verdict = "worse"
    elif gap_back > allowance.of(baseline):
        verdict = "better"
    else:
        verdict = "same"
    return MetricVerdict(
        metric=metric,
        verdict=verdict,
        baseline=_finite(baseline),
        contender=_finite(contender),
        allowed=text,
        allowance=allowance.of(baseline),
    )


def _worst(values: Sequence[float], lower_is_better: bool) -> float | None:
    if not values or any(map(math.isnan, values)):
        return None
    return max(values) if lower_is_better else min(values)


def _finite(value: float | None) -> float | None:
    """An exact result has an infinite signal to noise ratio, which no document can hold."""
    return None if value in (None, float("inf"), float("-inf")) else value


def limit_verdicts(rules: CaseRules, summary: Summary) -> list[MetricVerdict]:
    """Judge the absolute limits, which need no baseline."""
    return [
        MetricVerdict(
            metric=outcome.limit.metric.name,
            verdict="same" if outcome.judgement.is_good else "worse",
            contender=None if outcome.measured is None else outcome.measured.value,
            bound=outcome.limit.value,
            allowed=f"{outcome.limit.op} {_bound(outcome)}",
            reason="" if outcome.judgement.is_good else outcome.judgement.reason,
        )
        for outcome in check_limits(rules.limits, summary)
    ]


def _bound(outcome: LimitOutcome) -> str:
    """The bound of a limit, with the digits that tell it from what was measured."""
    limit = outcome.limit
    if outcome.measured is None:
        return format_amount(limit.value, limit.metric.unit)
    return outcome.measured.beside(limit.value)[1]


def findings_of(metrics: Sequence[MetricVerdict]) -> list[GateFinding]:
    """Return what is wrong: each metric that got worse than allowed, or that was lost."""
    findings = []
    for verdict in metrics:
        if verdict.verdict == "worse":
            findings.append(
                GateFinding(
                    about=verdict.metric,
                    text=_sentence(verdict),
                    worse_by=worse_by(verdict),
                    slack=_SLACK,
                )
            )
        elif verdict.verdict == "incomparable" and verdict.baseline is not None:
            text = f"{verdict.metric} was not gated: {verdict.reason}"
            findings.append(GateFinding(about=verdict.metric, text=text, fails=False))
    return findings


def worse_by(verdict: MetricVerdict) -> float | None:
    """Return how far a number is from the baseline's, or from its limit, as a share of that."""
    reference = verdict.bound if verdict.bound is not None else verdict.baseline
    if not reference or verdict.contender is None:
        return None
    return abs(verdict.contender - reference) / abs(reference)


def _sentence(verdict: MetricVerdict) -> str:
    if verdict.reason:
        return f"{verdict.metric}: {verdict.reason}"
    unit = METRICS[verdict.metric].unit
    before, after = verdict.baseline or 0.0, verdict.contender or 0.0
    then, now = amounts_apart(before, after, unit)
    change = ""
    if before and unit != "dB":
        share = 100 * (after / before - 1)
        least = math.copysign(100 * (verdict.allowance or 0.0) / abs(before), share)
        change = f" ({'+' if share > 0 else ''}{decimals_apart(share, least)} %)"
    return f"{verdict.metric} went from {then} to {now}{change}; it may be {verdict.allowed}"
