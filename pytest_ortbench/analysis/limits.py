"""Checks the numbers of a case against limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.order import samples_needed
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged
from pytest_ortbench.core.limits import Limit
from pytest_ortbench.core.metric import Metric
from pytest_ortbench.core.quantity import Quantity

_PERCENTILES = {"latency_p50": 50.0, "latency_p90": 90.0, "latency_p95": 95.0, "latency_p99": 99.0}
_PERCENTILES |= {
    f"{stage}_{name}": percent
    for stage in ("preprocess", "frame_inference", "postprocess", "frame")
    for name, percent in (("p50", 50.0), ("p90", 90.0), ("p99", 99.0))
}

#: What only execution providers have.
OF_PROVIDERS = ("placement", "time_on_provider")

#: What these judgements are of.
_OF = "limit"

#: How much longer to measure than the rate of samples asks for, since the rate varies.
_MARGIN = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOutcome:
    """What became of one limit.

    Attributes:
        limit: The limit.
        judgement: Whether it is kept; its reason is one line for people, whatever the outcome.
        measured: The number, if there is one.
    """

    limit: Limit
    judgement: Judgement
    measured: Quantity | None


def samples_for_limits(limits: Sequence[Limit]) -> int:
    """The fewest samples of a case that these limits can be judged by: 368 for one on p99."""
    return max(
        (samples_needed(_PERCENTILES[limit.metric.name]) for limit in limits if _is_tail(limit)),
        default=0,
    )


def check_limits(limits: Sequence[Limit], summary: Summary) -> list[LimitOutcome]:
    """Check a case against every limit, in the order given.

    Those on where nodes ran say nothing of an engine or framework, which has no providers, those on
    the file nothing of the framework that it was exported from, and those on a service nothing of
    the session beside it.
    """
    provider = summary.case.provider
    return [
        _outcome(limit, summary)
        for limit in limits
        if (provider.is_execution_provider or limit.metric.name not in OF_PROVIDERS)
        and not (provider.role == "framework" and limit.metric.is_of_files)
        and (provider.is_endpoint or not limit.metric.is_of_services)
    ]


def _outcome(limit: Limit, summary: Summary) -> LimitOutcome:
    measured = summary.quantities.get(limit.metric.name)
    return LimitOutcome(limit=limit, judgement=_judge(limit, summary), measured=measured)


def _judge(limit: Limit, summary: Summary) -> Judgement:
    """Whether the case keeps the limit; a number that is missing or none can't be judged."""
    name = limit.metric.name
    measured = summary.quantities.get(name)
    if measured is not None and math.isnan(measured.value):
        return unjudged(_OF, f"{name} is not a number, so '{limit.text}' can't be judged")
    if measured is not None:
        if limit.holds(measured):
            number, _ = measured.beside(limit.value)
            return good(_OF, f"{name} is {number}, within '{limit.text}'")
        return bad(_OF, limit.explain(measured) + _behind(name, summary))
    reason = summary.missing.get(name, "not measured")
    if name in summary.infinite:
        # No difference at all is a signal to noise ratio beyond every number.
        text = f"{name} is infinite ({reason}), which"
        if limit.holds(math.inf):
            return good(_OF, f"{text} keeps '{limit.text}'")
        return bad(_OF, f"{text} breaks '{limit.text}'")
    text = f"{name} is not measurable ({reason}), so '{limit.text}' can't be judged"
    advice = _advice(limit, summary)
    return unjudged(_OF, f"{text}. {advice}" if advice else text)


def _behind(name: str, summary: Summary) -> str:
    note = summary.notes.get(name)
    return f": {note}" if note else ""


def _is_tail(limit: Limit) -> bool:
    return limit.metric.name in _PERCENTILES


def _advice(limit: Limit, summary: Summary) -> str:
    """Which ``--ort-time`` would give a percentile the samples that it needs."""
    if not _is_tail(limit) or summary.status != "measured" or not summary.samples:
        return ""
    needed = samples_needed(_PERCENTILES[limit.metric.name])
    samples, timed_s = _measured(limit.metric, summary)
    if not samples or samples >= needed:
        return ""
    seconds = _MARGIN * needed * timed_s / samples
    return (
        f"It has {samples} samples and needs {needed}: use "
        f"--ort-time={_round_up(seconds)}{_and_timeout(seconds, summary)}"
    )


def _measured(metric: Metric, summary: Summary) -> tuple[int, float]:
    """Samples behind a percentile, and the seconds that they took."""
    if not metric.rate:
        return summary.samples, summary.timed_s
    rate = summary.quantities.get(metric.rate)
    if rate is None:
        return 0, 0.0
    return rate.samples, rate.samples * summary.case.batch / rate.value


def _and_timeout(seconds: float, summary: Summary) -> str:
    """Measuring that long must also fit into the case's timeout."""
    timeout_s = summary.case.sampling.timeout_s
    if seconds < 0.5 * timeout_s:
        return ""
    return f" with --ort-timeout={_round_up(3 * seconds)}"


def _round_up(seconds: float) -> str:
    """Two significant digits, upwards: 12.3 → 13, 0.31 → 0.31, 123 → 130."""
    step = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    # Fractions of a step from floating point don't count.
    return f"{math.ceil(round(seconds / step, 6)) * step:g}"
