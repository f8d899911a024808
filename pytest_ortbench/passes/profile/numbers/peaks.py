"""One peak for all cases of a run that share it: no model changes what a provider reaches.

Each profile measures its own, in a process of its own; what disturbs makes a measurement lower and
never higher, so the best of a run holds for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.passes.profile.facts import Peak

#: How much higher the best measurement may be than the lowest until it is said.
DISAGREE = 0.3


def with_shared_peaks(run: Run) -> Run:
    """Return the run with the best peak of the same runtime, device, threads and element type.

    A device is a provider with its options: another device, or another setting, is another roof.
    That of memory has no element type. The trials of all profiles are kept together.
    """
    products = _groups(run.cases, by_element=True)
    passes = _groups(run.cases, by_element=False)
    if all(len(group) == 1 for group in passes.values()):
        return run
    return replace(run, cases=tuple(_shared(result, products, passes) for result in run.cases))


def disagreement(trials: Iterable[float]) -> float:
    """Return how much higher the best of some measurements is than the lowest, as a share."""
    ascending = sorted(trials)
    return ascending[-1] / ascending[0] - 1 if ascending and ascending[0] > 0 else 0.0


#: Label of the runtime, that of the provider with its options, what the peak was measured through,
#: threads and element type.
_Key = tuple[str, str, tuple[tuple[str, str], ...], str, int, str]


def _key(result: CaseResult, peak: Peak, *, by_element: bool) -> _Key:
    case = result.case
    options = tuple(sorted(case.provider.options.items()))
    asked = (case.runtime.label, case.provider.label, options)
    return (*asked, peak.provider, peak.threads, peak.element if by_element else "")


def _groups(results: Iterable[CaseResult], *, by_element: bool) -> dict[_Key, list[Peak]]:
    groups: dict[_Key, list[Peak]] = {}
    for result in results:
        if result.profile is not None and result.profile.peak is not None:
            peak = result.profile.peak
            groups.setdefault(_key(result, peak, by_element=by_element), []).append(peak)
    return groups


def _shared(
    result: CaseResult, products: dict[_Key, list[Peak]], passes: dict[_Key, list[Peak]]
) -> CaseResult:
    profile = result.profile
    if profile is None or profile.peak is None:
        return result
    alike = products[_key(result, profile.peak, by_element=True)]
    fastest = max(alike, key=lambda peak: peak.macs_per_s or 0.0)
    moved = passes[_key(result, profile.peak, by_element=False)]
    widest = max(moved, key=lambda peak: peak.bytes_per_s or 0.0)
    peak = replace(
        profile.peak,
        macs_per_s=fastest.macs_per_s,
        product=fastest.product,
        macs_trials_per_s=tuple(rate for peak in alike for rate in _macs_trials(peak)),
        bytes_per_s=widest.bytes_per_s,
        copy_bytes=widest.copy_bytes,
        bytes_trials_per_s=tuple(rate for peak in moved for rate in _bytes_trials(peak)),
    )
    if peak.macs_per_s is not None and peak.bytes_per_s is not None:
        peak = replace(peak, reason="")
    return replace(result, profile=replace(profile, peak=peak))


def _macs_trials(peak: Peak) -> tuple[float, ...]:
    """The measurements; of older documents the best alone is known."""
    return peak.macs_trials_per_s or ((peak.macs_per_s,) if peak.macs_per_s else ())


def _bytes_trials(peak: Peak) -> tuple[float, ...]:
    return peak.bytes_trials_per_s or ((peak.bytes_per_s,) if peak.bytes_per_s else ())
