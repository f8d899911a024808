"""Achieved rates of operators against what the machine reaches: the roofline model.

An operator with *I* multiply-accumulates a byte can't be faster than ``min(P, I * B)``, where *P*
is the peak rate of arithmetic and *B* that of memory (Williams, Waterman and Patterson, 2009,
https://doi.org/10.1145/1498765.1498785). The nearer of both ceilings bounds it.

Bytes are the least that must move: every value read and written once. Values that stay in caches
come faster than memory, so a share of its peak can lie above one.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.passes.profile.facts import NodeTime, OperatorProfile, OperatorTime, Peak

#: An operator further below both ceilings is bound by neither, but by what it costs to start it.
NEAR = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What was achieved while an operator, a node or a whole run took its time.

    Attributes:
        macs_per_s: Multiply-accumulates a second; ``None`` if they are not known.
        bytes_per_s: Bytes read and written a second; ``None`` likewise.
        intensity: Multiply-accumulates a byte; ``None`` without both.
        compute_share: Part of the peak rate of arithmetic; ``None`` without a peak.
        memory_share: Part of the peak rate of memory; ``None`` without a peak.
    """

    macs_per_s: float | None = None
    bytes_per_s: float | None = None
    intensity: float | None = None
    compute_share: float | None = None
    memory_share: float | None = None

    @property
    def bound(self) -> str:
        """``compute`` or ``memory``: the nearer ceiling; ``neither``; empty if not known."""
        if self.compute_share is None or self.memory_share is None:
            return ""
        if max(self.compute_share, self.memory_share) < NEAR:
            return "neither"
        return "compute" if self.compute_share > self.memory_share else "memory"

    @property
    def share(self) -> float | None:
        """Part of the nearer ceiling."""
        known = [share for share in (self.compute_share, self.memory_share) if share is not None]
        return max(known, default=None)


def rate_of(time_ns: int, macs: int | None, moved_bytes: int | None, peak: Peak | None) -> Rate:
    """Return what was achieved in a time; nothing is known of a time of zero.

    Args:
        time_ns: The time.
        macs: Multiply-accumulates done in it.
        moved_bytes: Bytes read and written in it.
        peak: The ceilings.
    """
    if time_ns <= 0:
        return Rate()
    macs_per_s = None if macs is None else macs / time_ns * 1e9
    bytes_per_s = None if moved_bytes is None else moved_bytes / time_ns * 1e9
    return Rate(
        macs_per_s=macs_per_s,
        bytes_per_s=bytes_per_s,
        intensity=None if macs is None or not moved_bytes else macs / moved_bytes,
        compute_share=_part(macs_per_s, None if peak is None else peak.macs_per_s),
        memory_share=_part(bytes_per_s, None if peak is None else peak.bytes_per_s),
    )


def operator_rate(profile: OperatorProfile, timed: OperatorTime | NodeTime) -> Rate:
    """Return what an operator or a node achieved.

    Nothing is known where its time is that of starting it (asynchronous providers), and nothing
    can be compared with the peak of a provider that it did not run on.
    """
    if profile.asynchronous:
        return Rate()
    peak = profile.peak
    own = peak is not None and peak.provider == timed.provider
    return rate_of(timed.time_ns, timed.macs, timed.moved_bytes, peak if own else None)


def model_rate(profile: OperatorProfile) -> Rate:
    """Return what a whole run achieved: without the profiler, unless that was the slower one.

    The profiler only adds, so that a faster run with it says that the others were disturbed.
    """
    took = [ns for ns in (profile.plain_ns, profile.run_ns) if ns]
    return rate_of(min(took, default=0), profile.macs, profile.moved_bytes, profile.peak)


def ridge(peak: Peak) -> float | None:
    """Intensity at which both ceilings meet, in multiply-accumulates a byte."""
    if not peak.macs_per_s or not peak.bytes_per_s:
        return None
    return peak.macs_per_s / peak.bytes_per_s


def _part(rate: float | None, ceiling: float | None) -> float | None:
    return None if rate is None or not ceiling else rate / ceiling
