"""What suspending the other side is worth: the spread of an A/A contrast with it and without.

    python benchmarks/gate_spread.py [--minutes 5] [--model builtin:mobilenet_v2] [--threads 2]

Launches of one model against itself, as the gate makes them, in pairs of which one suspends the
side that waits and the other leaves it alone, as an idle process with its threads; which comes
first is drawn. Prints for both statistics and both ways the standard deviation of the launches and
the robust one (1.4826 median absolute contrasts: equal sides have no other centre than 0), each
with a 95 % bootstrap interval, and the ratio without ÷ with. ``--keep FILE`` writes the raw facts
of every launch. Interrupted, it prints what it has.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from paired_cases import Bench, bench, bootstrap

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.gate import PairedLaunch
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.measuring.paired import measure_launch
from pytest_ortbench.gate.numbers.contrasts import contrasts_of

if TYPE_CHECKING:
    from pytest_ortbench.launch.launcher import Launcher, Worker

SUSPENDED, AWAKE = "suspended", "awake"
#: Fewer launches than this give no interval worth printing.
_FEWEST = 4


class _AwakeWorker:
    """A worker that goes on as it likes while it waits for its turn."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)

    def pause(self) -> None:
        """Leave it alone."""

    def resume(self) -> None:
        """Leave it alone."""


class _AwakeLauncher:
    """Starts workers that are never suspended."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)

    def open(self, case: Case, *, worker: int, deadline: float | None) -> _AwakeWorker:
        """Start one."""
        return _AwakeWorker(self._launcher.open(case, worker=worker, deadline=deadline))


def main() -> int:
    """Measure until the time is over and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--tries", type=int, default=1000, help="pairs of launches at most")
    parser.add_argument("--model", default="builtin:mobilenet_v2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="add the raw facts of every launch here")
    args = parser.parse_args()
    made: dict[str, list[PairedLaunch]] = {SUSPENDED: [], AWAKE: []}
    until = time.monotonic() + 60 * args.minutes
    loads: list[float] = []
    with bench([args.model], args.threads) as ready:
        try:
            for index in itertools.count():
                if time.monotonic() >= until or index == args.tries:
                    break
                loads.append(os.getloadavg()[0])
                _make_two(ready, index, made, args.keep)
        except KeyboardInterrupt:
            print("stopped; this is what was measured")
    return _report(made, args.model, args.threads, loads)


def _make_two(
    ready: Bench, index: int, made: dict[str, list[PairedLaunch]], keep: Path | None
) -> None:
    """One launch each way, of which both count or none."""
    launchers = {SUSPENDED: ready.launcher, AWAKE: _AwakeLauncher(ready.launcher)}
    order = [SUSPENDED, AWAKE]
    random.Random(index).shuffle(order)
    case = ready.cases[0]
    two = {}
    for way in order:
        two[way] = measure_launch(
            Pair(baseline=case, contender=case),
            launchers[way],
            seed=random.Random(f"{index} {way}").getrandbits(31),
            index=index,
            deadline=time.monotonic() + 300,
        ).launch
    for way, launch in two.items():
        made[way].append(launch)
        if keep is not None:
            with keep.open("ab") as file:
                file.write(msgspec.json.encode({"way": way, "launch": launch}) + b"\n")


def _report(
    made: dict[str, list[PairedLaunch]], model: str, threads: int, loads: Sequence[float]
) -> int:
    count = len(made[AWAKE])
    if count < _FEWEST:
        print(f"only {count} launches each way: no spread")
        return 2
    fastest_ms = min(min(launch.baseline_min_ns) for launch in made[SUSPENDED]) / 1e6
    print(
        f"{model}, {threads} threads, fastest inference {fastest_ms:.2f} ms, {count} launches "
        f"each way, load average {min(loads):.1f} to {max(loads):.1f} (median "
        f"{statistics.median(loads):.1f})"
    )
    head = ("contrast", "spread", "suspended", "awake", "awake ÷ suspended")
    print(f"{head[0]:9}{head[1]:10}{head[2]:>26}{head[3]:>26}{head[4]:>24}")
    for statistic in ("floor", "typical"):
        values = {
            way: [getattr(contrasts_of(launch), statistic) for launch in launches]
            for way, launches in made.items()
        }
        for name, spread in (("standard", _standard), ("robust", _robust)):
            cells = [_cell(values[way], spread) for way in (SUSPENDED, AWAKE)]
            ratio = _ratio(values[SUSPENDED], values[AWAKE], spread)
            print(f"{statistic:9}{name:10}{cells[0]:>26}{cells[1]:>26}{ratio:>24}")
    return 0


def _standard(values: Sequence[float]) -> float:
    """About zero: that of equal sides is known."""
    return math.sqrt(statistics.fmean(value * value for value in values))


def _robust(values: Sequence[float]) -> float:
    return 1.4826 * statistics.median(abs(value) for value in values)


def _cell(values: Sequence[float], spread: Callable[[Sequence[float]], float]) -> str:
    low, high = bootstrap(lambda draw: spread(draw.choices(values, k=len(values))))
    return f"{100 * spread(values):.2f} % [{100 * low:.2f}, {100 * high:.2f}]"


def _ratio(
    one: Sequence[float], other: Sequence[float], spread: Callable[[Sequence[float]], float]
) -> str:
    """Both ways of a pair are drawn together: they met the same minute."""

    def resampled(draw: random.Random) -> float:
        chosen = draw.choices(range(len(one)), k=len(one))
        return spread([other[at] for at in chosen]) / spread([one[at] for at in chosen])

    low, high = bootstrap(resampled)
    return f"{spread(other) / spread(one):.2f} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    raise SystemExit(main())
