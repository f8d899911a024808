"""What the client of an endpoint takes by itself: its requests to a responder of our own."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pytest_ortbench.core.exchange import ClientCost
from pytest_ortbench.engines.endpoint.worker import responder
from pytest_ortbench.engines.endpoint.worker.exchange_error import ExchangeError
from pytest_ortbench.engines.endpoint.worker.http_client import HttpClient, Reply
from pytest_ortbench.engines.endpoint.worker.openai_request import TokenRequest
from pytest_ortbench.engines.endpoint.worker.sent_request import HttpRequest, SentRequest
from pytest_ortbench.worker.percentiles import percentile_ns

#: Round trips one at a time, and seconds at most for them.
_SINGLE, _SINGLE_S = 300, 2.0
#: Requests in flight while the most a second are sought, and seconds of that.
_IN_FLIGHT, _MANY_S = 32, 0.7
#: Round trips before any counts.
_WARM = 20
_START_S = 20.0
#: Headers that say how a body is sent are the responder's own.
_OF_THE_WAY = ("content-length", "transfer-encoding", "connection", "date", "server", "keep-alive")


async def own_cost(request: SentRequest, reply: Reply, timeout_s: float) -> ClientCost:
    """Measure what a client takes by itself, with the same request and an answer of that size.

    Args:
        request: What is sent.
        reply: What the endpoint answered to it.
        timeout_s: For a round trip.
    """
    if isinstance(request, HttpRequest):
        answer = _answer(reply.headers, reply.body)
    elif isinstance(request, TokenRequest):
        answer = _answer({"Content-Type": "text/event-stream"}, request.whole_answer)
    else:
        return ClientCost(reason="the client's own time is measured only over HTTP")
    try:
        with _responding(answer) as port:
            client = HttpClient(timeout_s)
            try:
                return await _measured(client, request.at(f"http://127.0.0.1:{port}/"))
            finally:
                await client.close()
    except (OSError, ValueError, ExchangeError, subprocess.SubprocessError) as error:
        return ClientCost(reason=f"the responder did not answer: {error}")


async def _measured(client: HttpClient, request: HttpRequest | TokenRequest) -> ClientCost:
    for _ in range(_WARM):
        await request.send(client)
    took: list[int] = []
    until = time.monotonic() + _SINGLE_S
    while len(took) < _SINGLE and time.monotonic() < until:
        started = time.perf_counter_ns()
        await request.send(client)
        took.append(time.perf_counter_ns() - started)
    sent, seconds = await _many(client, request)
    return ClientCost(
        p50_ns=percentile_ns(took, 50),
        p99_ns=percentile_ns(took, 99),
        most_per_s=sent / seconds,
        round_trips=len(took) + sent,
    )


async def _many(client: HttpClient, request: HttpRequest | TokenRequest) -> tuple[int, float]:
    """Send with many in flight, and return how many were answered in how many seconds."""
    sent = 0
    started = time.perf_counter()
    until = started + _MANY_S

    async def caller() -> None:
        nonlocal sent
        while time.perf_counter() < until:
            await request.send(client)
            sent += 1

    await asyncio.gather(*(caller() for _ in range(_IN_FLIGHT)))
    return sent, time.perf_counter() - started


def _answer(headers: Mapping[str, str], body: bytes) -> bytes:
    """Return the whole answer as it goes over the connection."""
    kept = {name: value for name, value in headers.items() if name.lower() not in _OF_THE_WAY}
    lines = [f"{name}: {value}" for name, value in kept.items()]
    head = "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *lines])
    return f"{head}\r\n\r\n".encode("latin-1", "replace") + body


@contextmanager
def _responding(answer: bytes) -> Iterator[int]:
    """Start the responder in this process's group, and give its port."""
    source = _source()
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{len(answer)}\n".encode() + answer)
        process.stdin.flush()
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def _source() -> str:
    """Return the responder's source, which the other process is given whole."""
    spec = responder.__spec__
    loader = None if spec is None else spec.loader
    # In a worker it lies in no file; pytest's own loader, in whose process tests run, has none.
    source_of = getattr(loader, "get_source", None)
    return str(inspect.getsource(responder) if source_of is None else source_of(responder.__name__))
