"""Whether ``--ort-load=peak:…`` on an endpoint finds the rate that a Poisson sender by hand finds.

    python benchmarks/poisson_sender.py MODEL http://127.0.0.1:8000/v2/models/NAME/infer
        [--bound 200ms] [--percent 90] [--rounds 1]

Searches the highest rate at which a percentile keeps a bound twice: through the load pass, and
by a sender of this file, which has sockets of asyncio and nothing of this package, draws its
own arrivals, and takes the percentile of its latencies from the scheduled arrival. Both send
tensors of float32 as JSON, and test each rate for 10 s at least, and with as many requests as
MLPerf's generator wants (68 for p90, 700 for p99). Both searches go on at the same time, and a
test of the one follows a test of the other, so that a machine whose load changes is the same for
both; a rate is too high where two tests in a row break the bound. It tells the load average before
each round and after it. Prints every test of both, both rates and their ratio; with several rounds
the ratio of the medians. Exit status 1 where they are more than 15 % apart. Whoever runs this
starts the service.

Name a bound of some ten times what one request takes. Near the time of a request its percentile
hardly depends on the rate, and a few milliseconds decide about a third of the peak.

The rules differ in one respect: the generator has to be 99 % sure that the percentile keeps the
bound, and the sender by hand takes the percentile as it is. With few requests that makes the
generator's peak the lower one.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import math
import os
import random
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.units import parse_amount
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.launch.launcher import Launcher, Worker
from pytest_ortbench.passes.load.questions import PutUnderLoad
from pytest_ortbench.passes.load.run import measure_loads
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.session import Session

#: What the two rates may differ by, and where both searches stop.
ALLOWED, RESOLUTION = 0.15, 0.05
LEAST_S, LEAST_REQUESTS = 10.0, {90: 68, 95: 140, 99: 700}


# -- by hand: nothing of the package from here ----------------------------------------------------


def request_by_hand(url: str) -> bytes:
    """Write one request with random numbers of the sizes that the service declares."""
    with urllib.request.urlopen(url.removesuffix("/infer")) as answer:
        declared = json.load(answer)
    inputs = []
    for tensor in declared["inputs"]:
        shape = [max(1, size) for size in tensor["shape"]]
        values = [random.gauss(0, 1) for _ in range(math.prod(shape))]
        inputs.append({"name": tensor["name"], "datatype": "FP32", "shape": shape, "data": values})
    outputs = [{"name": tensor["name"]} for tensor in declared["outputs"]]
    body = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    parts = urlsplit(url)
    lines = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return lines.encode() + body


async def latency_by_hand(url: str, request: bytes, rate: float, percent: int) -> float:
    """Send at a rate, and return a percentile of the seconds from the scheduled arrival."""
    parts, free, took = urlsplit(url), [], []

    async def send(due: float) -> None:
        await asyncio.sleep(due - time.perf_counter())
        pair = free.pop() if free else await asyncio.open_connection(parts.hostname, parts.port)
        pair[1].write(request)
        head = await pair[0].readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        await pair[0].readexactly(int(head.lower().split(b"content-length:")[1].split()[0]))
        took.append(time.perf_counter() - due)
        free.append(pair)

    due, dues = time.perf_counter() + 0.1, []
    for _ in range(max(LEAST_REQUESTS[percent], int(LEAST_S * rate))):
        due += random.expovariate(rate)
        dues.append(due)
    await asyncio.gather(*map(send, dues))
    for _, writer in free:
        writer.close()
    return sorted(took)[int(len(took) * percent / 100)]


def peak_by_hand(
    url: str, low: float, bound_s: float, percent: int, in_turn: Callable[[], Any]
) -> tuple[float, list[tuple[float, bool]]]:
    """Bisect for the highest rate that keeps the bound, each test within its turn.

    A rate is too high where two tests in a row break the bound: one may be disturbed.
    """
    request, tests, high = request_by_hand(url), [], 0.0

    def keeps(rate: float) -> bool:
        return keeps_once(rate) or keeps_once(rate)

    def keeps_once(rate: float) -> bool:
        with in_turn():
            latency_s = asyncio.run(latency_by_hand(url, request, rate, percent))
        print(f"  by hand {rate:.1f}/s: p{percent} {1e3 * latency_s:.1f} ms", flush=True)
        tests.append((rate, latency_s <= bound_s))
        return tests[-1][1]

    while not keeps(low):
        low, high = low / 1.5, low
    while not high or high > (1 + RESOLUTION) * low:
        middle = (low + high) / 2 if high else 1.3 * low
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low, tests


# -- until here -----------------------------------------------------------------------------------


class Turns:
    """Lets two take turns until one of them is done."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._turn = 0
        self._done = [False, False]

    @contextmanager
    def of(self, number: int) -> Iterator[None]:
        """Wait for the turn of one of them, and give it to the other one behind."""
        with self._changed:
            self._changed.wait_for(lambda: self._turn == number or self._done[1 - number])
        try:
            yield
        finally:
            self._pass_on(number)

    def end(self, number: int) -> None:
        """Note that one has no more tests."""
        self._done[number] = True
        self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        with self._changed:
            self._turn = 1 - number
            self._changed.notify_all()


class InTurnWorker:
    """A worker whose tests under load wait for their turn."""

    def __init__(self, worker: Worker, turns: Turns) -> None:
        self._worker, self._turns = worker, turns

    def ask(self, question: Any) -> Any:
        if not isinstance(question, PutUnderLoad):
            return self._worker.ask(question)
        with self._turns.of(0):
            return self._worker.ask(question)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)


class InTurnLauncher:
    """A launcher of such workers."""

    def __init__(self, launcher: Launcher, turns: Turns) -> None:
        self._launcher, self._turns = launcher, turns

    def open(self, case: Case, *, worker: int, deadline: float | None) -> Any:
        # The other search has half of the time.
        longer = None if deadline is None else deadline + case.sampling.timeout_s
        opened = self._launcher.open(case, worker=worker, deadline=longer)
        return InTurnWorker(opened, self._turns)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)


def round_of(
    result: CaseResult, launcher: Launcher, asked: argparse.Namespace, low: float
) -> dict[str, tuple[float, list[tuple[float, bool]]]]:
    """Search both peaks, test after test in turns, and return each with its tests."""
    turns = Turns()
    found: dict[str, tuple[float, list[tuple[float, bool]]]] = {}

    def ours() -> None:
        try:
            text = f"peak:p{asked.percent}:{asked.bound}"
            (load,) = measure_loads(result, (text,), InTurnLauncher(launcher, turns)).loads
            tests = [(test.rate_per_s or 0.0, bool(test.valid)) for test in load.tests]
            rate = 0.0 if load.test is None else load.test.rate_per_s or 0.0
            found["ours"] = rate, tests
            if load.reason or load.note:
                print(f"  {load.reason or load.note}", flush=True)
        finally:
            turns.end(0)

    thread = threading.Thread(target=ours)
    thread.start()
    try:
        bound_s = parse_amount(asked.bound, "s", place="--bound")
        found["hand"] = peak_by_hand(asked.url, low, bound_s, asked.percent, lambda: turns.of(1))
    finally:
        turns.end(1)
        thread.join()
    return found


def measured(asked: argparse.Namespace, session: Session) -> CaseResult:
    """Measure the endpoint one request at a time; its rate is where the search begins."""
    request = PlanRequest(
        models=(asked.model,),
        providers=(),
        endpoint=asked.url,
        endpoint_encodings=("json",),
        generate="off",
    )
    (entry,) = session.plan(request).entries
    case = session.prepare(entry)
    sampling = dataclasses.replace(case.sampling, time_s=2.0, workers=1, timeout_s=1200.0)
    with tempfile.TemporaryDirectory(prefix="ortbench-benchmark-") as folder:
        result = measure(
            dataclasses.replace(case, sampling=sampling), session.launcher, Path(folder)
        )
    if result.failure is not None:
        sys.exit(result.failure.message)
    return result


def main() -> int:
    """Compare both; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("url")
    parser.add_argument("--bound", default="200ms")
    parser.add_argument("--percent", type=int, choices=sorted(LEAST_REQUESTS), default=90)
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    rates: dict[str, list[float]] = {"ours": [], "hand": []}
    with Session(Path.cwd(), notify=print) as session:
        result = measured(asked, session)
        samples = result.measurements[0].samples
        low = 0.5 * samples.count / (samples.sum_ns * 1e-9)
        for number in range(asked.rounds):
            print(
                f"round {number + 1}: p{asked.percent} within {asked.bound}, load "
                f"{os.getloadavg()[0]:.2f}",
                flush=True,
            )
            found = round_of(result, session.launcher, asked, low)
            for side, (rate, tests) in found.items():
                rates[side].append(rate)
                shown = ", ".join(f"{r:.1f} {'VALID' if ok else 'INVALID'}" for r, ok in tests)
                print(f"  {side}: {rate:.1f}/s ({shown})", flush=True)
            print(f"  ours ÷ hand {rates['ours'][-1] / rates['hand'][-1]:.3f}, load "
                  f"{os.getloadavg()[0]:.2f}", flush=True)  # fmt: skip
    ours, hand = statistics.median(rates["ours"]), statistics.median(rates["hand"])
    within = abs(ours / hand - 1) <= ALLOWED
    print(
        f"peak {ours:.1f}/s, by hand {hand:.1f}/s, ratio {ours / hand:.3f}: "
        f"{'within' if within else 'NOT within'} {100 * ALLOWED:g} %"
    )
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
