"""What counting and timing its requests costs a service: ``observer_overhead``.

    python benchmarks/observer_overhead.py [MODEL] [--seconds 40]

MODEL is a file, a name such as builtin:resnet50, or one of ``null`` (an Identity) and ``5ms``
(layers that are made here, as many as take 5 ms alone); without it, both of these. Requests go
through two services of one session in this process, without HTTP, which costs both the same: one
has the metrics of ``ortbench serve``, the other none. They take turns request by request, in random
order. Printed are the medians over all pairs, with their intervals: the ratio of both times, and
the difference in microseconds a request; and what writing all metrics down for a scraper takes. For
``5ms`` the exit status is 1 where the interval of the ratio reaches 2 %.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from served import NAME, sessions_of

from pytest_ortbench.serving.metrics import ServiceMetrics, Unobserved
from pytest_ortbench.serving.protocol import HEADER_LENGTH
from pytest_ortbench.serving.served_model import ServedModel
from pytest_ortbench.serving.service import Service, ServiceLimits

#: Of the request time of a model of 5 ms.
ALLOWED = 0.02
NULL, FIVE_MS = "null", "5ms"
WANTED_S = 0.005
WARM, MOST_PAIRS, SCRAPES = 100, 20_000, 50
#: Width of the layers of the model that takes 5 ms.
WIDTH = 512


def layers(count: int, folder: Path) -> Path:
    """Write a model of so many layers; none for one that only hands on what it is fed."""
    draw = np.random.default_rng(0)
    size = WIDTH if count else 4
    nodes, weights, last = [], [], "x"
    for number in range(count):
        values = (draw.standard_normal((size, size)) / size**0.5).astype(np.float32)
        weights.append(numpy_helper.from_array(values, f"w{number}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"h{number}"]))
        last = f"h{number}"
    nodes.append(helper.make_node("Identity", [last], ["y"]))
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, size])],
        weights,
    )
    path = folder / f"layers{count}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def fastest_s(model: ServedModel) -> float:
    took = []
    for _ in range(50):
        began = time.perf_counter()
        model.run(model.sample)
        took.append(time.perf_counter() - began)
    return min(took)


def five_ms(folder: Path) -> Path:
    """Write the model whose inference takes about 5 ms here."""
    trial, _ = sessions_of(str(layers(16, folder)))
    return layers(max(1, round(16 * WANTED_S / fastest_s(trial))), folder)


async def parts(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def paired(
    model: ServedModel,
    message: tuple[bytes, dict[str, str]],
    metrics: ServiceMetrics,
    seconds: float,
) -> list[tuple[float, float]]:
    """Seconds of requests to the watched service and to the other one, in pairs."""
    body, headers = message
    watched = Service(model, ServiceLimits(), metrics)
    plain = Service(model, ServiceLimits(), Unobserved())
    draw, pairs = random.Random(0), []

    async def took(service: Service) -> float:
        began = time.perf_counter()
        await service.infer(NAME, "", headers.get(HEADER_LENGTH), parts(body))
        return time.perf_counter() - began

    for service in (watched, plain):
        service.start()
    try:
        for _ in range(WARM):
            await took(watched)
            await took(plain)
        until = time.monotonic() + seconds
        while len(pairs) < MOST_PAIRS and time.monotonic() < until:
            sides = {service: await took(service) for service in draw.sample((watched, plain), 2)}
            pairs.append((sides[watched], sides[plain]))
    finally:
        for service in (watched, plain):
            await service.end()
    return pairs


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median, and the ranks around it that hold it with 95 %."""
    ordered, count = sorted(values), len(values)
    rank = max(0, int(count / 2 - 1.96 * count**0.5 / 2))
    return statistics.median(ordered), ordered[rank], ordered[count - 1 - rank]


def observe(name: str, seconds: float, folder: Path) -> bool:
    """Print what being watched costs a model; return whether it keeps what is allowed."""
    made = {NULL: lambda: str(layers(0, folder)), FIVE_MS: lambda: str(five_ms(folder))}
    path = made[name]() if name in made else name
    model, message = sessions_of(path)
    metrics = ServiceMetrics("m", "cpu")
    before = os.getloadavg()[0]
    pairs = asyncio.run(paired(model, message, metrics, seconds))
    request_s = statistics.median(plain for _, plain in pairs)
    ratio, low, high = interval([watched / plain for watched, plain in pairs])
    apart, from_s, to_s = interval([1e6 * (watched - plain) for watched, plain in pairs])
    scrapes = []
    for _ in range(SCRAPES):
        began = time.perf_counter()
        metrics.text()
        scrapes.append(time.perf_counter() - began)
    print(
        f"{name}: request {1000 * request_s:.3f} ms (median of {len(pairs)} pairs, load "
        f"{before:.2f} to {os.getloadavg()[0]:.2f})"
    )
    print(f"  observer_overhead: {ratio:.4f} [{low:.4f}, {high:.4f}]")
    print(f"  difference: {apart:.2f} µs a request [{from_s:.2f}, {to_s:.2f}]")
    print(f"  a scrape: {1000 * statistics.median(scrapes):.2f} ms", flush=True)
    if name != FIVE_MS:
        return True
    keeps = high - 1 < ALLOWED
    print(f"  {'below' if keeps else 'NOT below'} {100 * ALLOWED:g} % of the request")
    return keeps


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", default="")
    parser.add_argument("--seconds", type=float, default=40.0)
    asked = parser.parse_args()
    names = (asked.model,) if asked.model else (FIVE_MS, NULL)
    with tempfile.TemporaryDirectory(prefix="ortbench-benchmark-") as folder:
        kept = [observe(name, asked.seconds, Path(folder)) for name in names]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
