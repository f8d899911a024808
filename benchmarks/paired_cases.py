"""What benchmarks of gate and yardstick start from: models as cases, on so many threads."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.launch.launcher import Launcher, ProcessLauncher
from pytest_ortbench.planning.planner import Planner
from pytest_ortbench.planning.request import PlanRequest

#: Resamples of a bootstrap interval.
_RESAMPLES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A launcher, the prepared cases, and a folder for whatever has to be written."""

    launcher: Launcher
    cases: tuple[Case, ...]
    folder: Path


@contextmanager
def bench(models: Sequence[str], *threads: int) -> Iterator[Bench]:
    """Resolve the models and, in the end, leave no process behind.

    Raises:
        SystemExit: if a model can't be measured here.
    """
    launcher = ProcessLauncher()
    with tempfile.TemporaryDirectory(prefix="ortbench-benchmark-") as name:
        runtime = Runtime(command=(sys.executable,))
        planner = Planner(launcher, Path.cwd(), runtimes=[runtime], notify=print)
        try:
            request = PlanRequest(models=tuple(models), threads=threads)
            entries = planner.plan(request).entries
            for entry in entries:
                if entry.refusal is not None:
                    sys.exit(f"{entry.case.case_id}: {entry.refusal.message}")
            cases = tuple(entry.case for entry in entries)
            yield Bench(launcher=launcher, cases=cases, folder=Path(name))
        finally:
            launcher.close()


def bootstrap(statistic: Callable[[random.Random], float], seed: int = 0) -> tuple[float, float]:
    """95 % percentile interval of a statistic that resamples with the generator it is given."""
    draw = random.Random(seed)
    values = sorted(statistic(draw) for _ in range(_RESAMPLES))
    return values[round(0.025 * _RESAMPLES)], values[round(0.975 * _RESAMPLES) - 1]
