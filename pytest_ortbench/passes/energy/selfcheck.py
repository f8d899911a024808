"""Lines of a self-check on energy: counter against power under load, and what slows the device."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from statistics import median

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.provider_kinds import NVIDIA
from pytest_ortbench.passes.energy.declaration import PASS
from pytest_ortbench.passes.energy.facts import Energy, EnergyWindow, MeterTicks
from pytest_ortbench.passes.energy.numbers import CLOCK_SHARE, ENERGY_SHARE, SLOWDOWNS
from pytest_ortbench.passes.energy.questions import MeasureEnergy, PollMeter
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from pytest_ortbench.schema.case_questions import WarmUpFor
from pytest_ortbench.selfcheck.check import Check, CheckBench, LineFinding, passed, unchecked, wrong
from pytest_ortbench.selfcheck.facts import SeenClocks
from pytest_ortbench.selfcheck.questions import WatchClocks

#: Power under load must be so many times that of the idle device, or another device is read.
_RISE = 1.05
#: Two windows of five seconds, each with its cooldown, and time to spare.
_BUDGET_S, _POLL_S = 60.0, 1.5
#: Share of the time that a quota may hold a process back before its clocks mean nothing.
_THROTTLED_SHARE = 0.02
_LOAD_S, _SHORT_LOAD_S = 3.0, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metered:
    """Energy under load, and how the meter behaves."""

    energy: Energy
    ticks: MeterTicks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clocked:
    """What a load showed of the clocks: of the device, or of the CPUs."""

    metered: _Metered | None = None
    clocks: SeenClocks | None = None


def _energy(bench: CheckBench) -> _Metered:
    case = bench.heavy()
    deadline = time.monotonic() + _BUDGET_S + case.sampling.timeout_s
    with closing(bench.launcher.open(case, worker=0, deadline=deadline)) as worker:
        reason = worker.opened.impossible.get(PASS.name)
        if reason:
            return _Metered(energy=Energy(reason=reason), ticks=MeterTicks(reason=reason))
        ticks = worker.ask(PollMeter(seconds=_POLL_S))
        worker.ask(WarmUpFor(budget_s=warm_up_budget_s(case)))
        return _Metered(energy=worker.ask(MeasureEnergy(budget_s=_BUDGET_S)), ticks=ticks)


def _look_at_energy(bench: CheckBench) -> _Metered:
    return bench.once(PASS.name, lambda: _energy(bench))


def _look_at_clocks(bench: CheckBench) -> _Clocked:
    if bench.provider.name in NVIDIA:
        return _Clocked(metered=_look_at_energy(bench))
    load_s = _SHORT_LOAD_S if bench.short else _LOAD_S
    with bench.opened(bench.heavy()) as worker:
        return _Clocked(clocks=worker.ask(WatchClocks(load_s=load_s)))


def _judge_energy(facts: _Metered, provider: Provider) -> LineFinding:
    del provider
    windows = [window for window in facts.energy.windows if window.duration_ns > 0]
    if not windows:
        return unchecked("no meter", facts.energy.reason or "no window was measured")
    seconds = sum(window.duration_ns for window in windows) * 1e-9
    load_w = sum(window.energy_j for window in windows) / seconds
    idle = [window.idle_w for window in windows if window.idle_w is not None]
    amounts = [
        Amount(name="windows", value=float(len(windows))),
        Amount(name="under load", value=load_w, unit="W"),
        *(Amount(name=name, value=value, unit="s") for name, value in _behaviour(facts.ticks)),
    ]
    words = {"device": windows[0].device, "by": windows[0].source}
    if idle:
        amounts.append(Amount(name="idle", value=median(idle), unit="W"))
        if load_w < _RISE * median(idle):
            return wrong(
                "no rise",
                "power does not rise under load: another device is read",
                *amounts,
                **words,
            )
    both = [
        (window.counter_j, window.integral_j)
        for window in windows
        if window.counter_j is not None and window.integral_j is not None
    ]
    if not both:
        lacking = facts.energy.note or "there is no second meter to hold the first against"
        return unchecked("one meter", lacking, *amounts, **words)
    counter_j = sum(counter for counter, _ in both)
    integral_j = sum(integral for _, integral in both)
    if counter_j <= 0 or integral_j <= 0:
        return wrong("stuck", "a meter shows no energy under load", *amounts, **words)
    amounts += [
        Amount(name="counter", value=counter_j, unit="J"),
        Amount(name="integrated power", value=integral_j, unit="J"),
        Amount(name="counter to power", value=counter_j / integral_j),
    ]
    if abs(counter_j - integral_j) > ENERGY_SHARE * max(counter_j, integral_j):
        return wrong("disagrees", "counter and integrated power differ", *amounts, **words)
    return passed("agrees", "counter and integrated power agree", *amounts, **words)


def _behaviour(ticks: MeterTicks) -> list[tuple[str, float]]:
    """How often the counter moves and the power changes, as far as they do."""
    told = [("a reading takes", ticks.reading_ns)] if ticks.reading_ns else []
    told += [("counter moves every", round(median(ticks.tick_ns)))] if ticks.tick_ns else []
    told += [("power changes every", round(median(ticks.step_ns)))] if ticks.step_ns else []
    return [(name, value * 1e-9) for name, value in told]


def _judge_clocks(facts: _Clocked, provider: Provider) -> LineFinding:
    del provider
    if facts.metered is not None:
        return _judge_device(facts.metered.energy)
    if facts.clocks is not None:
        return _judge_cpus(facts.clocks)
    return unchecked("not read", "no clock was read")


def _judge_device(energy: Energy) -> LineFinding:
    windows: tuple[EnergyWindow, ...] = energy.windows
    if not windows:
        return unchecked("not read", energy.reason or "no window was measured")
    clocks = [window.clock_mhz for window in windows if window.clock_mhz is not None]
    reasons = tuple(dict.fromkeys(name for window in windows for name in window.throttled))
    words = {"held back by": ", ".join(reasons)} if reasons else {}
    amounts = _ends([clock for pair in clocks for clock in pair])
    hottest = [window.hottest_c for window in windows if window.hottest_c is not None]
    limits = [window.power_limit_w for window in windows if window.power_limit_w is not None]
    if limits:
        amounts = (*amounts, Amount(name="power limit", value=min(limits), unit="W"))
    if hottest:
        amounts = (*amounts, Amount(name="hottest", value=max(hottest), unit="°C"))
    if any(name in SLOWDOWNS for name in reasons):
        return wrong("held back", "the device slowed down under load", *amounts, **words)
    if not clocks:
        return unchecked("not read", "the clock of the device was not read", *amounts, **words)
    return _steady(amounts, words)


def _judge_cpus(seen: SeenClocks) -> LineFinding:
    amounts = _ends(seen.clocks_mhz)
    if seen.throttled_ns is not None and seen.wall_ns:
        share = seen.throttled_ns / seen.wall_ns
        amounts = (*amounts, Amount(name="held back by a quota", value=share, unit="ratio"))
        if share > _THROTTLED_SHARE:
            return wrong("quota", "a quota held the process back under load", *amounts)
    if seen.steal_ticks is not None and seen.total_ticks:
        share = seen.steal_ticks / seen.total_ticks
        amounts = (*amounts, Amount(name="taken by the hypervisor", value=share, unit="ratio"))
    if not seen.clocks_mhz:
        return unchecked("not read", "the kernel does not tell the clocks of the CPUs", *amounts)
    return _steady(amounts, {})


def _ends(clocks: tuple[float, ...] | list[float]) -> tuple[Amount, ...]:
    if not clocks:
        return ()
    low, high = min(clocks), max(clocks)
    middle = float(median(clocks))
    return (Amount(name="clock", value=middle, unit="MHz", low=low, high=high),)


def _steady(amounts: tuple[Amount, ...], words: dict[str, str]) -> LineFinding:
    clock = amounts[0]
    low, high = clock.low or 0.0, clock.high or 0.0
    if low <= 0 or high > low * (1 + CLOCK_SHARE):
        return wrong("moved", "the clock moved by more than 5 % under load", *amounts, **words)
    return passed("steady", "the clock stayed where it was under load", *amounts, **words)


CHECKS = (
    Check(
        name="energy",
        about="the energy counter against integrated power",
        look=_look_at_energy,
        judge=_judge_energy,
        in_short=False,
    ),
    Check(
        name="clocks",
        about="clocks and what held them back",
        look=_look_at_clocks,
        judge=_judge_clocks,
    ),
)
