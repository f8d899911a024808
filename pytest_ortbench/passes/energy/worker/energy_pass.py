"""The energy pass: the same case under load for seconds, with idle time before, several times.

What makes naive figures wrong is dealt with by where a window begins and ends (see
:mod:`~pytest_ortbench.passes.energy.worker.trace`), by leaving out the first second of load, and by
several trials at random moments: sensors look at a quarter of each 100 ms only on some boards, and
a load with a rhythm of its own may always show them the same quarter.
"""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pytest_ortbench.passes.energy.facts import Energy, EnergyWindow
from pytest_ortbench.passes.energy.questions import MeasureEnergy
from pytest_ortbench.passes.energy.worker.meter import Meter, NoMeter
from pytest_ortbench.passes.energy.worker.meter_choice import open_meter
from pytest_ortbench.passes.energy.worker.sampler import ThreadSampler, Trace
from pytest_ortbench.passes.energy.worker.trace import Least, Span, inferences_between, span_of
from pytest_ortbench.worker.calling import until_of
from pytest_ortbench.worker.timing import median

if TYPE_CHECKING:
    from pytest_ortbench.worker.measured import MeasuredCase

#: How often the load looks whether its window is long enough.
_LOOK_NS = 100_000_000
#: A counter that has not moved once in this time under load does not work.
_STUCK_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """How the pass is carried out; the defaults are what the concept of measurement asks for.

    Attributes:
        least: What a window needs.
        trials: Windows.
        drop_s: The beginning of each load that does not count: clocks rise, sensors lag.
        cooldown_s: Idle time before each load.
        settle_s: The beginning of the idle time that does not count.
        within_c: The idle time goes on until the device is this close to its temperature before
            the first load.
        longest_cooldown_s: But not for longer than this.
        phase_s: Loads begin at a random moment of this length: a tick of the counter.
    """

    least: Least = field(default_factory=Least)
    trials: int = 4
    drop_s: float = 1.0
    cooldown_s: float = 5.0
    settle_s: float = 2.0
    within_c: float = 2.0
    longest_cooldown_s: float = 20.0
    phase_s: float = 0.1


#: Keeps all callers busy until a function that is called after each inference, with the number of
#: its caller, says that it is enough; see :func:`~pytest_ortbench.worker.calling.until_of`.
RunUntil = Callable[[Callable[[int], bool]], object]


def measure_energy(question: MeasureEnergy, measured: MeasuredCase) -> Energy:
    """Put the session under load and read the device's meter meanwhile."""
    measured.enter("energy")
    case = measured.case
    try:
        meter = open_meter(case.provider)
    except NoMeter as error:
        return Energy(reason=str(error))
    others = measured.device.neighbours()
    if others:
        whose = f"{others} other processes" if others > 1 else "another process"
        return Energy(
            reason=f"{whose} used the device too, so the energy of the case can't be separated"
        )
    procedure = Procedure(least=Least(seconds=case.sampling.energy_window_s))
    load = until_of(measured.live_loop())
    energy_pass = EnergyPass(meter, load, callers=case.callers, procedure=procedure)
    return energy_pass.run(question.budget_s)


class Sampler(Protocol):
    """Reads a meter meanwhile."""

    def start(self) -> Trace:
        """Begin to read, and return the trace, which fills up meanwhile."""

    def stop(self) -> None:
        """End the reading."""


class EnergyPass:
    """Measures the energy of one load on one device.

    Args:
        meter: Reads the device.
        load: Runs inferences, all callers at a time.
        callers: How many they are.
        procedure: How it is carried out.
        clock: Nanoseconds; a test sets its own time.
        sleep: Waits for seconds.
        sampler: Reads the meter meanwhile.
        seed: Of the random moments; ``None`` for other ones each time.
    """

    def __init__(
        self,
        meter: Meter,
        load: RunUntil,
        *,
        callers: int = 1,
        procedure: Procedure | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
        sleep: Callable[[float], object] = time.sleep,
        sampler: Sampler | None = None,
        seed: int | None = None,
    ) -> None:
        self._meter = meter
        self._run_load = load
        self._callers = callers
        self._procedure = procedure or Procedure()
        self._clock = clock
        self._sleep = sleep
        self._sampler = sampler or ThreadSampler(meter, clock)
        self._random = random.Random(seed)
        self._first_c: float | None = None

    def run(self, budget_s: float) -> Energy:
        """Carry out the trials, as many as fit.

        Args:
            budget_s: Seconds that everything may take together.
        """
        procedure = self._procedure
        end_ns = self._clock() + int(budget_s * 1e9)
        windows: list[EnergyWindow] = []
        notes = [self._meter.note] if self._meter.note else []
        longest_s = 0.0
        for _ in range(procedure.trials):
            began_ns = self._clock()
            if windows and began_ns + longest_s * 1e9 > end_ns:
                notes.append(
                    f"{len(windows)} of {procedure.trials} trials were possible within "
                    "the time limit"
                )
                break
            idle_w, start_c = self._idle()
            window = self._load(end_ns, idle_w, start_c)
            if isinstance(window, str):
                if not windows:
                    return Energy(reason=window)
                notes.append(f"{len(windows)} of {procedure.trials} trials: {window}")
                break
            windows.append(window)
            longest_s = max(longest_s, (self._clock() - began_ns) * 1e-9)
        return Energy(windows=tuple(windows), note="; ".join(notes))

    def _idle(self) -> tuple[float | None, float | None]:
        """Let the device cool down; return its idle power and its temperature at the end."""
        procedure = self._procedure
        began = self._clock()
        trace = self._sampler.start()
        self._sleep(procedure.cooldown_s)
        while self._is_hot() and self._clock() - began < procedure.longest_cooldown_s * 1e9:
            self._sleep(1.0)
        self._sampler.stop()
        # A long cooldown is not all idle: the device's own fans and clocks settle first.
        from_ns = max(
            began + int(procedure.settle_s * 1e9),
            self._clock() - int(procedure.cooldown_s * 1e9),
        )
        span = span_of(trace.readings, from_ns=from_ns, to_ns=self._clock())
        temperature = self._meter.state().temperature_c
        if self._first_c is None:
            self._first_c = temperature
        return _power(span), temperature

    def _is_hot(self) -> bool:
        now = self._meter.state().temperature_c
        return (
            now is not None
            and self._first_c is not None
            and now > self._first_c + self._procedure.within_c
        )

    def _load(self, end_ns: int, idle_w: float | None, start_c: float | None) -> EnergyWindow | str:
        """One trial, or why there is no window."""
        procedure, clock = self._procedure, self._clock
        self._sleep(self._random.uniform(0.0, procedure.phase_s))
        trace = self._sampler.start()
        ran = _Ran(began_ns=clock(), ends_ns=[array("q") for _ in range(self._callers)])
        settled = ran.began_ns + int(procedure.drop_s * 1e9)
        look = settled + int(procedure.least.seconds * 1e9)

        def over(caller: int) -> bool:
            nonlocal look
            now = clock()
            ran.ends_ns[caller].append(now)
            # The others end what they are in, so that it counts in part.
            if ran.over:
                return True
            if now < look and now < end_ns:
                return False
            look = now + _LOOK_NS
            span = self._span(trace, settled, now)
            if span is not None and procedure.least.met_by(span, ran.inferences(span)):
                ran.span = span
            ran.over = ran.span is not None or now >= end_ns
            return ran.over

        try:
            self._run_load(over)
        finally:
            self._sampler.stop()
        if ran.span is None:
            return self._too_short(sum(map(len, ran.ends_ns)), (clock() - ran.began_ns) * 1e-9)
        return self._window(trace, ran.span, ran.inferences(ran.span), idle_w, start_c)

    def _span(self, trace: Trace, from_ns: int, now: int) -> Span | None:
        """The window so far; one without a counter only where there is none, or it is stuck."""
        span = span_of(trace.readings, from_ns=from_ns, to_ns=now)
        if span is None or span.counter_j is not None:
            return span
        has_counter = trace.readings[-1].energy_j is not None
        if has_counter and now - from_ns < _STUCK_S * 1e9:
            return None
        return span if span.integral_j is not None else None

    def _too_short(self, inferences: int, seconds: float) -> str:
        least = self._procedure.least
        return (
            f"the window was too short: it had {inferences} inferences in {seconds:.1f} s and "
            f"needs {least.seconds:g} s, {least.ticks} ticks of the counter and "
            f"{least.inferences:g} inferences after the first second (raise --ort-timeout)"
        )

    def _window(
        self,
        trace: Trace,
        span: Span,
        inferences: float,
        idle_w: float | None,
        start_c: float | None,
    ) -> EnergyWindow:
        inside = [s for at, s in trace.states if span.start_ns <= at <= span.end_ns]
        clocks = [state.clock_mhz for state in inside if state.clock_mhz is not None]
        hot = [s.temperature_c for _, s in trace.states if s.temperature_c is not None]
        limits = [s.power_limit_w for _, s in trace.states if s.power_limit_w is not None]
        energy_j = span.integral_j if span.counter_j is None else span.counter_j
        assert energy_j is not None
        from_counter = span.counter_j is not None
        return EnergyWindow(
            source=self._meter.source if from_counter else self._meter.power_source,
            device=self._meter.device,
            duration_ns=span.duration_ns,
            inferences=inferences,
            energy_j=energy_j,
            idle_w=idle_w,
            counter_j=span.counter_j,
            integral_j=span.integral_j,
            ticks=span.ticks if from_counter else None,
            power_limit_w=median(limits) if limits else None,
            temperature_c=start_c,
            hottest_c=max(hot, default=None),
            clock_mhz=(min(clocks), max(clocks)) if clocks else None,
            throttled=tuple(dict.fromkeys(name for state in inside for name in state.throttled)),
        )


@dataclass(slots=True, kw_only=True)
class _Ran:
    """What was run in one trial: when each inference of each caller ended, and the window."""

    began_ns: int
    ends_ns: list[array[int]]
    span: Span | None = None
    over: bool = False

    def inferences(self, span: Span) -> float:
        """Count the inferences in a window; while the callers run, without those in flight."""
        start, end = span.start_ns, span.end_ns
        return sum(
            inferences_between(ends, began_ns=self.began_ns, start_ns=start, end_ns=end)
            for ends in self.ends_ns
        )


def _power(span: Span | None) -> float | None:
    if span is None:
        return None
    energy = span.counter_j if span.counter_j is not None else span.integral_j
    return None if energy is None else energy / (span.duration_ns * 1e-9)
