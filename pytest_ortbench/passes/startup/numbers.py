"""The numbers of the start-up pass: trials under one condition together, never mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from pytest_ortbench.analysis.between_processes import OfProcess, over_processes
from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.startup.declaration import PASS
from pytest_ortbench.passes.startup.facts import StartTrial, StartUps


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCondition:
    """Trials that started alike.

    Attributes:
        page_cache: ``cold`` or ``warm``.
        engines: State of the provider's own cache: ``none``, ``cold`` or ``warm``.
        trials: At least one.
    """

    page_cache: str
    engines: str
    trials: tuple[StartTrial, ...]

    def spread(self, value_of: Callable[[StartTrial], int]) -> tuple[float, float, float]:
        """Return the median, the smallest and the largest of the trials, in seconds."""
        values = [value_of(trial) * 1e-9 for trial in self.trials]
        return median(values), min(values), max(values)


def conditions(start_ups: StartUps) -> tuple[StartCondition, ...]:
    """Return the conditions that were reached, cold before warm."""
    groups: dict[tuple[str, str], list[StartTrial]] = {}
    for trial in start_ups.trials:
        if not trial.reason:
            groups.setdefault((trial.page_cache, trial.engines), []).append(trial)
    return tuple(
        StartCondition(
            page_cache=page_cache, engines=engines, trials=tuple(groups[page_cache, engines])
        )
        for page_cache, engines in sorted(groups)
    )


def shape_times(start_ups: StartUps) -> dict[str, tuple[float, float, int]]:
    """Medians of the first inference of each further shape and of those after it, and of how many.

    Over all trials, since neither files nor engines matter once the session runs.
    """
    times_ns: dict[str, list[tuple[int, int]]] = {}
    for trial in start_ups.trials:
        for shape in trial.shapes:
            if not shape.reason:
                times_ns.setdefault(shape.label, []).append((shape.first_ns, shape.again_ns))
    return {
        label: (
            median(first for first, _ in pairs) * 1e-9,
            median(again for _, again in pairs) * 1e-9,
            len(pairs),
        )
        for label, pairs in times_ns.items()
    }


def add_start_ups(collector: Collector, result: CaseResult) -> None:
    """Add the medians of the pass, each from the trials of its own condition."""
    start_ups = result.start_ups
    if start_ups is None or not start_ups.trials:
        reason = "no start-up pass was requested" if start_ups is None else start_ups.reason
        collector.reject(PASS.metric_names, reason or "no process started")
        return
    _add_create(collector, "session_create_disk", "cold", start_ups)
    _add_create(collector, "session_create_cached", "warm", start_ups)
    shapes = shape_times(start_ups)
    if not shapes:
        reason = "the plan has no further shape of this model, or none of them ran"
        collector.add("first_inference_shape", None, reason=reason)
        return
    slowest = max(shapes.values())
    collector.add("first_inference_shape", slowest[0], samples=slowest[2])


def _add_create(collector: Collector, name: str, page_cache: str, start_ups: StartUps) -> None:
    # Engines that were built before are another condition, which session_create_warm is about.
    fitting: Sequence[StartCondition] = [
        condition
        for condition in conditions(start_ups)
        if condition.page_cache == page_cache and condition.engines != "warm"
    ]
    if not fitting:
        reasons = [t.reason for t in start_ups.trials if t.page_cache == page_cache and t.reason]
        collector.add(
            name, None, reason=reasons[0] if reasons else "no process was started in this way"
        )
        return
    times = [trial.create_ns * 1e-9 for group in fitting for trial in group.trials]
    low: float | None = None
    high: float | None = None
    if len(times) > 1:
        low, high = over_processes([OfProcess.alone(time) for time in times])
    collector.add(name, median(times), low=low, high=high, samples=len(times))
