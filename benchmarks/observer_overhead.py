"""What watching its requests costs a service: ``observer_overhead``.

    python benchmarks/observer_overhead.py [MODEL] [--seconds 40]

MODEL is a file, a name such as builtin:resnet50, or one of ``null`` (an Identity) and ``5ms``
(layers that are made here, as many as take 5 ms alone); without it, both of these. Requests go
through three services of one session in this process, without HTTP, which costs all the same: one
has neither metrics nor traces, one the metrics of ``ortbench serve``, one these and the traces of
``--traces``. They take turns request by request, in random order. Printed are medians over all
rounds, with their intervals: the ratio of the times of a request beside the service without
either, and the difference in microseconds. Spans are made behind the response: what that takes of
the loop, and what writing them down for an export takes in a thread, is printed for each request,
and so is what writing all metrics down for a scraper takes. For ``5ms`` the exit status is 1
where the interval of a ratio reaches 2 %.
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
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from served import NAME, PATH, sessions_of

from pytest_ortbench.serving.metrics import ServiceMetrics, Unobserved
from pytest_ortbench.serving.protocol import HEADER_LENGTH
from pytest_ortbench.serving.served_model import ServedModel
from pytest_ortbench.serving.service import Service, ServiceLimits
from pytest_ortbench.serving.steps import Steps
from pytest_ortbench.serving.traces import Traces

#: Of the request time of a model of 5 ms.
ALLOWED = 0.02
NULL, FIVE_MS = "null", "5ms"
WANTED_S = 0.005
WARM, MOST_ROUNDS, SCRAPES = 100, 20_000, 50
PLAIN, METRICS, TRACES = "neither", "metrics", "metrics and traces"
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


class WritingExporter(SpanExporter):
    """Writes spans down as OTLP has them, sends nothing, and counts.

    Attributes:
        spans: How many.
        seconds: Processor time that it took.
    """

    def __init__(self) -> None:
        self.spans, self.seconds = 0, 0.0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        began = time.thread_time()
        encode_spans(spans).SerializePartialToString()
        self.seconds += time.thread_time() - began
        self.spans += len(spans)
        return SpanExportResult.SUCCESS


async def in_turns(
    model: ServedModel,
    message: tuple[bytes, dict[str, str]],
    metrics: ServiceMetrics,
    traces: Traces,
    seconds: float,
) -> tuple[list[dict[str, float]], list[float]]:
    """Seconds of a request to each service, by rounds, and seconds of making its spans."""
    body, headers = message
    services = {
        PLAIN: Service(model, ServiceLimits(), Unobserved()),
        METRICS: Service(model, ServiceLimits(), metrics),
        TRACES: Service(model, ServiceLimits(), metrics),
    }
    draw, rounds, behind = random.Random(0), [], []

    async def took(name: str) -> float:
        steps = Steps()
        began = time.perf_counter()
        await services[name].infer(NAME, "", headers.get(HEADER_LENGTH), parts(body), steps)
        ended = time.perf_counter()
        if name == TRACES:
            traces.add("POST", PATH, PATH, headers, steps)
            behind.append(time.perf_counter() - ended)
        return ended - began

    for service in services.values():
        service.start()
    try:
        for _ in range(WARM):
            for name in services:
                await took(name)
        until = time.monotonic() + seconds
        while len(rounds) < MOST_ROUNDS and time.monotonic() < until:
            order = draw.sample(list(services), len(services))
            rounds.append({name: await took(name) for name in order})
    finally:
        for service in services.values():
            await service.end()
    return rounds, behind


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
    metrics, exporter, provider = ServiceMetrics("m", "cpu"), WritingExporter(), TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    traces = Traces("m", provider)
    before = os.getloadavg()[0]
    rounds, behind = asyncio.run(in_turns(model, message, metrics, traces, seconds))
    traces.close()
    request_s = statistics.median(times[PLAIN] for times in rounds)
    print(
        f"{name}: request {1000 * request_s:.3f} ms (median of {len(rounds)} rounds, load "
        f"{before:.2f} to {os.getloadavg()[0]:.2f})"
    )
    keeps = True
    for side in (METRICS, TRACES):
        ratio, low, high = interval([times[side] / times[PLAIN] for times in rounds])
        apart, from_s, to_s = interval([1e6 * (times[side] - times[PLAIN]) for times in rounds])
        print(f"  {side}: observer_overhead {ratio:.4f} [{low:.4f}, {high:.4f}], "
              f"{apart:.2f} µs a request [{from_s:.2f}, {to_s:.2f}]")  # fmt: skip
        keeps &= high - 1 < ALLOWED
    apart, from_s, to_s = interval([1e6 * took for took in behind])
    print(
        f"  making spans behind the response: {apart:.2f} µs a request [{from_s:.2f}, {to_s:.2f}]"
    )
    print(f"  writing them for an export: {1e6 * exporter.seconds / len(behind):.2f} µs a request "
          f"({exporter.spans / len(behind):.1f} spans)")  # fmt: skip
    scrapes = []
    for _ in range(SCRAPES):
        began = time.perf_counter()
        metrics.text()
        scrapes.append(time.perf_counter() - began)
    print(f"  a scrape: {1000 * statistics.median(scrapes):.2f} ms", flush=True)
    if name != FIVE_MS:
        return True
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
