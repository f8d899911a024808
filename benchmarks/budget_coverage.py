"""How often the intervals of a run with a budget hold the truth, and how often without one.

    python benchmarks/budget_coverage.py [--draws 200]
    python benchmarks/budget_coverage.py --record RUN.json

The second line makes ``results/budget/samples.jsonl`` of a run with many workers, all of whose
durations were kept (``--ort-workers=40 --ort-time=72 --ort-samples=all``): a line for each worker.
The first line draws runs of twelve cases from it. Each case is one of its models; its workers are
drawn without putting back, begin with their stored durations in their order, and end where the
rule of the product ends them. How many there are and how long they time says the default, or a
budget on a clock that goes on as fast as the stored workers took. An interval is right if it holds
the median over all stored workers of the model. Prints a table, and writes the counts to
``results/budget/coverage.json``.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

import msgspec

from pytest_ortbench.analysis.samples import median_latency, reduce_blocks
from pytest_ortbench.analysis.stopping import StopRule
from pytest_ortbench.core.case import Case, Provider, Runtime, Sampling
from pytest_ortbench.core.model import Variant
from pytest_ortbench.core.outcome import (
    Block,
    CaseResult,
    Measurement,
    Memory,
    RuntimeInfo,
    Startup,
    WarmUp,
)
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.execution.budget import LEAST_WORKERS, Budget, BudgetPart
from pytest_ortbench.execution.pace import BudgetPace
from pytest_ortbench.execution.turns import measured_in_turn
from pytest_ortbench.models.resolve import BrokenModel, resolve_models
from pytest_ortbench.store.documents import load

FOLDER = Path(__file__).parents[1] / "results" / "budget"
SAMPLES, COUNTS = FOLDER / "samples.jsonl", FOLDER / "coverage.json"

#: Cases of a drawn run, and what it has besides them, in seconds.
CASES, CLOSING_S = 12, 6.0
#: Seconds of the budgets; ``None``: three workers of 5 s, as without one.
BUDGETS = (None, 75.0, 120.0, 300.0, 600.0)


class Stored(msgspec.Struct):
    """One stored worker.

    Attributes:
        model: What it measured.
        beside_s: Seconds that it took beside its timed blocks.
        durations_us: Its inferences in their order, in microseconds.
    """

    model: str
    beside_s: float
    durations_us: list[float]


class Count(msgspec.Struct):
    """What came of the cases of one model under one budget.

    Attributes:
        budget_s: The budget; ``None`` for none.
        model: The model.
        cases: Intervals that were drawn.
        right: Those that hold the truth.
        workers: Workers of a case on average.
        timed_s: Timed seconds of a worker on average.
        width: Width of the interval in the middle, as a share of the truth.
        ended_s: When its runs ended, on average.
    """

    budget_s: float | None
    model: str
    cases: int
    right: int
    workers: float
    timed_s: float
    width: float
    ended_s: float


@dataclass
class Clock:
    """Goes on when a stored worker is replayed."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Replayed:
    """Measures a case with stored workers in place of fresh ones.

    Attributes:
        workers: What is left of the stored workers, in a drawn order.
        clock: Goes on as long as they took.
    """

    workers: list[Stored]
    clock: Clock
    done: list[Measurement] = field(default_factory=list)

    def worker(self, sampling: Sampling) -> None:
        """Replay the next worker."""
        stored = self.workers.pop()
        durations = [round(own * 1e3) for own in stored.durations_us]
        rule = StopRule.for_worker(sampling, typical_ns=median(durations))
        blocks: list[Block] = []
        begin = 0
        while (count := rule.next_block(blocks)) is not None and begin < len(durations):
            block = tuple(durations[begin : begin + count])
            blocks.append(Block(durations_ns=block, wall_ns=sum(block), cpu_ns=sum(block)))
            begin += count
        samples = reduce_blocks(blocks, keep=0, clock_pair_ns=100)
        self.clock.now += stored.beside_s + samples.wall_ns * 1e-9
        self.done.append(
            Measurement(
                worker=len(self.done),
                runtime=RuntimeInfo(
                    distributions={}, version="", python="", numpy="", executable=""
                ),
                startup=Startup(import_ns=1, session_create_ns=1, first_inference_ns=1),
                warm_up=WarmUp(durations_ns=(), count=0, total_ns=0, steady=True, rule=""),
                samples=samples,
                memory=Memory(source=""),
                stop=rule.reason or "budget",
                overhead_ns=round(stored.beside_s * 1e9),
            )
        )

    def result(self, case: Case) -> CaseResult:
        """Return what its workers measured."""
        return CaseResult(case=case, status="measured", measurements=tuple(self.done))


def cases_of(models: Sequence[str]) -> list[Case]:
    """Return twelve cases, each of one of the models in turn."""
    made = []
    for number in range(CASES):
        (model,) = resolve_models([f"builtin:{models[number % len(models)]}"], root=Path.cwd())
        if isinstance(model, BrokenModel):
            raise SystemExit(str(model.error))
        variant = Variant(
            precision="native", path=model.path, digest=model.digest, size_bytes=model.size_bytes
        )
        made.append(
            Case(
                model=model,
                variant=variant,
                provider=Provider(alias="cpu", name=CPU),
                runtime=Runtime(),
                knobs={"threads": str(number)},
            )
        )
    return made


def drawn_run(
    cases: Sequence[Case], stored: dict[str, list[Stored]], total_s: float | None, seed: int
) -> tuple[list[CaseResult], float]:
    """Return the results of one drawn run, and when it ended."""
    draw = random.Random(seed)
    clock = Clock()
    budget = Budget(total_s=total_s or 0.0, closing=lambda: CLOSING_S, clock=clock)
    budget.expect(BudgetPart(key=case.key, case=case) for case in cases)
    results = []
    for case in cases:
        workers = stored[case.model.name]
        replayed = Replayed(workers=draw.sample(workers, len(workers)), clock=clock)
        if total_s is None:
            for _ in range(LEAST_WORKERS):
                replayed.worker(case.sampling)
            results.append(replayed.result(case))
            continue

        def measure(limited: Case, pace: BudgetPace, replayed: Replayed = replayed) -> CaseResult:
            pace.begin()
            while (turn := pace.next_worker(replayed.done)) is not None:
                replayed.worker(turn.case.sampling)
            return replayed.result(limited)

        results.append(measured_in_turn(budget, case, measure))
    return results, clock.now + CLOSING_S


def counts_of(stored: dict[str, list[Stored]], total_s: float | None, draws: int) -> list[Count]:
    """Draw runs under one budget, and count right intervals of each model."""
    truth = {
        model: median(median(own.durations_us) * 1e-6 for own in workers)
        for model, workers in stored.items()
    }
    cases = cases_of(list(stored))
    by_model: dict[str, list[CaseResult]] = {model: [] for model in stored}
    ends = []
    for seed in range(draws):
        results, ended_s = drawn_run(cases, stored, total_s, seed)
        ends.append(ended_s)
        for result in results:
            if result.measurements:
                by_model[result.case.model.name].append(result)
    counts = []
    for model, results in by_model.items():
        intervals = [median_latency([own.samples for own in r.measurements]) for r in results]
        spans = [((own.low_ns or 0) * 1e-9, (own.high_ns or 0) * 1e-9) for own in intervals]
        counts.append(
            Count(
                budget_s=total_s,
                model=model,
                cases=len(results),
                right=sum(low <= truth[model] <= high for low, high in spans),
                workers=round(fmean(len(r.measurements) for r in results), 1),
                timed_s=round(
                    fmean(own.samples.wall_ns * 1e-9 for r in results for own in r.measurements), 2
                ),
                width=round(median((high - low) / truth[model] for low, high in spans), 3),
                ended_s=round(fmean(ends), 1),
            )
        )
    return counts


def record(path: Path) -> None:
    """Make the stored workers of a run document."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with SAMPLES.open("wb") as file:
        for result in load(path).cases:
            for own in result.measurements:
                worker = Stored(
                    model=result.case.model.name,
                    beside_s=round((own.overhead_ns + own.warm_up.total_ns) * 1e-9, 2),
                    durations_us=[round(one * 1e-3, 1) for one in own.samples.durations_ns],
                )
                file.write(msgspec.json.encode(worker) + b"\n")


def main() -> None:
    """Draw, count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--record", type=Path)
    arguments = parser.parse_args()
    if arguments.record:
        record(arguments.record)
        return
    stored: dict[str, list[Stored]] = {}
    for line in SAMPLES.read_bytes().splitlines():
        worker = msgspec.json.decode(line, type=Stored)
        stored.setdefault(worker.model, []).append(worker)
    everything: list[Count] = []
    print("| budget | ended | workers | timed of each | held, of all intervals | median width |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for total_s in BUDGETS:
        counts = counts_of(stored, total_s, arguments.draws)
        everything += counts
        cases, right = sum(c.cases for c in counts), sum(c.right for c in counts)
        print(
            f"| {'none' if total_s is None else f'{total_s:g} s'} | {counts[0].ended_s:.0f} s "
            f"| {fmean(c.workers for c in counts):.1f} | {fmean(c.timed_s for c in counts):.2f} s "
            f"| {right} of {cases}, {100 * right / cases:.1f} % "
            f"| {100 * median(c.width for c in counts):.0f} % |"
        )
    for count in everything:
        print(msgspec.json.encode(count).decode())
    COUNTS.write_bytes(msgspec.json.format(msgspec.json.encode(everything), indent=1) + b"\n")


if __name__ == "__main__":
    main()
