"""Does pytest-xdist change our numbers? One model alone, and in a run with two busy workers.

    python benchmarks/beside_workers.py [--rounds 12] [--seconds 3] [--model builtin:lstm_tagger]

Each round measures the model in three runs of pytest, in an order that is drawn:

- alone: ``pytest test_model.py -n 0``
- after: ``pytest -n 2`` with tests beside it that compute for some seconds on every worker; our
  test runs in the controller when the workers have ended, which is what the product does
- amid: ``pytest test_model.py -n 0`` while two processes compute as those workers do, which is what
  a test would see that ran on a worker

Prints the p50 of each run, and the median over the rounds of after ÷ alone and amid ÷ alone, with a
95 % interval of order statistics. Exit status 0 if the interval of after ÷ alone lies within 3 % of
1, 1 if it lies outside, 2 if it does neither: the machine is too busy, or the rounds are too few.
Interrupted, it prints what it has. Needs pytest-xdist.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_ortbench.analysis.order import interval_ranks

#: How far the median may lie from 1.
GOAL = 0.03
WAYS = ("alone", "after", "amid")

_BUSY = """
import time

def compute(seconds):
    until, total = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        total += sum(number * number for number in range(10_000))
    return total
"""
_NEIGHBOURS = """
import pytest
from busy import compute

@pytest.mark.parametrize("number", range(4))
def test_computes(number):
    assert compute({seconds} / 2) > 0
"""
_OURS = """
from pathlib import Path

def test_model(ortbench):
    Path("p50").write_text(str(float(ortbench.latency().p50)))
"""


class _NothingMeasuredError(Exception):
    """A run of pytest ended without a number."""


def main() -> int:
    """Measure the rounds, and print what they say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long a worker computes")
    parser.add_argument("--model", default="builtin:lstm_tagger")
    args = parser.parse_args()
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    print(f"{args.model}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    print("".join(f"{way:>12}" for way in WAYS) + f"{'after÷alone':>14}{'amid÷alone':>14}")
    with tempfile.TemporaryDirectory(prefix="ortbench-benchmark-") as name:
        folder = Path(name)
        _write(folder, args.seconds)
        try:
            for _ in range(args.rounds):
                found = {way: _p50(folder, way, args.model) for way in random.sample(WAYS, 3)}
                for way, seconds in found.items():
                    times[way].append(seconds)
                cells = "".join(f"{found[way] * 1e6:9.2f} µs" for way in WAYS)
                ratios = "".join(f"{found[way] / found['alone']:14.3f}" for way in WAYS[1:])
                print(cells + ratios, flush=True)
        except KeyboardInterrupt:
            print("stopped; the round that was under way is not counted")
        except _NothingMeasuredError as error:
            print(f"ended: nothing was measured:\n{error}")
            return 2
    return _report(times)


def _write(folder: Path, seconds: float) -> None:
    """Write the project: our test, its neighbours, and what they compute."""
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (folder / "busy.py").write_text(_BUSY)
    (folder / "test_neighbours.py").write_text(_NEIGHBOURS.format(seconds=seconds))
    (folder / "test_model.py").write_text(_OURS)


def _p50(folder: Path, way: str, model: str) -> float:
    """Measure the model in one run of pytest; return its median latency in seconds."""
    number = folder / "p50"
    number.unlink(missing_ok=True)
    files = ("-n", "2") if way == "after" else ("test_model.py", "-n", "0")
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files),
        *(f"--ort-models={model}", "--ort-providers=cpu", "--ort-workers=3", "--ort-time=2"),
        "--ort-no-results",
    ]
    with _neighbours(folder, 2 if way == "amid" else 0):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if not number.exists():
        raise _NothingMeasuredError(done.stdout + done.stderr)
    return float(number.read_text())


@contextmanager
def _neighbours(folder: Path, count: int) -> Iterator[None]:
    """Have some processes compute for as long as the block lasts."""
    code = "from busy import compute; compute(3600)"
    processes = [subprocess.Popen([sys.executable, "-c", code], cwd=folder) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _report(times: dict[str, list[float]]) -> int:
    """Print both ratios; return the exit status."""
    intervals = {}
    for way in WAYS[1:]:
        pairs = zip(times[way], times["alone"], strict=True)
        ratios = sorted(one / alone for one, alone in pairs)
        intervals[way] = _interval(ratios)
        if ratios:
            low, high = intervals[way] or (ratios[0], ratios[-1])
            note = "" if intervals[way] else f" (all {len(ratios)}: too few for an interval)"
            print(f"{way} ÷ alone: {statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}]{note}")
    if intervals["after"] is None:
        return 2
    low, high = intervals["after"]
    if low >= 1 - GOAL and high <= 1 + GOAL:
        print(f"goal met: after ÷ alone within {GOAL:.0%} of 1")
        return 0
    missed = high < 1 - GOAL or low > 1 + GOAL
    print("goal missed" if missed else "goal undecided: more rounds, or a quieter machine")
    return 1 if missed else 2


def _interval(ordered: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of a median, if there are enough values."""
    ranks = interval_ranks(50, len(ordered))
    return None if ranks is None else (ordered[ranks[0] - 1], ordered[ranks[1] - 1])


if __name__ == "__main__":
    sys.exit(main())
