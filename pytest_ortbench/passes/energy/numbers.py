"""Power and energy of a case, and reasons to trust them less, from its windows."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.analysis.between_processes import OfProcess, over_processes
from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.passes.energy.declaration import PASS
from pytest_ortbench.passes.energy.facts import EnergyWindow

#: ``ENERGY-DISAGREE``, ``CLOCK``: see the flags of the pass.
ENERGY_SHARE = 0.10
CLOCK_SHARE = 0.05

#: Why a device holds its clocks back that are no normal part of its work at full power.
SLOWDOWNS = ("hardware slowdown", "thermal", "hardware thermal", "power brake")


def add_energy(collector: Collector, result: CaseResult) -> None:
    """Add totals over all windows, with intervals: each window is a trial of its own."""
    energy = result.energy
    windows = [window for window in energy.windows if window.duration_ns > 0] if energy else []
    if not windows:
        reason = "no energy pass was requested" if energy is None else energy.reason
        collector.reject(PASS.metric_names, reason or "no window was measured")
        return
    seconds = [window.duration_ns * 1e-9 for window in windows]
    inferences = [window.inferences for window in windows]
    gross = [window.energy_j for window in windows]
    net = [window.net_j for window in windows]
    idle = [window.idle_w for window in windows]
    _add_rate(collector, "power", gross, seconds)
    _add_rate(collector, "energy_per_inference", gross, inferences)
    asked = result.case.generation
    if asked is None:
        collector.reject(("energy_per_token",), "single inferences were measured, not requests")
    else:
        tokens = [count * asked.new_tokens * result.case.batch for count in inferences]
        _add_rate(collector, "energy_per_token", gross, tokens)
    for name, values, per in (
        ("idle_power", idle, [1.0] * len(windows)),
        ("energy_net_per_inference", net, inferences),
    ):
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            collector.add(name, None, reason="the idle power could not be read")
        else:
            _add_rate(collector, name, known, per)


def _add_rate(
    collector: Collector, name: str, amounts: Sequence[float], per: Sequence[float]
) -> None:
    """The sum of ``amounts`` over that of ``per``, with an interval from the single ratios."""
    if not sum(per):
        collector.add(name, None, reason="the windows hold no inference")
        return
    value = sum(amounts) / sum(per)
    ratios = [amount / share for amount, share in zip(amounts, per, strict=True) if share]
    low: float | None = None
    high: float | None = None
    if len(ratios) > 1:
        # Of four windows the range alone would hold the middle in 87.5 %.
        own = [OfProcess.alone(ratio) for ratio in ratios]
        low, high = over_processes(own, (value, value), least=0.0)
    collector.add(name, value, low=low, high=high, samples=len(amounts))


def _windows(result: CaseResult) -> tuple[EnergyWindow, ...]:
    return result.energy.windows if result.energy else ()


def slowed_down(result: CaseResult) -> str:
    """Say why the device held its clocks back under load."""
    reasons = dict.fromkeys(name for window in _windows(result) for name in window.throttled)
    slow = [name for name in reasons if name in SLOWDOWNS]
    return f"the device under load: {', '.join(slow)}" if slow else ""


def meters_disagree(result: CaseResult) -> str:
    """Compare counter and integrated power over all windows: single ones differ by their phase."""
    checked = [
        (window.counter_j, window.integral_j)
        for window in _windows(result)
        if window.counter_j is not None and window.integral_j is not None
    ]
    counter_j = sum(counter for counter, _ in checked)
    integral_j = sum(integral for _, integral in checked)
    larger = max(counter_j, integral_j)
    if larger <= 0 or abs(counter_j - integral_j) <= ENERGY_SHARE * larger:
        return ""
    return (
        f"counter {format_amount(counter_j, 'J')}, "
        f"integrated power {format_amount(integral_j, 'J')}"
    )


def clock_changed(result: CaseResult) -> str:
    """Say which clocks the device had while its energy was measured; nobody reads the CPU's."""
    clocks = [window.clock_mhz for window in _windows(result) if window.clock_mhz is not None]
    if not clocks:
        return ""
    low, high = min(low for low, _ in clocks), max(high for _, high in clocks)
    if low <= 0 or high <= low * (1 + CLOCK_SHARE):
        return ""
    return f"{low:g} to {high:g} MHz on the device"
