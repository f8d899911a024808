"""False alarms of our gate and of two usual ways, on one unchanged model, in the same minutes.

    python benchmarks/gate_comparison.py [--minutes 30] [--model builtin:mobilenet_v2] [--threads 2]

Each try compares the model with itself three times, in an order that is drawn:

- gate: our paired gate; a false alarm is ``slower``.
- stored: pytest-benchmark with default settings, run twice; the second run is compared with the
  first one by its own ``--benchmark-compare-fail=median:5%``.
- ranks: ten separate processes, then ten more, each giving the median of 0.6 s of inferences after
  a warm-up; a one-sided Mann–Whitney test at 5 % says that the second ten are slower.

The two usual ways get their sides right after each other, which is kinder to them than the day that
lies between a stored run and the next. Prints false alarms with exact (Clopper–Pearson) 95 %
intervals. Below, without an interval since they are not independent, all ordered pairs of the
runs of pytest-benchmark and of the tens of processes that the whole time gave.

``--file FILE`` keeps every finished try and counts those that are there. Interrupted, it prints
what it has.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import scipy.stats
from paired_cases import Bench, bench

from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.gate.measuring.gate import Gate
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.numbers.rules import rules_for
from pytest_ortbench.launch.machine import fingerprint
from pytest_ortbench.worker.inputs import make_feeds

T = TypeVar("T")

PROCESSES = 10
ALPHA = 0.05
WORSE_BY = 0.05

#: What both usual ways run: ONNX Runtime alone, on the inputs that our workers draw.
_SESSION = """
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = {threads}
session = onnxruntime.InferenceSession(
    {model!r}, options, providers=["CPUExecutionProvider"]
)
feeds = dict(numpy.load({feeds!r}))
"""

_TEST = """
def test_model(benchmark):
    benchmark(session.run, None, feeds)
"""

_PROCESS = """
import statistics, time
def runs(seconds):
    until, taken = time.monotonic() + seconds, []
    while time.monotonic() < until or len(taken) < 3:
        began = time.perf_counter_ns()
        session.run(None, feeds)
        taken.append(time.perf_counter_ns() - began)
    return taken
runs(0.3)
print(statistics.median(runs(0.6)))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One try of all three.

    Attributes:
        model: Name of the model.
        threads: Threads of every session.
        gate: Our verdict.
        gate_s: Seconds that it took.
        stored_failed: Whether pytest-benchmark called the second run a regression.
        stored_medians: Seconds, of both runs.
        stored_s: Seconds that both took.
        ranks: Medians of the processes in nanoseconds, the first ten and the second.
        ranks_s: Seconds that they took.
        load: Load average before it.
    """

    model: str
    threads: int
    gate: str
    gate_s: float
    stored_failed: bool
    stored_medians: tuple[float, float]
    stored_s: float
    ranks: tuple[tuple[float, ...], tuple[float, ...]]
    ranks_s: float
    load: float

    @property
    def p(self) -> float:
        """One-sided p-value of "the second ten are not slower"."""
        return _p(*self.ranks)


def main() -> int:
    """Try until the time is over and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--tries", type=int, default=1000, help="at most so many in this call")
    parser.add_argument("--model", default="builtin:mobilenet_v2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--file", type=Path, help="keep the tries here, and count those in it")
    args = parser.parse_args()
    tries = _read(args.file, args.threads)
    until = time.monotonic() + 60 * args.minutes
    try:
        with bench([args.model], args.threads) as ready:
            programs = _write_programs(ready, args.threads)
            tries = [one for one in tries if one.model == ready.cases[0].model.name]
            for _ in range(args.tries):
                if time.monotonic() >= until:
                    break
                made = _try(ready, args.threads, *programs)
                tries.append(made)
                _tell(made)
                if args.file is not None:
                    with args.file.open("ab") as file:
                        file.write(msgspec.json.encode(made) + b"\n")
    except KeyboardInterrupt:
        print("stopped; the try that was under way is not counted")
    return _report(tries)


def _read(path: Path | None, threads: int) -> list[Try]:
    if path is None or not path.exists():
        return []
    lines = path.read_bytes().splitlines()
    known = [msgspec.json.decode(line, type=Try) for line in lines if line.strip()]
    return [one for one in known if one.threads == threads]


def _write_programs(ready: Bench, threads: int) -> tuple[Path, Path]:
    """Write the test for pytest-benchmark and the program of a single process."""
    case = ready.cases[0]
    feeds = ready.folder / "feeds.npz"
    arrays: dict[str, Any] = dict(make_feeds(case.inputs, seed=0))
    np.savez(feeds, **arrays)
    session = _SESSION.format(threads=threads, model=case.variant.path, feeds=str(feeds))
    test, process = ready.folder / "test_model.py", ready.folder / "process.py"
    test.write_text(session + _TEST, encoding="utf-8")
    process.write_text(session + _PROCESS, encoding="utf-8")
    return test, process


def _try(ready: Bench, threads: int, test: Path, process: Path) -> Try:
    load = os.getloadavg()[0]
    seed = random.SystemRandom().getrandbits(31)
    gate = _Way(lambda: _gate(ready, seed))
    stored = _Way(lambda: _stored(test))
    ranks = _Way(lambda: (_ten(process), _ten(process)))
    order: list[_Way[Any]] = [gate, stored, ranks]
    random.Random(seed).shuffle(order)
    for way in order:
        way.go()
    failed, medians = stored.result
    return Try(
        model=ready.cases[0].model.name,
        threads=threads,
        gate=gate.result,
        gate_s=gate.seconds,
        stored_failed=failed,
        stored_medians=medians,
        stored_s=stored.seconds,
        ranks=ranks.result,
        ranks_s=ranks.seconds,
        load=load,
    )


class _Way(Generic[T]):
    """One way to compare: its result, and the seconds that it took."""

    def __init__(self, compare: Callable[[], T]) -> None:
        self._compare = compare
        self.seconds = 0.0

    def go(self) -> None:
        """Compare."""
        began = time.monotonic()
        self.result = self._compare()
        self.seconds = round(time.monotonic() - began, 2)


def _gate(ready: Bench, seed: int) -> str:
    case = ready.cases[0]
    gate = Gate(
        launcher=ready.launcher, machine=fingerprint(), cases=1, scratch=ready.folder, seed=seed
    )
    pair = Pair(baseline=case, contender=case)
    return gate.judge(pair, rules_for(case.case_id, ()), baseline="itself").latency_verdict


def _stored(test: Path) -> tuple[bool, tuple[float, float]]:
    """Run pytest-benchmark twice; whether it fails the second run, and both medians."""
    storage = test.parent / f"stored-{time.monotonic_ns()}"
    medians = []
    for number in range(2):
        report = storage / f"report-{number}.json"
        storage.mkdir(exist_ok=True)
        extra = ["--benchmark-save=first"]
        if number:
            extra = ["--benchmark-compare", f"--benchmark-compare-fail=median:{WORSE_BY:.0%}"]
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *("-p", "no:ortbench", f"--rootdir={test.parent}", str(test)),
                *(f"--benchmark-storage={storage}", f"--benchmark-json={report}", *extra),
            ],
            capture_output=True,
            text=True,
            cwd=test.parent,
            check=False,
        )
        failed = number == 1 and "Performance has regressed" in done.stdout + done.stderr
        if done.returncode != 0 and not failed:
            sys.exit(f"pytest-benchmark: {done.stdout}\n{done.stderr}")
        (entry,) = json.loads(report.read_text())["benchmarks"]
        medians.append(entry["stats"]["median"])
    return failed, (medians[0], medians[1])


def _ten(process: Path) -> tuple[float, ...]:
    """Medians of separate processes, in nanoseconds."""
    return tuple(
        float(subprocess.check_output([sys.executable, str(process)], text=True))
        for _ in range(PROCESSES)
    )


def _p(one: Sequence[float], other: Sequence[float]) -> float:
    return float(scipy.stats.mannwhitneyu(other, one, alternative="greater").pvalue)


def _tell(made: Try) -> None:
    ratio = made.stored_medians[1] / made.stored_medians[0] - 1
    stored = "worse" if made.stored_failed else "fine"
    print(
        f"load {made.load:.1f}: gate {made.gate} in {made.gate_s:.0f} s; stored {ratio:+.1%} "
        f"{stored} in {made.stored_s:.0f} s; ranks p {made.p:.3f} in {made.ranks_s:.0f} s",
        flush=True,
    )


def _report(tries: Sequence[Try]) -> int:
    if not tries:
        print("no try was finished: no rate")
        return 2
    loads = [one.load for one in tries]
    print(
        f"{tries[0].model}, {tries[0].threads} threads, {len(tries)} tries, load average "
        f"{min(loads):.1f} to {max(loads):.1f} (median {statistics.median(loads):.1f})"
    )
    print(f"{'way':8}{'tries':>6}{'false alarms':>14}{'share [95 % exact]':>26}{'seconds':>9}")
    rows: list[tuple[str, list[bool], list[float]]] = [
        ("gate", [one.gate == "slower" for one in tries], [one.gate_s for one in tries]),
        ("stored", [one.stored_failed for one in tries], [one.stored_s for one in tries]),
        ("ranks", [one.p < ALPHA for one in tries], [one.ranks_s for one in tries]),
    ]
    for way, alarms, seconds in rows:
        low, high = proportion_interval(sum(alarms), len(alarms))
        share = f"{sum(alarms) / len(alarms):.1%} [{low:.1%}, {high:.1%}]"
        middle = statistics.median(seconds)
        print(f"{way:8}{len(alarms):6}{sum(alarms):14}{share:>26}{middle:9.0f}")
    print(f"gate without a verdict: {sum(one.gate == 'inconclusive' for one in tries)}")
    medians = [median for one in tries for median in one.stored_medians]
    tens = [ten for one in tries for ten in one.ranks]
    worse = [other > one * (1 + WORSE_BY) for one, other in _ordered(medians)]
    slower = [_p(one, other) < ALPHA for one, other in _ordered(tens)]
    print(
        f"all ordered pairs of {len(medians)} runs: stored {sum(worse) / len(worse):.1%}, "
        f"ranks {sum(slower) / len(slower):.1%}"
    )
    return 0


def _ordered(values: Sequence[T]) -> Iterable[tuple[T, T]]:
    return itertools.permutations(values, 2)


if __name__ == "__main__":
    raise SystemExit(main())
