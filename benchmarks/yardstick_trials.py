"""How much two runs of one case differ, by what is made of them, over hours and days.

    python benchmarks/yardstick_trials.py --resume [--runs 40] [--seconds 3] [--workers 3]
        [--file FILE]
    python benchmarks/yardstick_trials.py --resume --busy [--runs 10]
    python benchmarks/yardstick_trials.py --table
    python benchmarks/yardstick_trials.py --verdicts

A run is one case by the standard pass: fresh processes, three by itself, whose blocks take turns
with a yardstick. Three models at one thread and at two come in random order, again and again, and
each run is one more line of the file: raw blocks, flags, load, p50 with its interval. It may be
interrupted at any time; ``--resume`` goes on, and what is more than half an hour apart counts as
another occasion. Printed are the differences of all pairs of runs (larger ÷ smaller − 1): their
median, and what 95 % of them stay below; how many runs carry a flag; how often an interval covers
the median of all runs. Only runs without a flag are compared, unless ``--flagged`` adds the others.
With ``--busy`` another process computes all the time; such runs are in no table.

``--verdicts`` counts what stored runs say of each run, as ``ortbench gate --self-test --stored``
does, and what those without a busy process say of those beside one; and what ``ortbench trend``
finds in 60 runs of each case as they are, and with +10 % from one of them on.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from statistics import median
from typing import Any

from paired_cases import bench

from pytest_ortbench.analysis.between_processes import BETWEEN_RUNS, over_runs
from pytest_ortbench.analysis.history import Point, Step, blurs_series, on_one_scale, steps_of
from pytest_ortbench.analysis.machine_states import BUSY, BUSY_BESIDE_THREADS, memory_slowdown
from pytest_ortbench.analysis.relative_latency import (
    LOWS,
    WEIGHTS,
    RelativeLatency,
    memory_weight,
    mismatch,
    ratios_by_weight,
    relative_latency,
    weighed,
)
from pytest_ortbench.analysis.samples import median_latency
from pytest_ortbench.cli.terminal import table as tabulate
from pytest_ortbench.core.outcome import CaseResult, YardstickTurns
from pytest_ortbench.core.yardstick import YARDSTICK_CHOICES, Yardstick
from pytest_ortbench.execution import standard
from pytest_ortbench.gate.numbers.stored_trials import (
    StoredTrial,
    Way,
    made_slower,
    run_spreads,
    verdict_on,
)
from pytest_ortbench.gate.report.stored_self_test import (
    CASE_HEADER,
    VERDICT_HEADER,
    rows_by_case,
    stored_sentences,
    verdict_rows,
)
from pytest_ortbench.yardstick.measuring.turns import spread_evenly

FILE = Path(__file__).parents[1] / "results" / "yardstick" / "trials.jsonl"
MODELS = ("builtin:mobilenet_v2", "builtin:lstm_tagger", "zoo:magika")
THREADS = (1, 2)

#: Rounds of a process that are stored.
_KEPT_ROUNDS = 100
_OF_ROUNDS = (
    "model_mean_ns",
    "model_low_ns",
    "yardstick_mean_ns",
    "yardstick_low_ns",
    "memory_mean_ns",
    "memory_low_ns",
    "handover_ns",
)
#: Runs that lie further apart are of two occasions.
_APART = timedelta(minutes=30)
_FLOOR_PERCENT = 5
#: Runs in which a trend is looked for, those from which on they are made slower, in turn, and how
#: many such runs there must be.
_TREND_RUNS, _CHANGED_AT, _FEWEST_AFTER = 60, (15, 20, 25, 30, 35, 40), 5

#: One line of the file.
Run = dict[str, Any]


def main() -> int:
    """Add runs until each case has its number of them, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--resume", action="store_true", help="go on with the file")
    parser.add_argument("--table", action="store_true", help="only print what the file holds")
    parser.add_argument("--verdicts", action="store_true", help="what stored runs say of each")
    parser.add_argument("--flagged", action="store_true", help="compare flagged runs, too")
    parser.add_argument("--busy", action="store_true", help="beside a process that computes")
    parser.add_argument("--minutes", type=float, help="stop after so long")
    parser.add_argument("--runs", type=int, default=40, help="of each case, on this occasion")
    parser.add_argument("--seconds", type=float, default=3.0, help="timed, over all processes")
    parser.add_argument("--workers", type=int, default=3, help="processes of a run")
    parser.add_argument("--yardstick", default="auto", choices=YARDSTICK_CHOICES)
    parser.add_argument("--file", type=Path, default=FILE)
    args = parser.parse_args()
    earlier = read(args.file)
    if args.verdicts:
        print(verdicts(earlier))
        return 0
    if not args.table:
        if earlier and not args.resume:
            sys.exit(f"{args.file} holds {len(earlier)} runs: add --resume, or name another --file")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with busy_process(args.busy):
                measure(args)
        except KeyboardInterrupt:
            print("stopped; this is what the file holds")
    print(table(read(args.file), flagged=args.flagged))
    return 0


@contextmanager
def busy_process(wanted: bool) -> Iterator[None]:
    """Let a process compute meanwhile, if it is wanted."""
    command = [sys.executable, "-c", "while True: pass"]
    process = subprocess.Popen(command) if wanted else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def measure(args: argparse.Namespace) -> None:
    """Measure every case so many times, in another order each time, a line after each."""
    file, until = args.file, time.monotonic() + 60 * (args.minutes or math.inf)
    file.parent.mkdir(parents=True, exist_ok=True)
    drop_torn_line(file)
    sampled = {
        "time_s": args.seconds,
        "workers": args.workers,
        "yardstick": args.yardstick,
    }
    with bench(MODELS, *THREADS) as ready:
        cases = [replace(case, sampling=replace(case.sampling, **sampled)) for case in ready.cases]
        for index in range(args.runs):
            for case in random.sample(cases, len(cases)):
                if time.monotonic() > until:
                    return
                before = os.getloadavg()[0]
                result = standard.measure(case, ready.launcher, ready.folder)
                run = line_of(result, load=(before, os.getloadavg()[0]))
                if args.busy:
                    run["busy"] = 1
                with file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(run) + "\n")
                print(f"{index + 1} of {args.runs}: {told(run)}", flush=True)


def line_of(result: CaseResult, load: tuple[float, float]) -> Run:
    """Return what a run keeps of its result."""
    case, measured = result.case, result.measurements
    run: Run = {
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "model": case.model.name,
        "threads": case.session.intra_op_num_threads,
        "status": result.status,
        "flags": [flag.name for flag in result.flags],
        "load": load,
        "wall_s": round(result.wall_s, 2),
    }
    if result.status != "measured":
        return run
    p50 = median_latency([measurement.samples for measurement in measured])
    relative = relative_latency(result)
    run |= {
        "onnxruntime": measured[0].runtime.version,
        "p50_ns": [p50.value_ns, p50.low_ns, p50.high_ns],
        "on_shared_machine": measured[0].samples.on_shared_machine,
        "relative": [
            relative.value,
            relative.low,
            relative.high,
            relative.estimator,
            relative.weight,
        ]
        if isinstance(relative, RelativeLatency)
        else relative.cause,
        "ratios": relative.ratios if isinstance(relative, RelativeLatency) else (),
        "handover_s": relative.handover_s if isinstance(relative, RelativeLatency) else None,
        "steal": [measurement.samples.steal_ratio for measurement in measured],
        "launches": [launch_of(measurement.yardstick) for measurement in measured],
    }
    return run


def launch_of(turns: YardstickTurns | None) -> Run:
    """Return the rounds of one process: blocks of both sides, in nanoseconds."""
    if turns is None or turns.yardstick is None:
        return {"absence": "" if turns is None else turns.absence}
    names = [name for name in _OF_ROUNDS if getattr(turns, name)]
    rounds = list(zip(*(getattr(turns, name) for name in names), strict=True))
    kept = spread_evenly(rounds, _KEPT_ROUNDS)
    return {
        "yardstick": turns.yardstick.identity,
        "rounds": turns.rounds,
        "cpus": [turns.model_cpus, turns.yardstick_cpus],
        "best_ns": turns.best_ns,
        "best_handover_ns": turns.best_handover_ns,
        **dict(zip(names, map(list, zip(*kept, strict=True)), strict=True)),
    }


def read(file: Path) -> list[Run]:
    """Return the runs of a file, the oldest first; a torn last line is left out."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines[:-1] if line]


def drop_torn_line(file: Path) -> None:
    """Remove what an interrupted run left behind the last whole line."""
    if file.exists():
        content = file.read_bytes()
        if not content.endswith(b"\n"):
            with file.open("r+b") as torn:
                torn.truncate(content.rfind(b"\n") + 1)


def told(run: Run) -> str:
    """Return a run on one line."""
    name = f"{run['model']}, {run['threads']} threads"
    if "p50_ns" not in run:
        return f"{name}: {run['status']}"
    value, low, high = run["p50_ns"]
    width = "no interval" if low is None else f"[{low / 1e6:.3f}, {high / 1e6:.3f}]"
    relative = run["relative"]
    ratio = (
        f"no ratio ({relative})"
        if isinstance(relative, str)
        else f"ratio {relative[0]:.3f} ({relative[3]})"
    )
    flags = ", ".join(run["flags"]) or "no flag"
    return f"{name}: p50 {value / 1e6:.3f} ms {width}, {ratio}; {flags}; load {run['load'][1]:.1f}"


def table(runs: Sequence[Run], *, flagged: bool) -> str:
    """Return what the runs of a file come to."""
    runs = [run for run in runs if not run.get("busy")]
    groups: dict[tuple[str, int], list[Run]] = defaultdict(list)
    for run in runs:
        if "p50_ns" in run:
            groups[run["model"], run["threads"]].append(run)
    lines = [
        f"{len(runs)} runs on {occasions(runs)} occasions, "
        f"{sum(bool(flags_now(run)) for run in runs)} with a flag "
        f"({', '.join(f'{name} {count}' for name, count in counted_flags(runs)) or 'none'})"
    ]
    for (model, threads), of_case in sorted(groups.items(), key=lambda group: group[0][::-1]):
        kept = [run for run in of_case if flagged or not flags_now(run)]
        lines.append(
            f"\n{model}, {threads} threads: {len(kept)} of {len(of_case)} runs compared, "
            f"{sum(bool(flags_now(run)) for run in of_case)} with a flag; {yardsticks(kept)}"
        )
        if len(kept) < 2:
            continue
        for name, estimate in ESTIMATES.items():
            lines.append(f"  {name:24}{differences(list(map(estimate, kept)))}")
        known = [ratio for run in kept if (ratio := stored_trial(run).relative) is not None]
        lines.append(f"  {'the same, weighed':24}{weighed_differences(known)}")
        alike = [pair for pair in itertools.combinations(known, 2) if mismatch(*pair) is None]
        values = [(before.value, after.value) for before, after in alike]
        lines.append(f"  {'where runs compare':24}{differences_of(values)} ({len(alike)} pairs)")
        lines.append(f"  {'interval of p50':24}{covered(map(p50_of, kept))}")
        relative = [(ratio.value, ratio.low, ratio.high) for ratio in known]
        lines.append(f"  {'interval of the ratio':24}{covered(relative)}")
    return "\n".join(lines)


def p50_of(run: Run) -> Sequence[float]:
    """Return p50 with its interval."""
    return _over_runs(run, run["p50_ns"], BETWEEN_RUNS)


def _over_runs(run: Run, number: Sequence[float], between_runs: float) -> Sequence[float]:
    """Widen what was stored, on shared machines, before intervals knew that runs differ."""
    value, low, high = number
    if "on_shared_machine" in run or low is None:
        return number
    return (value, *over_runs(value, (low, high), between_runs))


def verdicts(runs: Sequence[Run]) -> str:
    """Return what stored runs say of the runs of a file, and what a trend finds in them."""
    trials = [stored_trial(run) for run in runs if not run.get("busy")]
    beside = [stored_trial(run) for run in runs if run.get("busy")]
    if not trials:
        return "no run yet"
    lines = [
        tabulate(verdict_rows(trials), header=VERDICT_HEADER),
        tabulate(rows_by_case(trials), header=CASE_HEADER),
        *stored_sentences(trials),
        *beside_busy(trials, beside),
    ]
    for case in sorted({trial.case for trial in trials}):
        of_case = [trial for trial in trials if trial.case == case and trial.relative is not None]
        of_case = of_case[:_TREND_RUNS]
        blurred = sum(bool(blurs_series(trial.flags)) for trial in of_case)
        steps = ", ".join(map(told_step, trend_steps(of_case, 0, 0.0))) or "none"
        lines.append(
            f"trend of {case[0]}, {case[1]} threads, {len(of_case)} runs, "
            f"of which {blurred} decide nothing: steps: {steps}"
        )
        for changed in _CHANGED_AT:
            if changed <= len(of_case) - _FEWEST_AFTER:
                steps = ", ".join(map(told_step, trend_steps(of_case, changed, 0.10))) or "none"
                lines.append(f"  with +10 % from run {changed} on: {steps}")
    return "\n".join(lines)


def trend_steps(trials: Sequence[StoredTrial], changed: int, by: float) -> tuple[Step, ...]:
    """Return the steps of a trend over trials, those from an index on made slower by so much."""
    ratios = [
        made_slower(trial.relative, by if index >= changed else 0.0)
        for index, trial in enumerate(trials)
        if trial.relative is not None
    ]
    points = [
        Point(
            run_id="",
            started_at="",
            commit="",
            ratio=ratio.value,
            blurring=blurs_series(trial.flags),
        )
        for trial, ratio in zip(trials, ratios, strict=True)
    ]
    return steps_of(on_one_scale(points, ratios), ratios)


def told_step(step: Step) -> str:
    """Return a step in a few words."""
    unlike = f" ({step.unlike} changed, too)" if step.unlike else ""
    return f"{100 * step.change:+.1f} % at {step.index}{unlike}"


def beside_busy(trials: Sequence[StoredTrial], beside: Sequence[StoredTrial]) -> list[str]:
    """Return what runs of a quiet machine say of those beside a busy process."""
    spreads = run_spreads(trials)
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for trial in beside:
        judged = [*trials, trial]
        verdict = verdict_on(len(trials), judged, spreads, slowdown=0.0, way=Way.EARLIER)
        counts[trial.threads][verdict] += 1
    return [
        f"beside a busy process, {threads} threads, {of_threads.total()} runs by those without: "
        + ", ".join(f"{verdict} {count}" for verdict, count in of_threads.most_common())
        for threads, of_threads in sorted(counts.items())
    ]


def stored_trial(run: Run) -> StoredTrial:
    """Return a line of the file as a trial of the self-test of stored comparisons."""
    trial = StoredTrial(
        model=run["model"],
        threads=run["threads"] or 0,
        flags=flags_now(run),
        load=run["load"][0],
        wall_s=run["wall_s"],
        at=run["at"],
    )
    if run["status"] != "measured":
        return replace(trial, cause=run["status"])
    if isinstance(run["relative"], str):
        return replace(trial, cause=run["relative"])
    seen, low, high, estimator, *weights = run["relative"]
    launches = run["launches"]
    weight = weights[0] if weights else None
    by_weight = ratios_by_weight(list(map(turns_of, launches)))
    if weight is None:
        ratios = tuple(run.get("ratios") or map(OF_LAUNCHES[estimator], launches))
    else:
        # As it is made today, whatever made the one that is stored.
        ratios, estimator = by_weight[WEIGHTS.index(weight)], LOWS
    value = median(ratios)
    identity = launches[0]["yardstick"].split()
    name, digest, library, version, kernels, threads, _ = identity
    cpus = [median(launch["cpus"][side] for launch in launches) for side in (0, 1)]
    return replace(
        trial,
        relative=RelativeLatency(
            yardstick=Yardstick(
                name=name,
                digest=digest,
                library=library,
                version=version,
                kernels=kernels,
                threads=int(threads),
            ),
            estimator=estimator,
            ratios=ratios,
            value=value,
            low=value / seen * low,
            high=value / seen * high,
            best_s=None,
            model_cpus=cpus[0],
            yardstick_cpus=cpus[1],
            handover_s=run.get("handover_s"),
            memory_s=memory_of(launches),
            weight=weight,
            by_weight=by_weight,
        ),
    )


def flags_now(run: Run) -> tuple[str, ...]:
    """Return the flags of a run, with the one that older versions did not have."""
    turns = [turns_of(launch) for launch in run.get("launches", ()) if "memory_low_ns" in launch]
    identities = [
        launch["yardstick"] for launch in run.get("launches", ()) if "yardstick" in launch
    ]
    several = any(int(identity.split()[-2]) > 1 for identity in identities)
    slowdown = memory_slowdown(turns)
    busy = slowdown is not None and slowdown > (BUSY_BESIDE_THREADS if several else BUSY)
    return tuple(dict.fromkeys([*run["flags"], *["MEMORY-BUSY"] * busy]))


def memory_of(launches: Sequence[Run]) -> float | None:
    """Return what a pass over memory took, in seconds; ``None`` of trials by older versions."""
    if not all("memory_mean_ns" in launch for launch in launches):
        return None
    return median(median(launch["memory_mean_ns"]) for launch in launches) * 1e-9


def turns_of(launch: Run) -> YardstickTurns:
    """Return the rounds of a process as a run document holds them."""
    return YardstickTurns(
        best_handover_ns=launch.get("best_handover_ns"),
        **{name: tuple(launch[name]) for name in _OF_ROUNDS if name in launch},
    )


def occasions(runs: Sequence[Run]) -> int:
    """Return on how many occasions runs were made."""
    times = sorted(datetime.fromisoformat(run["at"]) for run in runs)
    return bool(times) + sum(later - before > _APART for before, later in itertools.pairwise(times))


def counted_flags(runs: Sequence[Run]) -> list[tuple[str, int]]:
    """Return how many runs carry each flag, the most frequent first."""
    return Counter(name for run in runs for name in set(flags_now(run))).most_common()


def yardsticks(runs: Sequence[Run]) -> str:
    """Return which yardsticks took turns, and in how many runs."""
    names = Counter(
        launch["yardstick"].partition(" ")[0] if "yardstick" in launch else "none"
        for run in runs
        for launch in run["launches"][:1]
    )
    return ", ".join(f"{name} in {count}" for name, count in names.most_common()) or "none"


def of_launches(run: Run, estimate: Callable[[Run], float]) -> float | None:
    """Return the median over the processes of a run; ``None`` where one has no rounds."""
    launches = run["launches"]
    if not all("yardstick" in launch for launch in launches):
        return None
    return median(map(estimate, launches))


def floor(values: Sequence[float]) -> float:
    """Return the 5th percentile."""
    return sorted(values)[len(values) * _FLOOR_PERCENT // 100]


def ratio_of_blocks(launch: Run) -> float:
    """Return the median of the ratios, round by round."""
    pairs = zip(launch["model_mean_ns"], launch["yardstick_mean_ns"], strict=True)
    return median(model / work for model, work in pairs)


def ratio_of_floors(launch: Run) -> float:
    """Return the ratio of the floors of both sides."""
    return floor(launch["model_mean_ns"]) / floor(launch["yardstick_mean_ns"])


def ratio_of_lows(launch: Run) -> float:
    """Return the ratio of the floors of the fastest of each block."""
    return floor(launch["model_low_ns"]) / floor(launch["yardstick_low_ns"])


#: What a ratio is made of, by the name of its estimator.
OF_LAUNCHES: dict[str, Callable[[Run], float]] = {
    "floors": ratio_of_floors,
    "lows": ratio_of_lows,
    "blocks": ratio_of_blocks,
}

#: What is compared, by its name in the table.
ESTIMATES: dict[str, Callable[[Run], float | None]] = {
    "p50": lambda run: float(run["p50_ns"][0]),
    "floor": lambda run: of_launches(run, lambda launch: floor(launch["model_mean_ns"])),
    "yardstick itself": lambda run: of_launches(
        run, lambda launch: median(launch["yardstick_mean_ns"])
    ),
    "ratio of blocks": lambda run: of_launches(run, ratio_of_blocks),
    "ratio of floors": lambda run: of_launches(run, ratio_of_floors),
    "ratio of lows": lambda run: of_launches(run, ratio_of_lows),
    "latency_relative": lambda run: (
        None if (relative := stored_trial(run).relative) is None else relative.value
    ),
}


def differences(values: Sequence[float | None]) -> str:
    """Return how much two runs differ: the median and the 95th percentile of all pairs."""
    known = [value for value in values if value is not None]
    return differences_of(itertools.combinations(known, 2))


def weighed_differences(runs: Sequence[RelativeLatency]) -> str:
    """Return the same of ratios to as many passes over memory as all other runs say."""
    pairs = []
    for first, second in itertools.combinations(runs, 2):
        others = [run for run in runs if run not in (first, second)]
        weight = memory_weight(others) if others else first.weight
        pairs.append((weighed(first, weight).value, weighed(second, weight).value))
    return differences_of(pairs)


def differences_of(pairs: Iterable[tuple[float, float]]) -> str:
    """Return how much the numbers of each pair differ: the median and the 95th percentile."""
    apart = sorted(max(pair) / min(pair) - 1 for pair in pairs)
    if not apart:
        return "no two runs have one"
    most = apart[min(len(apart) - 1, len(apart) * 95 // 100)]
    return f"two runs differ by {median(apart):6.1%} (median), 95 % by less than {most:6.1%}"


def covered(intervals: Iterable[Sequence[Any]]) -> str:
    """Return in how many runs an interval (value, low, high, …) covers the median of all values."""
    runs = list(intervals)
    if len(runs) < 2 or all(run[1] is None for run in runs):
        return "fewer than two runs have one"
    hits, known = coverage(runs)
    width = median((run[2] - run[1]) / 2 / run[0] for run in runs if run[1] is not None)
    return f"covers in {hits} of {known} runs, half its width is {width:.1%} (median)"


def coverage(runs: Sequence[Sequence[Any]]) -> tuple[int, int]:
    """Return how many intervals cover the median of all values, and how many there are."""
    middle = median(run[0] for run in runs)
    known = [run for run in runs if run[1] is not None]
    return sum(run[1] <= middle <= run[2] for run in known), len(known)


if __name__ == "__main__":
    sys.exit(main())
