"""Power and energy of a case, from the windows of its energy pass."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.analysis.between_processes import OfProcess, over_processes
from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.energy import PASS


def add_energy(collector: Collector, result: CaseResult) -> None:
    """Totals over all windows; an interval over the windows, each a trial of its own."""
    energy = result.energy
    windows = [window for window in energy.windows if window.duration_ns > 0] if energy else []
    if not windows:
        reason = "no energy pass was asked for" if energy is None else energy.reason
        collector.reject(PASS.metric_names, reason or "no window was measured")
        return
    seconds = [window.duration_ns * 1e-9 for window in windows]
    inferences = [window.inferences for window in windows]
    gross = [window.energy_j for window in windows]
    net = [window.net_j for window in windows]
    idle = [window.idle_w for window in windows]
    _add_rate(collector, "power", gross, seconds)
    _add_rate(collector, "energy_per_inference", gross, inferences)
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
        collector.add(name, None, reason="no inference in the windows")
        return
    value = sum(amounts) / sum(per)
    each = [amount / share for amount, share in zip(amounts, per, strict=True) if share]
    low: float | None = None
    high: float | None = None
    if len(each) > 1:
        # Of four windows the range alone would hold the middle in 87.5 %.
        own = [OfProcess.alone(one) for one in each]
        low, high = over_processes(own, (value, value), least=0.0)
    collector.add(name, value, low=low, high=high, samples=len(amounts))
