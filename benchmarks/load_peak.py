"""Whether ``--ort-load=peak:…`` finds the rate that a bisection by hand finds, in one run.

    python benchmarks/load_peak.py [--model builtin:bert_tiny] [--threads 1] [--bound 200ms]
        [--rounds 1]

Searches the highest VALID rate twice in turn: through the load pass, and by a bare script in a
process of its own that holds a session, a queue, one thread and MLPerf's load generator, and
nothing of this package. Both ask the generator for 10 s and 700 queries a test. Prints every test,
both rates and their ratio; with several rounds the ratio of the medians. Exit status 1 where they
are more than 15 % apart. A shared machine gives the searches different moments: more rounds tell a
ratio that is off by chance from one that is wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

#: What the two rates may differ by.
ALLOWED = 0.15
#: Where both searches stop: the edges of the bracket are this close.
RESOLUTION = 0.05
PERCENT, LEAST_S, LEAST_QUERIES = 99.0, 10.0, 700


# -- by hand: nothing of the package from here ----------------------------------------------------


def by_hand(asked: dict[str, Any]) -> None:
    """Bisect between a low and a high rate; print the result as JSON."""
    import mlperf_loadgen
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = asked["threads"]
    session = onnxruntime.InferenceSession(
        asked["model"], options, providers=["CPUExecutionProvider"]
    )
    feeds = dict(np.load(asked["feeds"]))
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()

    def serve() -> None:
        while True:
            query = waiting.get()
            session.run(None, feeds)
            response = mlperf_loadgen.QuerySampleResponse(query, 0, 0)
            mlperf_loadgen.QuerySamplesComplete([response])

    threading.Thread(target=serve, daemon=True).start()
    for _ in range(30):
        session.run(None, feeds)
    tests = []

    def is_valid(rate: float) -> bool:
        settings = mlperf_loadgen.TestSettings()
        # MLPerf's own seeds: with seed 0 the arrivals come some per cent slower than asked for,
        # with these faster, which is nothing that the searches should differ by.
        settings.FromConfig("", "by-hand", "Server", 0)
        settings.scenario = mlperf_loadgen.TestScenario.Server
        settings.mode = mlperf_loadgen.TestMode.PerformanceOnly
        settings.min_duration_ms = round(1000 * LEAST_S)
        settings.min_query_count = LEAST_QUERIES
        settings.server_target_qps = rate
        settings.server_target_latency_ns = round(1e9 * asked["bound_s"])
        settings.server_target_latency_percentile = PERCENT / 100
        with tempfile.TemporaryDirectory() as folder:
            logs = mlperf_loadgen.LogSettings()
            logs.enable_trace = False
            logs.log_output.outdir = folder
            logs.log_output.copy_summary_to_stdout = False
            sut = mlperf_loadgen.ConstructSUT(
                lambda samples: [waiting.put(sample.id) for sample in samples], lambda: None
            )
            library = mlperf_loadgen.ConstructQSL(1, 1, lambda _: None, lambda _: None)
            mlperf_loadgen.StartTestWithLogSettings(
                sut, library, settings, logs, f"{folder}/none.config"
            )
            mlperf_loadgen.DestroyQSL(library)
            mlperf_loadgen.DestroySUT(sut)
            summary = (Path(folder) / "mlperf_log_summary.txt").read_text()
        valid = "Result is : VALID" in summary
        tests.append([rate, valid])
        return valid

    low, high = asked["low"], asked["high"]
    while low > 0 and not is_valid(low):
        low, high = low / 2, low
    while is_valid(high):
        low, high = high, 1.3 * high
    while high > (1 + RESOLUTION) * low:
        middle = (low + high) / 2
        if is_valid(middle):
            low = middle
        else:
            high = middle
    print(json.dumps({"rate": low, "tests": tests}))


# -- until here -----------------------------------------------------------------------------------


def main() -> int:
    """Compare both; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="builtin:bert_tiny")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bound", default="200ms")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()

    import numpy as np
    from paired_cases import bench

    from pytest_ortbench.core.units import format_amount, parse_amount
    from pytest_ortbench.execution.standard import measure
    from pytest_ortbench.passes.load.run import measure_loads
    from pytest_ortbench.worker.inputs import make_feeds

    ours: list[float] = []
    hand: list[float] = []
    with bench([arguments.model], arguments.threads) as made:
        (case,) = made.cases
        sampling = dataclasses.replace(case.sampling, time_s=3.0, workers=1)
        case = dataclasses.replace(case, sampling=sampling)
        feeds = made.folder / "feeds.npz"
        np.savez(feeds, **make_feeds(case.inputs, seed=case.seed))
        for number in range(arguments.rounds):
            result = measure(case, made.launcher, made.folder)
            if result.failure is not None:
                sys.exit(f"{case.case_id}: {result.failure.message}")
            samples = result.measurements[0].samples
            mean_s = samples.sum_ns * 1e-9 / samples.count
            bound_s = parse_amount(arguments.bound, "s", place="--bound")
            asked = {
                "model": case.variant.path,
                "feeds": str(feeds),
                "threads": arguments.threads,
                "bound_s": bound_s,
                "low": 0.4 / mean_s,
                "high": 1.0 / mean_s,
            }
            say(
                f"round {number + 1}: {case.case_id}, mean {format_amount(mean_s, 's')}, "
                f"p99 within {format_amount(bound_s, 's')}"
            )
            for which in ("ours", "hand") if number % 2 == 0 else ("hand", "ours"):
                if which == "ours":
                    text = f"peak:p99:{arguments.bound}"
                    (load,) = measure_loads(result, (text,), made.launcher).loads
                    if load.test is None:
                        sys.exit(f"{text}: {load.reason}")
                    tests = [(test.rate_per_s or 0.0, bool(test.valid)) for test in load.tests]
                    rate = load.test.rate_per_s or 0.0
                    ours.append(rate)
                else:
                    rate, tests = run_by_hand(asked)
                    hand.append(rate)
                shown = ", ".join(f"{r:.1f} {'VALID' if ok else 'INVALID'}" for r, ok in tests)
                say(f"  {which}: {rate:.1f}/s ({shown})")
    ratio = statistics.median(ours) / statistics.median(hand)
    within = abs(ratio - 1) <= ALLOWED
    say(
        f"peak {statistics.median(ours):.1f}/s, by hand {statistics.median(hand):.1f}/s, ratio "
        f"{ratio:.3f}: {'within' if within else 'NOT within'} {100 * ALLOWED:g} %"
    )
    return 0 if within else 1


def run_by_hand(asked: dict[str, Any]) -> tuple[float, list[tuple[float, bool]]]:
    """Run the bare search in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--by-hand", json.dumps(asked)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return found["rate"], [(rate, valid) for rate, valid in found["tests"]]


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--by-hand"]:
        by_hand(json.loads(sys.argv[2]))
    else:
        sys.exit(main())
