"""A run of another time as the baseline: what it may decide, and what it only informs about.

Memory, size, placement, accuracy and status are the same at any time, so they are gated always.
Latency is not: with identical code, rules on two runs of one shared machine were wrong in a quarter
to nine tenths of the cases. It decides only on the same dedicated machine, and only where what both
runs recorded of their own noise allows the margin. Where both runs took turns with the same
yardstick, their ratios to it inform (:mod:`pytest_ortbench.gate.numbers.stored_relative`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from types import MappingProxyType

from pytest_ortbench.analysis.judgements import flag_names
from pytest_ortbench.analysis.relative_latency import (
    NoRelativeLatency,
    RelativeLatency,
    blurs_ratios,
    mismatch,
    relative_latency,
)
from pytest_ortbench.core.case import Case, Key
from pytest_ortbench.core.endpoint_address import is_on_this_machine
from pytest_ortbench.core.flags import ONE_WORKER
from pytest_ortbench.core.gate import (
    MODEL_SAME,
    NO_BASELINE,
    ContrastVerdict,
    GateFinding,
    GateResult,
    Hindrance,
    MetricVerdict,
    short_side,
)
from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.run import Machine, Run
from pytest_ortbench.gate.numbers.metrics import (
    MetricSide,
    findings_of,
    judge_metrics,
    limit_verdicts,
)
from pytest_ortbench.gate.numbers.rules import (
    OF_ANSWERS,
    OF_LABELS,
    CaseRules,
    Rule,
    rules_for,
)
from pytest_ortbench.gate.numbers.same_models import Twin, models_of, twins
from pytest_ortbench.gate.numbers.sentences import interval_text, latency_finding
from pytest_ortbench.gate.numbers.stored_differences import (
    device_difference,
    difference_of_inputs,
    first_difference,
    interpreter_difference,
    label_difference,
    service_difference,
    size_difference,
    workload_difference,
)
from pytest_ortbench.gate.numbers.stored_relative import (
    STORED_MARGIN,
    RunSpread,
    relative_contrast,
)
from pytest_ortbench.gate.numbers.verdict import SHARED, machine_class

#: What an interpreter has in its heap before a session decides how much a session adds to it: the
#: same packages in another environment differ by a third.
_OF_INTERPRETERS = ("peak_rss", "process_peak_rss", "session_rss")

#: What depends on the sizes of the inputs.
_OF_SIZES = ("peak_rss", "process_peak_rss", "device_memory", "time_on_provider", *OF_ANSWERS)

#: The metric that decides about the latency.
_MEDIAN = "latency_p50"


def gate_runs(
    baseline: Run,
    contender: Run,
    rules: Sequence[Rule],
    spreads: Mapping[str, RunSpread] = MappingProxyType({}),
) -> tuple[GateResult, ...]:
    """Judge every case of two runs; those that vanished fail, new ones have absolute limits only.

    Args:
        baseline: The earlier run.
        contender: The later one.
        rules: Items of ``--ort-gate``.
        spreads: As of :func:`gate_case`.
    """
    same = twins(models_of(baseline).values(), models_of(contender).values())
    before = {result.case.key: result for result in baseline.cases}
    later: dict[Key | None, list[CaseResult]] = {}
    for result in contender.cases:
        later.setdefault(same.key_of(result.case), []).append(result)
    case_ids = {result.case.case_id for result in (*baseline.cases, *contender.cases)}
    results = []
    for key, result in before.items():
        if key not in later:
            name = result.case.model.name
            gone = vanished(result.case, baseline.run_id, name, moved_to=same.moved_to(name))
            results.append(gone)
            continue
        side = MetricSide.of(result)
        results += [
            gate_case(
                side,
                MetricSide.of(after),
                rules_for(after.case.case_id, rules, case_ids),
                baseline=baseline,
                machine=contender.machine,
                canary=canary_ratio(baseline, contender),
                twin=same.earlier[after.case.model.name],
                spreads=spreads,
            )
            for after in later[key]
        ]
    for result in contender.cases:
        case_rules = rules_for(result.case.case_id, rules, case_ids)
        is_new = same.key_of(result.case) not in before
        if is_new and case_rules.limits and result.status == "measured":
            results.append(limits_alone(MetricSide.of(result), case_rules))
    return tuple(results)


def gate_case(
    before: MetricSide,
    after: MetricSide,
    rules: CaseRules,
    *,
    baseline: Run,
    machine: Machine,
    twin: Twin,
    canary: float | None = None,
    history: Sequence[tuple[Run, CaseResult]] = (),
    spreads: Mapping[str, RunSpread] = MappingProxyType({}),
) -> GateResult:
    """Judge one case against what a run stored of it.

    Args:
        before: What is stored of it.
        after: What is new.
        rules: What holds for the case.
        baseline: The run of ``before``.
        machine: Where ``after`` was measured.
        twin: The model as the baseline has it.
        canary: Canary of the new run ÷ that of the baseline; ``None`` unless both measured it,
            and then latency decides nothing.
        history: Older runs than the baseline, and what they have of the case. Those that compare
            with it say how far runs of the same model differ.
        spreads: By how much runs of the same code differ on this machine, by what their ratio to a
            yardstick is made of, as far as its self-test knows.
    """
    old, new = before.result.case, after.result.case
    fed, labelled = difference_of_inputs(old, new), label_difference(old, new)
    metrics = judge_metrics(before, after, rules)
    device = device_difference(before.result, after.result)
    metrics = _without(metrics, [verdict.metric for verdict in metrics], device)
    sizes = size_difference(old, new)
    metrics = _without(metrics, _OF_SIZES, sizes)
    metrics = _without(metrics, OF_ANSWERS, fed)
    metrics = _without(metrics, OF_LABELS, labelled)
    metrics = _without(
        metrics, _OF_INTERPRETERS, interpreter_difference(before.result, after.result)
    )
    result = replace(
        GateResult.undecided(new, baseline=baseline.run_id, before=old),
        metrics=metrics,
        flags=after.result.flags,
        model_digest=new.model.digest,
        baseline_case_id=old.case_id if old.case_id != new.case_id else "",
        model_relation=twin.relation,
        baseline_digest="" if twin.relation == MODEL_SAME else twin.model.digest,
    )
    hindrance = _hindrance(before, after, baseline.machine, machine)
    if hindrance is None:
        turns = _taken_in_turns(before.result, after.result)
        if not isinstance(turns, Hindrance):
            contrast = _ratio_contrast(
                turns, before.result, history, baseline, rules, spreads=spreads
            )
            result = replace(result, contrasts=(contrast,))
        if not isinstance(turns, Hindrance) and _decides(spreads, turns[1], machine):
            result = _by_yardstick(result, before, after)
        else:
            why = turns if isinstance(turns, Hindrance) else _only_informs(result)
            hindrance = _unless_dedicated(why, rules, machine, canary)
            if hindrance is None:
                result = _judge_latency(result, before, after, rules)
    if hindrance is not None:
        result = replace(result, cause=hindrance.cause, reason=hindrance.reason)
    findings = findings_of(metrics)
    if result.verdict in ("slower", "inconclusive"):
        findings.insert(0, latency_finding(result))
    return result.with_findings(findings)


def limits_alone(side: MetricSide, rules: CaseRules) -> GateResult:
    """Judge a case that has no baseline by what it must keep whatever a baseline has."""
    case = side.result.case
    metrics = tuple(limit_verdicts(rules, side.summary))
    judged = replace(
        GateResult.undecided(case, baseline=NO_BASELINE),
        has_baseline=False,
        cause="limits",
        reason="only its absolute limits were checked",
        metrics=metrics,
        model_digest=case.model.digest,
    )
    return judged.with_findings(findings_of(metrics))


def vanished(case: Case, baseline: str, model: str, *, moved_to: str = "") -> GateResult:
    """Return the verdict on a case that the baseline has and the contender's plan has not.

    Args:
        case: As the baseline has it.
        baseline: What has it.
        model: Name of its model, as the contender has it.
        moved_to: What its model is called now, if its content is there under another name.
    """
    reason = f"{case.case_id} was removed: {short_side(baseline)} contains it"
    judged = replace(
        GateResult.undecided(case, baseline=baseline),
        cause="removed",
        reason=reason,
        removed=True,
        model=model,
        moved_to=moved_to,
    )
    return judged.with_findings([GateFinding(about="removed", text=reason)])


def canary_ratio(baseline: Run, contender: Run) -> float | None:
    """Return how much slower the pinned model was than in the baseline: a change of the machine."""
    sides = (baseline.canary, contender.canary)
    if any(side is None or not side.durations_ns for side in sides):
        return None
    canary, later_canary = (side for side in sides if side is not None)
    if canary.model != later_canary.model:
        return None
    return median(later_canary.durations_ns) / median(canary.durations_ns)


def _hindrance(
    before: MetricSide, after: MetricSide, earlier: Machine, now: Machine
) -> Hindrance | None:
    """What forbids any verdict on the latency first; ``None`` if nothing does."""
    old, new = before.result, after.result
    if old.status != "measured" or new.status != "measured":
        return Hindrance(cause="status", reason=f"status: {old.status} → {new.status}")
    difference = first_difference("machine", earlier.stable, now.stable)
    if difference:
        return Hindrance(cause="machine", reason=difference)
    difference = device_difference(old, new)
    if difference:
        return Hindrance(cause="device", reason=difference)
    if new.case.provider.is_endpoint:
        difference = service_difference(old.case, new.case)
        if difference:
            return Hindrance(cause="workload", reason=difference)
        url = new.case.provider.options.get("url", "")
        if not is_on_this_machine(url):
            return Hindrance(
                cause="machine", reason=f"which machine answers at {url} is not known of either run"
            )
    if _MEDIAN in before.summary.quantities and _MEDIAN in after.summary.quantities:
        difference = workload_difference(old.case, new.case)
    if difference:
        return Hindrance(cause="workload", reason=difference)
    return None


def _taken_in_turns(
    before: CaseResult, after: CaseResult
) -> tuple[RelativeLatency, RelativeLatency] | Hindrance:
    """Both sides' latency against their yardstick, or why the two can't be compared so."""
    old, new = relative_latency(before), relative_latency(after)
    if isinstance(old, NoRelativeLatency):
        return Hindrance(cause="yardstick", reason=f"baseline: {old.reason}")
    if isinstance(new, NoRelativeLatency):
        return Hindrance(cause="yardstick", reason=f"this run: {new.reason}")
    threads = tuple(
        sorted({measurement.threads for measurement in result.measurements})
        for result in (before, after)
    )
    if threads[0] != threads[1]:
        text = " → ".join(", ".join(map(str, counts)) for counts in threads)
        return Hindrance(cause="yardstick", reason=f"threads: {text}")
    difference = mismatch(old, new)
    if difference is not None:
        reason = f"{difference.field}: {difference.before} → {difference.after}"
        return Hindrance(cause="yardstick", reason=reason)
    return old, new


def _unless_dedicated(
    turns: Hindrance, rules: CaseRules, now: Machine, canary: float | None
) -> Hindrance | None:
    """What forbids a verdict: that the machine is shared, or changed; ``None`` if neither."""
    profile = machine_class(now)
    if profile.name == SHARED:
        return Hindrance(
            cause=turns.cause,
            reason=f"the machine is shared ({profile.why}), so times of two runs can't be "
            f"compared; {turns.reason}. --ort-against measures both sides in one run",
        )
    if canary is None:
        return Hindrance(
            cause="canary",
            reason="canary: not measured in both runs, so the machine itself may have changed",
        )
    margin = _margin(rules)
    if abs(math.log(canary)) > math.log1p(margin) / 2:
        return Hindrance(
            cause="canary",
            reason=f"canary: ×{canary:.3f} of the baseline's time, so the machine itself changed",
        )
    return None


def _ratio_contrast(
    turns: tuple[RelativeLatency, RelativeLatency],
    before: CaseResult,
    history: Sequence[tuple[Run, CaseResult]],
    baseline: Run,
    rules: CaseRules,
    *,
    spreads: Mapping[str, RunSpread],
) -> ContrastVerdict:
    """Hold the ratio to the yardstick against that of the baseline, and of what compares with it.

    ``docs/concepts/yardstick.md`` has by how much it differs between runs of the same code.
    """
    old, new = turns
    older = [
        ratio
        for run, earlier in history
        if not first_difference("machine", run.machine.stable, baseline.machine.stable)
        for ratio in [_as_comparable(earlier, before)]
        if ratio is not None
    ]
    margin, asked = _margin(rules), rules.margin is not None
    spread = spreads.get(new.estimator)
    return relative_contrast([old, *older], new, margin, asked=asked, spread=spread)


def _as_comparable(earlier: CaseResult, before: CaseResult) -> RelativeLatency | None:
    """The ratio of an older run of the baseline's own model and work; ``None`` for any other."""
    if earlier.status != "measured" or earlier.case.model.digest != before.case.model.digest:
        return None
    if workload_difference(earlier.case, before.case) or device_difference(earlier, before):
        return None
    if blurs_ratios(flag.name for flag in earlier.flags):
        return None
    turns = _taken_in_turns(earlier, before)
    return None if isinstance(turns, Hindrance) else turns[0]


def _decides(spreads: Mapping[str, RunSpread], now: RelativeLatency, machine: Machine) -> bool:
    """Whether ratios decide here: verdicts on them were right in the self-test of the machine."""
    spread = spreads.get(now.estimator)
    return machine_class(machine).name == SHARED and spread is not None and spread.decides


def _only_informs(result: GateResult) -> Hindrance:
    """Say what the ratio came to, and why it does not decide."""
    (contrast,) = result.contrasts
    return Hindrance(
        cause="shared",
        reason=f"against the yardstick of both runs an inference takes {interval_text(contrast)} "
        "of the baseline's time, which only informs: no self-test of this machine (ortbench gate "
        "--self-test --stored) found such verdicts to be right",
    )


def _by_yardstick(result: GateResult, before: MetricSide, after: MetricSide) -> GateResult:
    """Let the ratio to the yardstick decide, unless a flag says that it is not to be trusted."""
    (contrast,) = result.contrasts
    result = replace(result, decided_by=contrast.statistic)
    flags = (*before.result.flags, *after.result.flags)
    names = [*blurs_ratios(flag.name for flag in flags), *_single_process(flags)]
    if names:
        reason = f"flagged {', '.join(names)}"
        return replace(result, verdict="inconclusive", cause="flags", reason=reason)
    cause = reason = ""
    if contrast.verdict == "inconclusive":
        cause, reason = "noise", "runs of the same code differ too much on this machine to tell"
    return replace(result, verdict=contrast.verdict, cause=cause, reason=reason)


def _judge_latency(
    result: GateResult, before: MetricSide, after: MetricSide, rules: CaseRules
) -> GateResult:
    """Ratio and interval of the medians, over the fresh processes of each run."""
    margin = _margin(rules)
    old, new = (side.summary.quantities.get(_MEDIAN) for side in (before, after))
    if old is None or new is None:
        missing = (after if new is None else before).summary.missing.get(_MEDIAN, "")
        reason = f"no median: {missing}"
        return replace(result, verdict="inconclusive", cause="median", reason=reason)
    contrast = _contrast(old, new, margin)
    result = replace(result, contrasts=(contrast,), decided_by="stored")
    blurring = _blurring(before.result) + _blurring(after.result)
    if blurring:
        reason = f"flagged {', '.join(dict.fromkeys(blurring))}"
        return replace(result, verdict="inconclusive", cause="flags", reason=reason)
    cause = reason = ""
    if contrast.verdict == "inconclusive":
        cause, reason = "noise", "the recorded noise of both runs is too large for the margin"
    return replace(result, verdict=contrast.verdict, cause=cause, reason=reason)


def _contrast(old: Quantity, new: Quantity, margin: float) -> ContrastVerdict:
    ratio = new.value / old.value
    low = high = None
    if None not in (old.low, old.high, new.low, new.high):
        low = float(new.low or 0) / float(old.high or 1)
        high = float(new.high or 0) / float(old.low or 1)
    verdict = "inconclusive"
    if low is not None and high is not None:
        if low > 1 and ratio >= 1 + margin:
            verdict = "slower"
        elif high < 1 + margin:
            verdict = "faster" if high < 1 and ratio <= 1 / (1 + margin) else "same"
    return ContrastVerdict(
        statistic="median",
        verdict=verdict,
        effect=ratio - 1,
        low=None if low is None else low - 1,
        high=None if high is None else high - 1,
        margin=margin,
        # No p-value: two runs are one launch each as far as the machine's state goes.
        p=1.0,
        launches=1,
    )


def _margin(rules: CaseRules) -> float:
    return STORED_MARGIN if rules.margin is None else rules.margin


def _blurring(result: CaseResult) -> list[str]:
    names = [*flag_names(result.flags, "bars"), *flag_names(result.flags, "blurs")]
    return [*names, *_single_process(result.flags)]


def _single_process(flags: Sequence[Flag]) -> list[str]:
    """The flag of a number of one process, which holds nothing of how far processes differ."""
    return list(dict.fromkeys(flag.name for flag in flags if flag.name == ONE_WORKER))


def _without(
    verdicts: tuple[MetricVerdict, ...], metrics: Sequence[str], difference: str
) -> tuple[MetricVerdict, ...]:
    """Verdicts of which some metrics are incomparable, where a difference says so."""
    return tuple(
        replace(verdict, verdict="incomparable", reason=difference)
        if difference and verdict.metric in metrics and verdict.bound is None
        else verdict
        for verdict in verdicts
    )
