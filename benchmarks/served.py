"""What a service costs beside the bare session, what batches gain, and what being watched costs.

    python benchmarks/served.py cost MODEL           # a request over HTTP beside the session
    python benchmarks/served.py batches MODEL        # rate with and without joined requests
    python benchmarks/served.py watching MODEL       # with and without metrics, in turns

MODEL is a file, or a name such as builtin:resnet50. Services are started on loopback by
``ortbench serve``; requests are tensors as bytes. Blocks of both sides take turns, so that a busy
machine disturbs both.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import numpy as np
import psutil

from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.serving.protocol import InferRequest, WireTensor, encode_request
from pytest_ortbench.serving.served_model import ServedModel
from pytest_ortbench.session import Session

NAME = "m"
PATH = f"/v2/models/{NAME}/infer"
BLOCKS, OF_A_BLOCK = 30, 40


class Served:
    """A service and one connection to it."""

    def __init__(self, port: int, pid: int, message: tuple[bytes, dict[str, str]]) -> None:
        self.port = port
        self.process = psutil.Process(pid)
        self._message = message
        self._connection = self.connection()

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def request(self, connection: http.client.HTTPConnection) -> str:
        body, headers = self._message
        connection.request("POST", PATH, body, headers)
        response = connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise SystemExit(f"{response.status}: {answer[:300]!r}")
        return response.headers.get("Server-Timing", "")

    def block(self, count: int) -> tuple[list[float], list[dict[str, float]]]:
        """Seconds of requests one after the other, and milliseconds of their steps."""
        took, steps = [], []
        for _ in range(count):
            began = time.perf_counter()
            timing = self.request(self._connection)
            took.append(time.perf_counter() - began)
            found = re.findall(r"(\w+);dur=([\d.]+)", timing)
            steps.append({name: float(ms) for name, ms in found})
        return took, steps

    def rate(self, clients: int, seconds: float) -> tuple[float, list[float]]:
        """Requests a second of clients that ask without a pause, and their latencies."""
        until = time.perf_counter() + seconds
        latencies: list[float] = []

        def ask() -> None:
            with closing(self.connection()) as connection:
                while (began := time.perf_counter()) < until:
                    self.request(connection)
                    latencies.append(time.perf_counter() - began)

        threads = [threading.Thread(target=ask) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(latencies) / seconds, latencies


@contextmanager
def serving(model: str, message: tuple[bytes, dict[str, str]], *options: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "pytest_ortbench.cli", "serve", model, "--port=0"]
    command += [f"--name={NAME}", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        match = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        if match is None:
            raise SystemExit("the service did not start")
        yield Served(int(match[1]), process.pid, message)
    finally:
        process.terminate()
        process.wait()


def sessions_of(model: str) -> tuple[ServedModel, tuple[bytes, dict[str, str]]]:
    """The session of this process, and a request with what it is fed."""
    with Session(Path.cwd(), notify=print) as session:
        case = session.prepare(
            session.plan(PlanRequest(models=(model,), generate="off")).entries[0]
        )
    bare = ServedModel(case, NAME)
    tensors = tuple(
        WireTensor(name=tensor.name, datatype=tensor.datatype, array=bare.sample[tensor.name])
        for tensor in bare.metadata.inputs
    )
    wire = encode_request(InferRequest(inputs=tensors, binary=True), binary=True)
    return bare, (wire.body, wire.headers)


def milliseconds(seconds: Sequence[float], percent: float = 50) -> str:
    return f"{1000 * float(np.percentile(seconds, percent)):.3f} ms"


def cost(model: str) -> None:
    bare, message = sessions_of(model)
    alone: list[float] = []
    over: list[float] = []
    steps: list[dict[str, float]] = []
    with serving(model, message) as served:
        served.block(OF_A_BLOCK)
        for _ in range(OF_A_BLOCK):
            bare.run(bare.sample)
        cpu = 0.0
        for _ in range(BLOCKS):
            for _ in range(OF_A_BLOCK):
                began = time.perf_counter()
                bare.run(bare.sample)
                alone.append(time.perf_counter() - began)
            before = sum(served.process.cpu_times()[:2])
            took, parts = served.block(OF_A_BLOCK)
            cpu += sum(served.process.cpu_times()[:2]) - before
            over += took
            steps += parts
        resident = served.process.memory_info().rss
    print(f"bare session      p50 {milliseconds(alone)}, p99 {milliseconds(alone, 99)}")
    print(f"over HTTP         p50 {milliseconds(over)}, p99 {milliseconds(over, 99)}")
    for name in steps[0]:
        print(f"  {name:<15} p50 {statistics.median(step[name] for step in steps):.3f} ms")
    rest = [1000 * whole - sum(step.values()) for whole, step in zip(over, steps, strict=True)]
    print(f"  HTTP and client p50 {statistics.median(rest):.3f} ms")
    print(f"processor time    {1000 * cpu / len(over):.3f} ms a request")
    print(f"resident memory   {resident / 2**20:.0f} MiB")
    cpus = len(os.sched_getaffinity(0))
    memory = psutil.virtual_memory().total
    print(
        f"this machine      room for {memory // resident} of them; its {cpus} processors suffice "
        f"for at most {cpus * len(over) / cpu:.0f} requests a second"
    )


def batches(model: str) -> None:
    _, message = sessions_of(model)
    rates: dict[str, list[float]] = {"off": [], "on": []}
    with ExitStack() as stack:
        off = stack.enter_context(serving(model, message))
        on = stack.enter_context(serving(model, message, "--batch=8", "--batch-wait=5ms"))
        for name, served in (("off", off), ("on", on)) * 5:
            rate, latencies = served.rate(16, 4.0)
            rates[name].append(rate)
            print(
                f"batches {name:<3} {rate:7.0f}/s, p50 {milliseconds(latencies)}, "
                f"p99 {milliseconds(latencies, 99)}"
            )
    ratios = [there / without for there, without in zip(rates["on"], rates["off"], strict=True)]
    print(
        f"rate with batches ÷ without: {statistics.median(ratios):.2f}, each pair: " + pairs(ratios)
    )


def pairs(ratios: Sequence[float]) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)


def watching(model: str) -> None:
    _, message = sessions_of(model)
    ratios, differences = [], []
    with ExitStack() as stack:
        plain = stack.enter_context(serving(model, message, "--no-metrics"))
        watched = stack.enter_context(serving(model, message))
        for served in (plain, watched):
            served.block(3 * OF_A_BLOCK)
        for number in range(2 * BLOCKS):
            sides = {}
            order = (plain, watched) if number % 2 else (watched, plain)
            for served in order:
                sides[served] = statistics.median(served.block(OF_A_BLOCK)[0])
            ratios.append(sides[watched] / sides[plain])
            differences.append(1e6 * (sides[watched] - sides[plain]))
    # Ranks of the binomial for a median at 95 %.
    rank = int(len(ratios) / 2 - 1.96 * len(ratios) ** 0.5 / 2)

    def interval(values: Sequence[float]) -> tuple[float, float, float]:
        ordered = sorted(values)
        return statistics.median(values), ordered[rank], ordered[-rank - 1]

    middle, low, high = interval(ratios)
    print(f"time of a request, watched ÷ unwatched: {middle:.4f} [{low:.4f}, {high:.4f}]")
    middle, low, high = interval(differences)
    print(f"difference: {middle:.1f} µs a request [{low:.1f}, {high:.1f}]")
    print(f"{len(ratios)} pairs of blocks of {OF_A_BLOCK} requests")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("cost", "batches", "watching"))
    parser.add_argument("model")
    options = parser.parse_args()
    {"cost": cost, "batches": batches, "watching": watching}[options.what](options.model)


if __name__ == "__main__":
    main()
