"""What a gate tells people, one line each."""

from __future__ import annotations

from pytest_ortbench.core.gate import ContrastVerdict, GateFinding, GateResult
from pytest_ortbench.core.units import format_amount


def interval_text(contrast: ContrastVerdict) -> str:
    """``×1.052 [1.031, –]`` with what is known of the interval."""
    low = "–" if contrast.low is None else f"{1 + contrast.low:.3f}"
    high = "–" if contrast.high is None else f"{1 + contrast.high:.3f}"
    return f"×{1 + contrast.effect:.3f} [{low}, {high}]"


def latency_finding(result: GateResult) -> GateFinding:
    """Return what a gate holds against the latency of a case that is slower, or undecided."""
    contrast = result.contrasts[0] if result.contrasts else None
    slower = result.verdict == "slower"
    return GateFinding(
        about="latency",
        text=latency_failure(result) if slower else latency_warning(result),
        fails=slower,
        worse_by=None if contrast is None else max(0.0, contrast.effect),
        slack=0.0 if contrast is None else contrast.margin,
    )


def latency_failure(result: GateResult) -> str:
    """Ratio, interval, margin and launches of a regression."""
    contrast = result.contrasts[0]
    text = (
        f"slower than {result.baseline}: {contrast.statistic} time {interval_text(contrast)} of "
        f"the baseline's, margin {format_amount(contrast.margin, 'ratio')}, "
        f"{contrast.launches} launches"
    )
    if result.confirmed is not None:
        text += (
            f", confirmed by {result.confirmed.launches} more with another seed "
            f"({interval_text(result.confirmed)})"
        )
    return text


def latency_warning(result: GateResult) -> str:
    """Why there is no verdict, and the smallest effect that could have been seen."""
    text = f"inconclusive against {result.baseline}: {result.reason}"
    if not result.contrasts:
        return text
    contrast = result.contrasts[0]
    text += (
        f"; {contrast.statistic} time {interval_text(contrast)}, margin "
        f"{format_amount(contrast.margin, 'ratio')}, {contrast.launches} launches"
    )
    if contrast.detectable is not None:
        seen = format_amount(contrast.detectable, "ratio", 2)
        text += f"; the smallest slowdown that could have been seen is {seen}"
    return text


def verdict_line(result: GateResult) -> str:
    """One line on a case, for tables and logs."""
    text = "removed" if result.removed else result.verdict
    if result.contrasts:
        text += f"  {interval_text(result.contrasts[0])}"
        text += f"  {result.contrasts[0].launches} launches"
    elif result.reason and not result.removed:
        text += f"  {result.reason}"
    worse = [verdict.metric for verdict in result.metrics if verdict.verdict == "worse"]
    if worse:
        text += f"  worse: {', '.join(worse)}"
    return text


def unconfirmed(again: ContrastVerdict) -> str:
    """Say why a slowdown that was measured again does not count."""
    excluded = again.verdict in ("same", "faster")
    return "measured again with another seed, " + (
        "it was not slower by the margin"
        if excluded
        else "the slowdown was neither shown nor excluded"
    )
