"""Two runs side by side, case by case: ratios with their intervals, and a careful verdict.

Runs of different times say little about latency on a shared machine: with identical code, rules
like "5 % slower" or a rank test were wrong in a quarter to nine tenths of the cases. So a
difference counts here only where the intervals, which run over fresh processes, are apart *and*
the ratio is beyond the margin. To decide about a change, measure both sides in one run
(``--ort-against``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.run import Run

#: A ratio closer to 1 than this is no difference: what block medians of shared machines can hold.
MARGIN = 0.05

#: Exact metrics (sizes) and those that hardly vary between launches.
MARGINS: dict[str, float] = {
    "model_size": 0.0,
    "peak_rss": 0.02,
    "process_peak_rss": 0.02,
    "session_rss": 0.02,
}

#: Metrics that time and energy decide; on another machine they are other quantities.
_MACHINE_BOUND = frozenset(
    name
    for name, metric in METRICS.items()
    if metric.unit in ("s", "1/s", "W", "J") or name in ("device_memory", "time_on_provider")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonVerdict:
    """What two sides of one metric, or of one case, come to.

    Attributes:
        word: ``faster``, ``slower``, ``same``, ``inconclusive`` or ``incomparable``; for metrics
            other than time ``better`` and ``worse`` take the place of the first two.
        reason: For ``incomparable`` the field that differs, for ``inconclusive`` why; else empty.
    """

    word: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """One metric of one case on both sides.

    Attributes:
        metric: Name of the metric.
        baseline: Number of the baseline.
        contender: Number of the contender.
        ratio: Contender ÷ baseline; ``None`` where the baseline is 0.
        low: Lower end of the ratio's interval, ``None`` without intervals.
        high: Upper end, likewise.
        verdict: What it comes to.
    """

    metric: str
    baseline: Quantity
    contender: Quantity
    ratio: float | None
    low: float | None
    high: float | None
    verdict: ComparisonVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseComparison:
    """One case on both sides.

    Attributes:
        key: (case id, runtime label).
        metrics: Metrics that both sides have, in the registry's order.
        verdict: That of the median latency.
        differs: What else differs, with both values: it may be the change that is examined.
    """

    key: tuple[str, str]
    metrics: tuple[MetricComparison, ...]
    verdict: ComparisonVerdict
    differs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs.

    Attributes:
        baseline: Id of the baseline run.
        contender: Id of the contender run.
        cases: Cases of both, in the baseline's order.
        vanished: Keys that only the baseline has.
        added: Keys that only the contender has.
        machine_differs: Stable facts of the machines that differ, with both values.
    """

    baseline: str
    contender: str
    cases: tuple[CaseComparison, ...]
    vanished: tuple[tuple[str, str], ...] = ()
    added: tuple[tuple[str, str], ...] = ()
    machine_differs: tuple[str, ...] = field(default=())


def compare_runs(baseline: Run, contender: Run) -> Comparison:
    """Pair the cases of two runs by (case id, runtime label) and compare them."""
    before = {result.case.key: result for result in baseline.cases}
    after = {result.case.key: result for result in contender.cases}
    machine = _differences("machine", baseline.machine.stable, contender.machine.stable)
    return Comparison(
        baseline=baseline.run_id,
        contender=contender.run_id,
        cases=tuple(
            compare_cases(result, after[key], machine_differs=machine)
            for key, result in before.items()
            if key in after
        ),
        vanished=tuple(key for key in before if key not in after),
        added=tuple(key for key in after if key not in before),
        machine_differs=machine,
    )


def compare_cases(
    baseline: CaseResult, contender: CaseResult, *, machine_differs: Sequence[str] = ()
) -> CaseComparison:
    """Compare two results of what should be the same case.

    Args:
        baseline: The one side.
        contender: The other.
        machine_differs: Stable facts in which the two machines differ.
    """
    one, other = summarise(baseline), summarise(contender)
    workload = _workload_differences(baseline, contender)
    metrics = tuple(
        _compare_metric(name, one, other, workload, machine_differs)
        for name in METRICS
        if name in one.quantities and name in other.quantities
    )
    verdicts = {comparison.metric: comparison.verdict for comparison in metrics}
    return CaseComparison(
        key=baseline.case.key,
        metrics=metrics,
        verdict=verdicts.get("latency_p50") or _verdict_without_latency(one, other),
        differs=_other_differences(baseline, contender),
    )


def _verdict_without_latency(one: Summary, other: Summary) -> ComparisonVerdict:
    if one.status != other.status:
        return ComparisonVerdict(
            word="incomparable", reason=f"status: {one.status} → {other.status}"
        )
    if one.missing.get("latency_p50") == other.missing.get("latency_p50"):
        return ComparisonVerdict(word="same")
    reason = other.missing.get("latency_p50") or one.missing.get("latency_p50", "")
    return ComparisonVerdict(word="inconclusive", reason=reason)


def _compare_metric(
    name: str,
    one: Summary,
    other: Summary,
    workload: Sequence[str],
    machine_differs: Sequence[str],
) -> MetricComparison:
    before, after = one.quantities[name], other.quantities[name]
    ratio = after.value / before.value if before.value else None
    low, high = _ratio_interval(before, after)
    differing = [*workload, *(machine_differs if name in _MACHINE_BOUND else ())]
    if differing:
        verdict = ComparisonVerdict(word="incomparable", reason=differing[0])
    else:
        verdict = _judge(name, one, other)
    return MetricComparison(
        metric=name,
        baseline=before,
        contender=after,
        ratio=ratio,
        low=low,
        high=high,
        verdict=verdict,
    )


def _ratio_interval(before: Quantity, after: Quantity) -> tuple[float, float] | tuple[None, None]:
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return None, None
    if before.low <= 0:
        return None, None
    return after.low / before.high, after.high / before.low


def _judge(name: str, one: Summary, other: Summary) -> ComparisonVerdict:
    before, after = one.quantities[name], other.quantities[name]
    if before == after:
        # The very same numbers: nothing to doubt, whatever blurs them.
        return ComparisonVerdict(word="same")
    blurring = _blurring(one) + _blurring(other) if name in _MACHINE_BOUND else ()
    if blurring:
        return ComparisonVerdict(word="inconclusive", reason=" ".join(dict.fromkeys(blurring)))
    margin = MARGINS.get(name, MARGIN)
    low, high = _ratio_interval(before, after)
    if low is None or high is None:
        if not _is_beyond(name, before.value, after.value, margin):
            return ComparisonVerdict(word="same")
        if name in _MACHINE_BOUND:
            return ComparisonVerdict(word="inconclusive", reason="no interval")
        return _better_or_worse(name, before.value, after.value)
    if (low > 1 or high < 1) and _is_beyond(name, before.value, after.value, margin):
        return _better_or_worse(name, before.value, after.value)
    if 1 / (1 + margin) <= low and high <= 1 + margin:
        return ComparisonVerdict(word="same")
    return ComparisonVerdict(
        word="inconclusive",
        reason=(f"the change lies between {100 * (low - 1):+.1f} % and {100 * (high - 1):+.1f} %"),
    )


def _is_beyond(name: str, before: float, after: float, margin: float) -> bool:
    """Whether two numbers differ by more than the margin, as a share of the first."""
    if METRICS[name].unit == "dB" or not before:
        # Decibels are ratios already, and nothing is a multiple of zero.
        return abs(after - before) > margin * max(1.0, abs(before))
    return abs(after / before - 1) > margin


def _better_or_worse(name: str, before: float, after: float) -> ComparisonVerdict:
    better = (after < before) == (METRICS[name].better == "lower")
    if METRICS[name].unit in ("s", "1/s"):
        return ComparisonVerdict(word="faster" if better else "slower")
    return ComparisonVerdict(word="better" if better else "worse")


def _blurring(summary: Summary) -> tuple[str, ...]:
    return tuple(
        flag.name
        for flag in summary.flags
        if flag.name in FLAGS and FLAGS[flag.name].severity in ("bars", "blurs")
    )


def _workload_differences(baseline: CaseResult, contender: CaseResult) -> tuple[str, ...]:
    """Fields without which two numbers do not mean the same: what is fed, and what is timed."""
    one, other = baseline.case, contender.case
    found = []
    if one.io != other.io:
        found.append(f"io: {one.io} → {other.io}")
    shapes = (
        {spec.name: f"{spec.type} {list(spec.shape)}" for spec in case.inputs}
        for case in (one, other)
    )
    found += _differences("input", *shapes)
    if one.seed != other.seed:
        found.append(f"seed: {one.seed} → {other.seed}")
    return tuple(found)


def _other_differences(baseline: CaseResult, contender: CaseResult) -> tuple[str, ...]:
    """What differs and may well be the change under examination."""
    return (
        *_differences("model", _facts(baseline), _facts(contender)),
        *_differences("runtime", _runtime_facts(baseline), _runtime_facts(contender)),
        *_differences("session", _session_facts(baseline), _session_facts(contender)),
        *_differences("recipe", baseline.case.variant.recipe, contender.case.variant.recipe),
    )


def _facts(result: CaseResult) -> dict[str, str]:
    return {"digest": result.case.variant.digest[:12]}


def _runtime_facts(result: CaseResult) -> dict[str, str]:
    if not result.measurements:
        return {}
    info = result.measurements[0].runtime
    facts = {"version": info.version, "python": info.python, "numpy": info.numpy}
    return facts | {"distributions": " ".join(sorted(info.distributions))}


def _session_facts(result: CaseResult) -> dict[str, str]:
    session = result.case.session
    threads = result.measurements[0].threads if result.measurements else 0
    return {
        "threads": str(threads),
        "graph_optimization_level": session.graph_optimization_level,
        "execution_mode": session.execution_mode,
        **{f"entry {name}": value for name, value in session.entries.items()},
        **{f"option {name}": value for name, value in result.case.provider.options.items()},
    }


def _differences(what: str, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """``what name: value → value`` for every fact that differs or that one side lacks."""
    names = list(dict.fromkeys([*before, *after]))
    return tuple(
        f"{what} {name}: {before.get(name, 'none')} → {after.get(name, 'none')}"
        for name in names
        if before.get(name) != after.get(name)
    )
