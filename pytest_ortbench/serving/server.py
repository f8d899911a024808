"""The process of a service: uvicorn, which ends without losing what it took."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from types import FrameType
from typing import cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import HANDLED_SIGNALS

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.dotted_name import import_named
from pytest_ortbench.core.unusable_address import unusable_address
from pytest_ortbench.serving.app import make_app
from pytest_ortbench.serving.metrics import ServiceMetrics, Unobserved
from pytest_ortbench.serving.served_model import ServedModel
from pytest_ortbench.serving.service import Service, ServiceLimits

#: Connections beyond the requests that may be inside: those that are idle, and of probes.
_SPARE_CONNECTIONS = 1000
#: Seconds that a connection may be idle between two requests.
_IDLE_S = 30
#: A warning that is logged again comes so much later, at least.
_WARNED_S = 60.0
#: How often the end looks whether connections are left, in seconds.
_LOOK_S = 0.02


class RareWarnings(logging.Filter):
    """Lets the same warning through once a minute: clients cause them, as often as they like.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._last: dict[object, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged; the text of one does not come from clients."""
        if record.levelno != logging.WARNING:
            return True
        now, text = self._clock(), record.msg
        if now - self._last.get(text, -math.inf) < _WARNED_S:
            return False
        self._last[text] = now
        return True


class DrainingServer(uvicorn.Server):
    """A server whose end loses no request that it took.

    On SIGTERM or SIGINT it first says that it is not ready, still takes requests for a while and
    closes the connection behind each response; then it takes no more connections, and those that
    are there have as long again. Every request that came is answered before it ends, unless a
    second SIGINT ends it at once.

    Args:
        config: As of uvicorn.
        service: What is told that it ends.
        drain_s: How long each of the two steps lasts.
        announce: Called once it can be reached.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        service: Service,
        *,
        drain_s: float,
        announce: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._service = service
        self._drain_s = drain_s
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections, and say so."""
        await super().startup(sockets=sockets)
        if self.started:
            self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End in the two steps, and then as uvicorn does."""
        self._service.draining = True
        # From now on each response tells its client to come back on another connection.
        state = self.server_state
        state.default_headers = [*state.default_headers, (b"connection", b"close")]
        await self._while(lambda: True)
        for server in self.servers:
            server.close()
        await self._while(lambda: bool(state.connections))
        await super().shutdown(sockets=sockets)

    async def _while(self, goes_on: Callable[[], bool]) -> None:
        """Let a step last for as long as it may and goes on."""
        until = time.monotonic() + self._drain_s
        while goes_on() and not self.force_exit and time.monotonic() < until:
            await asyncio.sleep(_LOOK_S)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end, or end at once: what becomes of the requests then is no error of theirs."""
        super().handle_exit(sig, frame)
        if self.force_exit:
            for name in ("uvicorn.error", "asyncio"):
                logging.getLogger(name).addFilter(_nothing)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """End on a signal; it is not raised again, since it did what it was for."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _nothing(record: logging.LogRecord) -> bool:
    """Let no record through."""
    del record
    return False


def bounded_protocol(head_s: float) -> type[H11Protocol]:
    """Return the protocol of a connection on which the head of a request may take so long.

    It is that of uvicorn, which waits for a head without end. It also bounds the head (64 KiB),
    which the faster one of uvicorn does not.

    Args:
        head_s: Seconds from the connection, or from the first byte of a later request.
    """

    class BoundedProtocol(H11Protocol):
        """Closes connections on which the head of a request does not come."""

        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            """Begin to wait for the first head."""
            # uvicorn declares the narrower type, asyncio the wider one.
            super().connection_made(cast("asyncio.Transport", transport))
            self._wait()

        def data_received(self, data: bytes) -> None:
            """Read on, and wait for the rest of a head that is not whole."""
            super().data_received(data)
            if self.conn.their_state is h11.IDLE:
                self._wait()
            else:
                self._stop()

        def connection_lost(self, exc: Exception | None) -> None:
            """Wait no more."""
            self._stop()
            super().connection_lost(exc)

        def _wait(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(head_s, self.transport.close)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return BoundedProtocol


class ModelServer:
    """A model with all that answers requests about it.

    Attributes:
        notes: What a user should know before it is reached, for people.

    Args:
        case: The model, the provider and the session options, with inputs that it takes.
        name: What requests call it.
        limits: What is bounded.
        double: The same case with a batch of two; ``None`` joins no requests.
        watched: Whether requests are counted and timed, and shown at ``/metrics``.
        traced: Whether spans are made of requests, as OpenTelemetry's environment variables say.

    Raises:
        UsageError: if the protocol can't carry what the model takes and gives, or traces can't go
            where they are to.
        Exception: what ONNX Runtime raises.
    """

    def __init__(
        self,
        case: Case,
        name: str,
        limits: ServiceLimits,
        *,
        double: Case | None,
        watched: bool,
        traced: bool = False,
    ) -> None:
        # What makes them is imported where somebody wants them.
        traces_of = import_named("pytest_ortbench.serving.traces:traces_of") if traced else None
        traces = None if traces_of is None else traces_of(name)
        model = ServedModel(case, name, double=double)
        metrics = ServiceMetrics(name, case.provider.label) if watched else None
        self._service = Service(model, limits, metrics or Unobserved())
        self._app = make_app(self._service, metrics, traces)
        self.notes = tuple(_notes(model))

    def serve(
        self, host: str, port: int, *, drain_s: float, announce: Callable[[int], None]
    ) -> bool:
        """Serve until a signal ends it, and return whether all that was taken was answered.

        Args:
            host: Address to listen at.
            port: 0 for one that is free.
            drain_s: As of :class:`DrainingServer`.
            announce: Called with the port once it can be reached.

        Raises:
            UsageError: if the port can't be had.
        """
        listener = listening(host, port)
        limits = self._service.limits
        config = uvicorn.Config(
            self._app,
            http=bounded_protocol(limits.timeout_s),
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=int(limits.timeout_s) + 1,
            limit_concurrency=limits.waiting + limits.callers + _SPARE_CONNECTIONS,
        )
        server = DrainingServer(
            config,
            self._service,
            drain_s=drain_s,
            announce=lambda: announce(listener.getsockname()[1]),
        )
        logging.getLogger("uvicorn.error").addFilter(RareWarnings())
        asyncio.run(server.serve(sockets=[listener]))
        return not server.force_exit


def _notes(model: ServedModel) -> Iterator[str]:
    if model.left_out:
        yield f"outputs that the protocol can't carry are left out: {', '.join(model.left_out)}"
    if model.unjoined:
        yield f"requests are not joined: {model.unjoined}"


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens there.

    Args:
        host: Address or name of this machine.
        port: 0 for one that is free.

    Raises:
        UsageError: if it can't be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=1024)
        # Connections inherit it. Without it the body of a response waits for the client's word that
        # its head has come, which takes 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, UnicodeError) as error:
        raise unusable_address(host, port, error) from error
