"""What a paired case comes to: its verdict, and why it fails or warns."""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.core.gate import GateFinding, GateResult, MetricVerdict
from pytest_ortbench.gate.numbers.answers import AnswersJudged
from pytest_ortbench.gate.numbers.metrics import MetricSide, findings_of, judge_metrics
from pytest_ortbench.gate.numbers.rules import CaseRules
from pytest_ortbench.gate.numbers.sentences import answers_finding, latency_finding


def overall(latency: str, judged: AnswersJudged) -> str:
    """Return the verdict on a case: on its answers if these are not good, else on its latency."""
    if not judged.fails:
        return latency
    return "less accurate" if judged.judgement.is_bad else "unjudged"


def with_outcome(result: GateResult, judged: AnswersJudged | None = None) -> GateResult:
    """Add why the case fails or warns."""
    findings: list[GateFinding] = []
    worse = findings_of(result.metrics)
    if judged is not None and judged.fails:
        findings.append(answers_finding(result, judged))
    if result.latency_verdict in ("slower", "inconclusive"):
        findings.append(latency_finding(result))
    elif result.latency_verdict == "incomparable":
        has_status = any(finding.about == "status" for finding in worse)
        about = "status" if has_status else "comparison"
        text = f"nothing was compared: {result.reason}"
        findings.append(GateFinding(about=about, text=text))
        # The status is said once.
        worse = [finding for finding in worse if finding.about != "status"]
    return result.with_findings([*findings, *worse])


def is_nonfinite(standard: MetricSide | None) -> bool:
    """Whether the contender gives NaN or infinity: not even identical sides are the same then."""
    return standard is not None and any(flag.name == "NONFINITE" for flag in standard.result.flags)


def spared(result: GateResult, rules: CaseRules, standard: MetricSide | None) -> GateResult:
    """Return the verdict on two sides that are the same; their absolute limits are held."""
    metrics: tuple[MetricVerdict, ...] = ()
    if standard is not None:
        metrics = judge_metrics(standard, standard, rules)
    return with_outcome(
        replace(result, verdict="same", decided_by="", identical=True, metrics=metrics)
    )
