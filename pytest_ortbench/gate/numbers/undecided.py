"""What a gate could not judge of a case: its latency, its answers, or a metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.core.gate import CAUSES, GateResult, MetricVerdict
from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged
from pytest_ortbench.core.metrics import SIDE_METRICS

#: Verdicts that decide nothing.
OPEN = ("inconclusive", "incomparable", "unjudged")

#: Metrics that the answers and the status of a case stand for, said under other names.
_NOT_GATED_ALONE = (*SIDE_METRICS, "status")

_OF = "gate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """One thing that a gate was due to judge and could not.

    Attributes:
        about: A metric of the registry, ``latency``, ``answers``, or ``comparison`` where nothing
            at all was compared.
        reason: Why, without the numbers of one case where there is a word for it.
    """

    about: str
    reason: str


def undecided(result: GateResult) -> tuple[Undecided, ...]:
    """Return what could not be judged of a case that has another side; nothing of a removed one."""
    if not result.compares:
        return ()
    open_ones = []
    verdict = result.latency_verdict
    if verdict in ("inconclusive", "incomparable"):
        why = CAUSES.get(result.cause) or result.reason or f"the verdict is {verdict}"
        is_all = verdict == "incomparable" and not result.metrics
        open_ones.append(Undecided(about="comparison" if is_all else "latency", reason=why))
    elif any(math.isnan(contrast.effect) for contrast in result.contrasts):
        open_ones.append(Undecided(about="latency", reason="the contrast is not a number"))
    answers = [metric for metric in result.metrics if metric.metric in SIDE_METRICS]
    unknown = [answer.reason for answer in answers if answer.verdict == "unjudged"]
    if unknown or result.verdict == "unjudged":
        why = next(filter(None, (*unknown, result.reason)), "they could not be compared")
        open_ones.append(Undecided(about="answers", reason=why))
    open_ones += [
        Undecided(about=metric.metric, reason=metric.reason or f"the verdict is {metric.verdict}")
        for metric in result.metrics
        if metric.verdict in OPEN and metric.metric not in _NOT_GATED_ALONE
    ]
    return tuple(open_ones)


def gated_metrics(result: GateResult) -> tuple[MetricVerdict, ...]:
    """Return the verdicts on metrics that were compared with the baseline's."""
    return tuple(
        verdict
        for verdict in result.metrics
        if verdict.verdict in ("same", "better", "worse")
        and verdict.bound is None
        and verdict.metric not in _NOT_GATED_ALONE
    )


def judgement_of_verdicts(results: Sequence[GateResult]) -> Judgement:
    """Return one judgement for the verdicts on a case: the worst of them."""
    failures = [text for result in results for text in result.failures]
    if failures:
        return bad(_OF, "; ".join(failures))
    reasons = [f"{part.about}: {part.reason}" for result in results for part in undecided(result)]
    if reasons or not results:
        return unjudged(_OF, "; ".join(reasons) or "nothing was compared")
    return good(_OF)
