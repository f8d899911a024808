"""Percentiles of whole nanoseconds, as MLPerf's load generator reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def percentile_ns(times_ns: Sequence[int], percent: float) -> int | None:
    """Return a percentile; ``None`` of nothing."""
    ordered = sorted(times_ns)
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def percentiles_ns(times_ns: Sequence[int], percents: Iterable[float]) -> dict[str, int]:
    """Return several percentiles by their texts: ``{"99": 1234}``; nothing of nothing."""
    known = {f"{percent:g}": percentile_ns(times_ns, percent) for percent in percents}
    return {name: time_ns for name, time_ns in known.items() if time_ns is not None}
