"""Whether ``--ort-load=peak:…`` on an endpoint finds the rate that a Poisson sender by hand finds.

    python benchmarks/poisson_sender.py MODEL http://127.0.0.1:8000/v2/models/NAME/infer
        [--bound 50ms] [--percent 99] [--rounds 1]

Searches the highest rate at which a percentile keeps a bound twice in turn: through the load pass,
and by a sender of this file, which has sockets of asyncio and nothing of this package, draws its
own arrivals, and takes the percentile of its latencies from the scheduled arrival. Both send
tensors of float32 as JSON, and test each rate for 10 s at least, and with as many requests as
MLPerf's generator wants (68 for p90, 700 for p99). Prints every test of both, both rates and their
ratio; with several rounds the ratio of the medians. Exit status 1 where they are more than 15 %
apart. Whoever runs this starts the service.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

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
    url: str, low: float, bound_s: float, percent: int
) -> tuple[float, list[tuple[float, bool]]]:
    """Bisect for the highest rate that keeps the bound."""
    request, tests, high = request_by_hand(url), [], 0.0

    def keeps(rate: float) -> bool:
        tests.append((rate, asyncio.run(latency_by_hand(url, request, rate, percent)) <= bound_s))
        return tests[-1][1]

    while not keeps(low):
        low, high = low / 1.5, low
    while not high or high > (1 + RESOLUTION) * low:
        middle = (low + high) / 2 if high else 1.3 * low
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low, tests


# -- until here -----------------------------------------------------------------------------------


def peak_of_ours(
    model: str, url: str, bound: str, percent: int
) -> tuple[float, list[tuple[float, bool]]]:
    """Search through the load pass, in a run of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "run.json"
        command = (
            sys.executable, "-m", "pytest", "--pyargs", "pytest_ortbench.suites.test_load",
            f"--ort-models={model}", f"--ort-endpoint={url}", "--ort-providers=endpoint:json",
            f"--ort-load=peak:p{percent}:{bound}", f"--ort-json={document}", "--ort-no-results",
            "--ort-workers=1", "--ort-time=2", "-p", "no:cacheprovider",
        )  # fmt: skip
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if not document.exists():
            sys.exit(done.stdout)
        (case,) = json.loads(document.read_text())["cases"]
    if case["failure"] is not None:
        sys.exit(case["failure"]["message"])
    (load,) = case["loads"]
    tests = [(test["rate_per_s"], test["valid"]) for test in load["tests"]]
    if load["answer"] is None:
        sys.exit(f"no rate was VALID: {load['reason']}; {tests}")
    return load["tests"][load["answer"]]["rate_per_s"], tests


def main() -> int:
    """Compare both; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("url")
    parser.add_argument("--bound", default="50ms")
    parser.add_argument("--percent", type=int, choices=sorted(LEAST_REQUESTS), default=99)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()

    from pytest_ortbench.core.units import parse_amount

    bound_s = parse_amount(arguments.bound, "s", place="--bound")
    percent = arguments.percent
    ours: list[float] = []
    hand: list[float] = []
    for number in range(arguments.rounds):
        print(f"round {number + 1}: p{percent} within {arguments.bound}", flush=True)
        for which in ("ours", "hand") if number % 2 == 0 else ("hand", "ours"):
            if which == "ours":
                rate, tests = peak_of_ours(arguments.model, arguments.url, arguments.bound, percent)
                ours.append(rate)
            else:
                low = 0.5 * ours[0] if ours else 20.0
                rate, tests = peak_by_hand(arguments.url, low, bound_s, percent)
                hand.append(rate)
            shown = ", ".join(f"{r:.1f} {'VALID' if ok else 'INVALID'}" for r, ok in tests)
            print(f"  {which}: {rate:.1f}/s ({shown})", flush=True)
    ratio = statistics.median(ours) / statistics.median(hand)
    within = abs(ratio - 1) <= ALLOWED
    print(
        f"peak {statistics.median(ours):.1f}/s, by hand {statistics.median(hand):.1f}/s, ratio "
        f"{ratio:.3f}: {'within' if within else 'NOT within'} {100 * ALLOWED:g} %"
    )
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
