"""How long the cases of a run will take, told before the first of them is measured."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.units import counted
from pytest_ortbench.gate.numbers.contrasts import LAUNCH_S
from pytest_ortbench.gate.numbers.looks import SHARED_FLOOR
from pytest_ortbench.planning.compilations import COMPILED_FOLDER, compilation_key
from pytest_ortbench.planning.estimate import (
    START_S,
    Costs,
    Expected,
    compilation_takes_s,
    conversion_takes_s,
)
from pytest_ortbench.plugin.countdown import Countdown
from pytest_ortbench.store.earlier_results import earlier_results

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case, Key
    from pytest_ortbench.planning.matrix import Planned
    from pytest_ortbench.plugin.bench import Bench

#: Nobody waits longer for one run, and a value too many on an axis makes such a run.
_MOST_S = 24 * 3600.0

#: So long a loop computes to see how long it waits for a CPU: several turns of a scheduler.
_LOOP_S = 0.04

#: From here on a time is said in whole minutes.
_WHOLE_MINUTES_S = 295.0

#: Share of the seconds beyond the earliest end of workers that they time on an idle machine, where
#: nothing is known of the model: some medians are known early there. Beside other work few are.
_UNSETTLED_ALONE = 0.6

#: What comes behind the last case: the canary, which is a start of a process, its warm-up and what
#: is timed; and figures.
_STARTS_OF_CANARY, _CPU_SECONDS_OF_CANARY, _CPU_SECONDS_OF_FIGURES = 1.0, 0.6, 1.2


def costs_of(bench: Bench) -> Costs:
    """Return what parts of cases take here, as far as starts and earlier runs say it."""
    # Half way to what is usual beside this load: one start in a busy or a quiet moment says little
    # of the others.
    usual_s = START_S * load_factor()
    seen = bench.session.launcher.start_s
    costs = Costs(
        start_s={label: math.sqrt(usual_s * each_s) for label, each_s in seen.items()},
        usual_start_s=usual_s,
    )
    if _is_stored(bench):
        for result in earlier_results(bench.options.results, bench.machine):
            costs.learn(result)
    return costs


def end_takes_s(bench: Bench, budget_s: float | None = None) -> float:
    """Return about how long that takes which comes behind the last case.

    Args:
        bench: The run.
        budget_s: Time of the whole run, of which canary and figures have a tenth each at most.
    """
    most_s = math.inf if budget_s is None else budget_s / 10
    return min(canary_takes_s(bench), most_s) + min(figures_take_s(bench), most_s)


def canary_takes_s(bench: Bench) -> float:
    """Return about how long the pinned model takes that is measured along with a stored run."""
    if not _is_stored(bench):
        return 0.0
    start_s = bench.session.launcher.start_s.get("current", START_S)
    return _STARTS_OF_CANARY * start_s + _CPU_SECONDS_OF_CANARY * load_factor()


def figures_take_s(bench: Bench) -> float:
    """Return about how long the figures of a run take, drawn beside all that the machine does."""
    options = bench.options
    times = int(options.html is not None) + int(_is_stored(bench) or options.plots is not None)
    return times * _CPU_SECONDS_OF_FIGURES * load_factor()


def load_factor() -> float:
    """Return how many times as long as alone a process takes beside the load of this machine.

    A short loop tells, since the load average tells of the last minute, and counts processes of a
    lower priority, which slow down nothing.
    """
    began_s, computed_s = time.monotonic(), time.thread_time()
    until_s = computed_s + _LOOP_S
    while (now_s := time.thread_time()) < until_s:
        pass
    return max(1.0, (time.monotonic() - began_s) / (now_s - computed_s))


def unsettled_share(load: float) -> float:
    """Return the share of the seconds that workers time after their earliest end.

    Args:
        load: How many times as long as alone a process takes.
    """
    return min(1.0, _UNSETTLED_ALONE + load - 1.0)


def _is_stored(bench: Bench) -> bool:
    return not bench.options.no_results and not bench.config.option.collectonly


def countdown_of(bench: Bench) -> Countdown:
    """Return the countdown of a run whose cases are known."""
    costs, end_s = costs_of(bench), end_takes_s(bench)
    costs.unsettled_share = unsettled_share(load_factor())
    cases = to_measure(bench)
    besides_s = making_takes_s(bench, costs)
    if bench.options.against:
        for case in cases:
            gated_s = launches_take_s(costs.expected(case))
            besides_s[case.key] = besides_s.get(case.key, 0.0) + gated_s
    return Countdown(
        costs,
        [(case, bench.passes.get(case.key, ())) for case in cases],
        besides_s=besides_s,
        end_s=end_s,
    )


def making_takes_s(bench: Bench, costs: Costs) -> dict[Key, float]:
    """Return about how long files take that are made first, by the first case that needs each.

    They are those of precisions and those that a provider compiles ahead; what the user's cache
    keeps takes no time.
    """
    takes_s: dict[Key, float] = {}
    made: set[object] = set()
    for case in to_measure(bench):
        for file, seconds in _made_for(bench, bench.planned[case.key], costs):
            if file not in made:
                made.add(file)
                takes_s[case.key] = takes_s.get(case.key, 0.0) + seconds
    return takes_s


def _made_for(bench: Bench, planned: Planned, costs: Costs) -> Iterator[tuple[object, float]]:
    """Yield the files that a case needs and that are not there, each with what making it takes."""
    case, conversion, session = planned.case, planned.conversion, bench.session
    is_converted = conversion is not None and not session.variants.keeps(conversion)
    if conversion is not None and is_converted:
        yield conversion, conversion_takes_s(case, costs)
    if case.compiled:
        file: object = (conversion, case.provider, case.session, case.runtime.label)
        if conversion is None:
            # The compiled file of a variant is named by what the variant holds, which is not known.
            file = compilation_key(case, session.launcher.inspect(case.runtime))
            folder = session.variants.folder.with_name(COMPILED_FOLDER) / file
            if folder.is_dir():
                return
        yield (case.variant.path, file), compilation_takes_s(case, costs)


def launches_take_s(expected: Expected) -> float:
    """Return about how long the first look of a gate takes, where both sides are as expected."""
    return SHARED_FLOOR.looks[0].launches * (2 * expected.worker_s + LAUNCH_S)


def time_words(seconds: float) -> str:
    """Return a time as people would say it: ``25 s``, ``1 min 40 s``, ``8 min``, ``2 h``."""
    if seconds < 90:
        # Five seconds are an eighth of the shortest time that is told in steps of them.
        return f"{max(1, round(seconds))} s" if seconds < 40 else f"{5 * round(seconds / 5)} s"
    if seconds < _WHOLE_MINUTES_S:
        # A whole minute is a third of such a time.
        minutes, rest = divmod(10 * round(seconds / 10), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{round(seconds / 3600):,} h"


def refuse_endless(bench: Bench) -> None:
    """Refuse a run that takes more than a day.

    Raises:
        UsageError: with how long it would take.
    """
    cases = to_measure(bench)
    expected_s = Costs().total_s((case, bench.passes.get(case.key, ())) for case in cases)
    if expected_s > _MOST_S:
        raise UsageError(
            f"{counted(len(cases), 'case')} would take about {time_words(expected_s)}, but a run "
            f"may take at most {_MOST_S / 3600:g} h",
            place="the requested cases",
            hint="Request fewer models, providers, precisions or sizes, or lower --ort-time or "
            "--ort-workers",
        )


def to_measure(bench: Bench) -> list[Case]:
    """Return the cases that are neither refused nor taken from an interrupted run."""
    taken = bench.resumable.results if bench.resumable is not None else {}
    return [
        planned.case
        for key, planned in bench.planned.items()
        if planned.refusal is None and key not in taken
    ]
