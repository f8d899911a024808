"""Which reference work, in blocks how long, on which CPU, makes two runs of a model differ least?

    python benchmarks/yardstick_candidates.py [--minutes 15] [--file FILE]
    python benchmarks/yardstick_candidates.py --table [--file FILE]

Leave the machine alone meanwhile. The blocks of a model take turns with those of all candidates at
once: numpy's products and others, a network in ONNX Runtime, and the model itself in a process of
its own, which tells what the best yardstick could do. Three models at one thread and at two come in
random order; each launch is a fresh process of the model, three of them are a run, and each launch
is a line of the file with its raw blocks. Stopped and started again it goes on with the file.

For each candidate and estimator the table has the differences of two runs, each the median of three
launches that are drawn from all (larger ÷ smaller − 1): the median / what 95 % stay below.
``floors``: 5th percentile of the model ÷ that of the candidate. ``blocks``: median of the ratios of
neighbours. ``lows``: 5th percentile of the fastest of each block, of both. ``mixture``: geometric
mean of floors and blocks. ``half``: floor of the model ÷ square root of the candidate's, for work
that slows down half as much as the model. ``alike`` is the correlation of the logarithms of both
floors over the launches. Then come the launches that took a quarter longer than others, with what
is known of their threads and of the candidates beside them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import StatisticsError, correlation, median
from typing import Any, Protocol

from paired_cases import Bench, bench
from yardstick_trials import MODELS, THREADS, drop_torn_line, floor, read

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.execution.time_share import usual_ns
from pytest_ortbench.launch.launcher import ProcessWorker
from pytest_ortbench.schema.case_questions import TimeBlock, WarmUpFor

FILE = Path(__file__).parents[1] / "results" / "yardstick" / "candidates.jsonl"
NETWORK = "builtin:canary"

#: Launches of a run, and blocks of each candidate in a launch.
LAUNCHES, ROUNDS = 3, 16
#: A block of the model, and what of it is not timed first.
_MODEL_NS, _SETTLING_NS = 12_000_000, 1_500_000
#: The shorter block is that of the product as it is.
_SHORT_NS, _LONG_NS = 1_700_000, 12_000_000
_WARM_UP_S, _OPEN_S = 0.6, 300.0
_DRAWS = 4000
#: What the kernel counts for each thread, and the threads that are kept apart.
_COUNTS, _THREADS_KEPT = ("ran_ns", "waited_ns", "voluntary", "forced", "faults"), 3
#: A launch is slow if its floor is above the lower quartile of all by so much.
_SLOW = 1.25

Line = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What could be a yardstick.

    Attributes:
        work: A name of ``candidate_work.WORKS``; ``network``, or ``itself``.
        block_ns: How long its blocks are.
        threads: Threads of its own that do the same side by side.
        blas_threads: Threads of the library that multiplies.
        beside: Whether it has to run on the CPU on which the model ran last.
    """

    work: str
    block_ns: int = _LONG_NS
    threads: int = 1
    blas_threads: int = 1
    beside: bool = False

    @property
    def name(self) -> str:
        """As it stands in the table."""
        parts = [self.work, f"{self.block_ns / 1e6:g} ms"]
        parts += [f"{self.threads} threads"] * (self.threads > 1)
        parts += [f"BLAS on {self.blas_threads}"] * (self.blas_threads > 1)
        return ", ".join([*parts, *["the model's CPU"] * self.beside])

    @property
    def process(self) -> tuple[int, bool]:
        """What candidates that share a process have in common."""
        return self.blas_threads, self.work == "handover"


#: By the threads of the model.
CANDIDATES: dict[int, tuple[Candidate, ...]] = {
    1: (
        Candidate(work="product", block_ns=_SHORT_NS),
        Candidate(work="product"),
        Candidate(work="product", beside=True),
        Candidate(work="large product", beside=True),
        Candidate(work="convolution", beside=True),
        Candidate(work="large convolution", beside=True),
        Candidate(work="mixture", beside=True),
        Candidate(work="mixture in cache", beside=True),
        Candidate(work="network", beside=True),
        Candidate(work="itself", beside=True),
    ),
    2: (
        Candidate(work="product", block_ns=_SHORT_NS, threads=2),
        Candidate(work="product", threads=2),
        Candidate(work="mixture", threads=2),
        Candidate(work="product"),
        Candidate(work="handover", block_ns=_SHORT_NS),
        Candidate(work="product", blas_threads=2),
        Candidate(work="chain", blas_threads=2),
        Candidate(work="convolution", blas_threads=2),
        Candidate(work="network"),
        Candidate(work="itself"),
    ),
}


class Side(Protocol):
    """What has blocks of its own, and is suspended between them."""

    pid: int

    def time(self, candidate: Candidate) -> Sequence[int]:
        """Return what each unit of a block took, in nanoseconds."""


class NumpySide:
    """A process of ``candidate_work.py``.

    Args:
        blas_threads: Threads of the library that multiplies.
    """

    def __init__(self, blas_threads: int) -> None:
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), str(blas_threads))
        command = [sys.executable, str(Path(__file__).with_name("candidate_work.py"))]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, env=os.environ | threads, text=True, **pipes)
        self.pid = self._process.pid
        self._units: dict[Candidate, int] = {}

    def time(self, candidate: Candidate) -> Sequence[int]:
        """Return what each unit of a block took; the first block says how many fit."""
        os.kill(self.pid, signal.SIGCONT)
        if candidate not in self._units:
            took = min(self._ask(candidate, 4))
            self._units[candidate] = max(1, round(candidate.block_ns / took))
        durations = self._ask(candidate, self._units[candidate])
        self._stop()
        return durations

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _stop(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def _ask(self, candidate: Candidate, units: int) -> Sequence[int]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise ValueError("the process has no pipes")
        asked = {"work": candidate.work, "threads": candidate.threads}
        stdin.write(json.dumps({**asked, "units": units, "untimed": 1}) + "\n")
        stdin.flush()
        durations: list[int] = json.loads(stdout.readline())
        return durations


class ModelSide:
    """A fresh process of a model, warmed up and suspended.

    Args:
        worker: The process.
    """

    def __init__(self, worker: ProcessWorker) -> None:
        self._worker = worker
        self.pid = worker.pid
        self._usual_ns = max(1.0, usual_ns(worker.ask(WarmUpFor(budget_s=_WARM_UP_S))))
        worker.pause()

    def time(self, candidate: Candidate) -> Sequence[int]:
        """Return what each inference of a block took."""
        question = TimeBlock(
            iterations=max(1, round(candidate.block_ns / self._usual_ns)),
            untimed=math.ceil(_SETTLING_NS / self._usual_ns),
        )
        self._worker.resume()
        block = self._worker.ask(question)
        self._worker.pause()
        return block.durations_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadFacts:
    """What the kernel has counted for the threads of a process so far (Linux).

    Attributes:
        of_threads: By the thread's number: nanoseconds on a CPU, nanoseconds in which it could have
            run and waited for one, times that it slept, times that the kernel took the CPU away,
            page faults, and the CPU on which it ran last.
        steal: Ticks of all CPUs that the hypervisor gave to others.
    """

    of_threads: dict[str, tuple[int, ...]]
    steal: int

    @classmethod
    def of(cls, pid: int) -> ThreadFacts:
        """Read them."""
        of_threads = {}
        for folder in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                ran, waited, _ = map(int, (folder / "schedstat").read_text().split())
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                status = (folder / "status").read_text().splitlines()
                slept, taken = (
                    next(int(line.split()[1]) for line in status if line.startswith(name))
                    for name in ("voluntary_ctxt", "nonvoluntary_ctxt")
                )
                faults, cpu = int(stat[7]), int(stat[36])
                of_threads[folder.name] = (ran, waited, slept, taken, faults, cpu)
        steal = int(Path("/proc/stat").read_text().split(maxsplit=9)[8])
        return cls(of_threads=of_threads, steal=steal)

    @property
    def cpu(self) -> int:
        """The CPU on which the busiest thread ran last."""
        return max(self.of_threads.values())[-1]

    def since(self, earlier: ThreadFacts) -> dict[str, Any]:
        """Return what was counted between two times."""
        none = (0,) * len(_COUNTS)
        both = [
            (now, earlier.of_threads.get(thread, none)) for thread, now in self.of_threads.items()
        ]
        counts = [
            sum(now[index] - then[index] for now, then in both) for index in range(len(_COUNTS))
        ]
        # The busiest first: nanoseconds, and the CPU.
        threads = sorted(((now[0] - then[0], now[-1]) for now, then in both), reverse=True)
        return {
            **dict(zip(_COUNTS, counts, strict=True)),
            "cpu": self.cpu,
            "of_threads_ns": [ran for ran, _ in threads[:_THREADS_KEPT]],
            "of_threads_cpu": [cpu for _, cpu in threads[:_THREADS_KEPT]],
            "steal": self.steal - earlier.steal,
        }


def main() -> int:
    """Add launches for so long, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--table", action="store_true", help="only print what the file holds")
    parser.add_argument("--file", type=Path, default=FILE)
    args = parser.parse_args()
    if not args.table:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            measure(args.file, time.monotonic() + 60 * args.minutes)
        except KeyboardInterrupt:
            print("stopped; this is what the file holds")
    print(table(read(args.file)))
    return 0


def measure(file: Path, until: float) -> None:
    """Make runs of all cases, in another order each time, until then."""
    file.parent.mkdir(parents=True, exist_ok=True)
    drop_torn_line(file)
    with bench((*MODELS, NETWORK), *THREADS) as ready:
        networks = {case.session.intra_op_num_threads: case for case in ready.cases if _is(case)}
        cases = [case for case in ready.cases if not _is(case)]
        while True:
            for case in random.sample(cases, len(cases)):
                if time.monotonic() > until:
                    return
                try:
                    run(ready, case, networks[case.session.intra_op_num_threads], file)
                except WorkerError as error:
                    print(f"{case.case_id}: {error}", flush=True)


def run(ready: Bench, case: Case, network: Case, file: Path) -> None:
    """Make the launches of a run, all beside the same processes of the candidates."""
    threads = case.session.intra_op_num_threads or 1
    candidates = CANDIDATES[threads]
    began = datetime.now(timezone.utc).isoformat(timespec="seconds")
    with ExitStack() as stack:
        sides: dict[Candidate, Side] = {}
        shared: dict[tuple[int, bool], NumpySide] = {}
        for candidate in candidates:
            if candidate.work in ("network", "itself"):
                chosen = network if candidate.work == "network" else case
                sides[candidate] = opened(ready, chosen, stack)
            else:
                if candidate.process not in shared:
                    side = stack.enter_context(closing(NumpySide(candidate.blas_threads)))
                    shared[candidate.process] = side
                sides[candidate] = shared[candidate.process]
                # Counts the units of a block, and lets threads start.
                sides[candidate].time(candidate)
        for index in range(LAUNCHES):
            with ExitStack() as own:
                load = os.getloadavg()[0]
                blocks = launch(opened(ready, case, own), sides)
            line = {
                "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "run": began,
                "launch": index,
                "model": case.model.name,
                "threads": threads,
                "load": load,
                **blocks,
            }
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(line) + "\n")
            print(
                f"{line['at']} {case.model.name}, {threads} threads: floor "
                f"{floor(line['mean_ns']) / 1e6:.3f} ms, load {load:.1f}",
                flush=True,
            )


def opened(ready: Bench, case: Case, stack: ExitStack) -> ModelSide:
    """Return a fresh process of a model."""
    deadline = time.monotonic() + _OPEN_S
    worker = ready.launcher.open(case, worker=0, deadline=deadline)
    return ModelSide(stack.enter_context(closing(worker)))


def launch(model: ModelSide, sides: dict[Candidate, Side]) -> Line:
    """Return the blocks of a model and of all candidates in turns, in random order.

    Each block of a candidate has one of the model right before or after it: ``next_to`` says which.
    """
    everywhere = os.sched_getaffinity(0)
    own = Candidate(work="itself", block_ns=_MODEL_NS)
    p50: list[int] = []
    model_blocks: dict[str, list[Any]] = defaultdict(list)
    others: dict[str, dict[str, list[int]]] = {
        candidate.name: {"mean_ns": [], "low_ns": [], "next_to": []} for candidate in sides
    }

    def add(candidate: Candidate, next_to: int) -> None:
        side = sides[candidate]
        cpus = {ThreadFacts.of(model.pid).cpu} if candidate.beside else everywhere
        os.sched_setaffinity(side.pid, cpus)
        durations, blocks = side.time(candidate), others[candidate.name]
        blocks["mean_ns"].append(_mean(durations))
        blocks["low_ns"].append(min(durations))
        blocks["next_to"].append(next_to)

    for _ in range(ROUNDS):
        order = random.sample(list(sides), len(sides))
        for before, after in zip(order[::2], order[1::2], strict=True):
            index = len(model_blocks["mean_ns"])
            add(before, index)
            facts, began = ThreadFacts.of(model.pid), time.monotonic_ns()
            durations = model.time(own)
            wall_ns, later = time.monotonic_ns() - began, ThreadFacts.of(model.pid)
            p50 += durations
            model_blocks["mean_ns"].append(_mean(durations))
            model_blocks["low_ns"].append(min(durations))
            model_blocks["wall_ns"].append(wall_ns)
            for name, counted in later.since(facts).items():
                model_blocks[name].append(counted)
            add(after, index)
    return {"p50_ns": median(p50), **model_blocks, "candidates": others}


def table(lines: Sequence[Line]) -> str:
    """Return what the launches of a file come to."""
    groups: dict[tuple[str, int], list[Line]] = defaultdict(list)
    for line in lines:
        groups[line["model"], line["threads"]].append(line)
    texts = [f"{len(lines)} launches"]
    for (model, threads), launches in sorted(groups.items(), key=lambda group: group[0][::-1]):
        texts.append(f"\n{model}, {threads} threads: {len(launches)} launches")
        if len(launches) < 2 * LAUNCHES:
            texts.append(f"  fewer than {2 * LAUNCHES}: two runs can't be drawn")
            continue
        p50 = differ([line["p50_ns"] for line in launches])
        alone = differ([floor(line["mean_ns"]) for line in launches])
        texts.append(f"  {'p50 of the model alone':46}{p50}")
        texts.append(f"  {'floor of the model alone':46}{alone}")
        heads = "".join(f"{name:18}" for name in ESTIMATES)
        texts.append(f"  {'candidate':38}{'alike':8}{heads}".rstrip())
        for name in launches[0]["candidates"]:
            kept = [line for line in launches if name in line["candidates"]]
            cells = "".join(
                f"{differ([estimate(line, name) for line in kept]):18}"
                for estimate in ESTIMATES.values()
            )
            texts.append(f"  {name:38}{alike(kept, name):+.2f}   {cells}".rstrip())
        texts += [f"  {text}" for text in slow_launches(launches)]
        texts.append(f"  {by_cpu(launches)}")
    return "\n".join(texts)


def _floors(line: Line, name: str) -> float:
    return floor(line["mean_ns"]) / floor(line["candidates"][name]["mean_ns"])


def _blocks(line: Line, name: str) -> float:
    model, candidate = line["mean_ns"], line["candidates"][name]
    pairs = zip(candidate["next_to"], candidate["mean_ns"], strict=True)
    return median(model[index] / work for index, work in pairs)


#: What is made of a launch and one candidate, by its name in the table.
ESTIMATES: dict[str, Callable[[Line, str], float]] = {
    "floors": _floors,
    "blocks": _blocks,
    "lows": lambda line, name: floor(line["low_ns"]) / floor(line["candidates"][name]["low_ns"]),
    "mixture": lambda line, name: math.sqrt(_floors(line, name) * _blocks(line, name)),
    "half": lambda line, name: math.sqrt(floor(line["mean_ns"]) * _floors(line, name)),
}


def differ(values: Sequence[float]) -> str:
    """Return how much two runs of three launches differ: the median / the 95th percentile."""
    draw = random.Random(0)
    apart = []
    for _ in range(_DRAWS):
        drawn = draw.sample(values, 2 * LAUNCHES)
        first, second = median(drawn[:LAUNCHES]), median(drawn[LAUNCHES:])
        apart.append(max(first, second) / min(first, second) - 1)
    apart.sort()
    return f"{median(apart):.1%} / {apart[len(apart) * 95 // 100]:.1%}"


def alike(launches: Sequence[Line], name: str) -> float:
    """Return how the floors of both go together: 1 if they rise and fall alike, 0 if not at all."""
    model = [math.log(floor(line["mean_ns"])) for line in launches]
    work = [math.log(floor(line["candidates"][name]["mean_ns"])) for line in launches]
    with suppress(StatisticsError):
        return correlation(model, work)
    return 0.0


def slow_launches(launches: Sequence[Line]) -> list[str]:
    """Return what is known of launches that took much longer than others."""
    floors = sorted(floor(line["mean_ns"]) for line in launches)
    bound = _SLOW * floors[len(floors) // 4]
    slow = [line for line in launches if floor(line["mean_ns"]) > bound]
    usual = [line for line in launches if floor(line["mean_ns"]) <= bound]
    texts = [f"slow launches: {len(slow)} of {len(launches)}"]
    if not slow:
        return texts
    for name, fact in THREAD_FACTS.items():
        texts.append(
            f"  {name:44}{median(map(fact, slow)):.3f} where slow, "
            f"{median(map(fact, usual)):.3f} else"
        )
    for name in launches[0]["candidates"]:
        both = [
            median(floor(line["candidates"][name]["mean_ns"]) for line in some)
            for some in (slow, usual)
        ]
        texts.append(f"  {name:44}×{both[0] / both[1]:.2f} where slow")
    return texts


def _share_on_one_cpu(line: Line) -> float:
    cpus = line["of_threads_cpu"]
    return sum(len(set(of_block[:2])) < 2 for of_block in cpus) / len(cpus)


#: What the kernel counted of the threads in the blocks of a launch.
THREAD_FACTS: dict[str, Callable[[Line], float]] = {
    "CPUs that threads ran on": lambda line: sum(line["ran_ns"]) / sum(line["wall_ns"]),
    "CPUs that threads waited for": lambda line: sum(line["waited_ns"]) / sum(line["wall_ns"]),
    "sleeps a block": lambda line: sum(line["voluntary"]) / len(line["voluntary"]),
    "times the CPU was taken away, a block": lambda line: sum(line["forced"]) / len(line["forced"]),
    "page faults a block": lambda line: sum(line["faults"]) / len(line["faults"]),
    "stolen ticks a block": lambda line: sum(line["steal"]) / len(line["steal"]),
    "blocks whose two busiest threads are on one CPU": _share_on_one_cpu,
    "CPU time of the second thread, of the first": lambda line: median(
        sum(threads[1:2]) / max(1, threads[0]) for threads in line["of_threads_ns"]
    ),
    "ratio of the fastest inference to the floor": lambda line: (
        min(line["low_ns"]) / floor(line["mean_ns"])
    ),
}


def by_cpu(launches: Sequence[Line]) -> str:
    """Return what blocks on each CPU took, as a ratio to the median of their launch."""
    ratios: dict[int, list[float]] = defaultdict(list)
    moved = blocks = 0
    for line in launches:
        middle = median(line["mean_ns"])
        for cpu, took in zip(line["cpu"], line["mean_ns"], strict=True):
            ratios[cpu].append(took / middle)
        moved += sum(a != b for a, b in zip(line["cpu"], line["cpu"][1:], strict=False))
        blocks += len(line["cpu"])
    of_cpus = ", ".join(
        f"CPU {cpu}: {median(of):.3f} of the launch's median ({len(of)} blocks)"
        for cpu, of in sorted(ratios.items())
    )
    return f"{of_cpus}; {moved} of {blocks} blocks began on another CPU than the last one"


def _is(case: Case) -> bool:
    return case.model.name == NETWORK.partition(":")[2]


def _mean(durations: Sequence[int]) -> int:
    return round(sum(durations) / len(durations))


if __name__ == "__main__":
    sys.exit(main())
