"""What is done to a service while its load goes on: it is ended, and gets what is no request."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from types import TracebackType
from urllib.parse import urlsplit

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.launch.service_process import ServiceProcess
from pytest_ortbench.passes.endurance.facts import ENDINGS, NO_ANSWER, EnduranceFault

#: When each kind begins, as a share of the load, but no sooner than so many seconds: the client
#: first finds out what it takes by itself. What ends the service comes once.
_BEGINNING, _LEAST_S = {"restart": 0.1, "kill": 0.2}, 4.0
#: Wrong requests come so far apart, at least; of each kind there are so many, at most.
_LEAST_APART_S, _MOST = 0.25, 100
#: How long an answer is waited for.
_ANSWER_S = 5.0
#: Bytes that come slowly, the time between two, and what is announced.
_SLOW_BYTES, _SLOW_APART_S, _SLOW_LENGTH = 8, 0.2, 64
_HUGE_BYTES, _SENT_BYTES = 1 << 40, 1 << 16
_LONGEST_LINE = 1000


class Faults:
    """Does what is wanted, from a thread of its own, until it is left.

    Args:
        kinds: Keys of :data:`~pytest_ortbench.passes.endurance.facts.FAULTS`.
        url: Where requests to the service go; empty where they don't go over HTTP.
        process: The service; ``None`` where somebody else has started it.
        seconds: Length of the load.
        on_ended: Called when the service has been started again.
    """

    def __init__(
        self,
        kinds: Iterable[str],
        url: str,
        process: ServiceProcess | None,
        seconds: float,
        on_ended: Callable[[], None],
    ) -> None:
        self._process, self._seconds, self._on_ended = process, seconds, on_ended
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        self._path, self._host = parts.path or "/", parts.netloc
        self._found = {kind: EnduranceFault(kind=kind) for kind in kinds}
        self._answers: dict[str, Counter[str]] = {kind: Counter() for kind in self._found}
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._end_service, daemon=True)]
        self._unsent = (
            "" if parts.scheme == "http" else "such requests are sent over plain HTTP only"
        )
        if not self._unsent:
            self._threads.append(threading.Thread(target=self._send_wrong, daemon=True))

    def __enter__(self) -> Faults:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    @property
    def found(self) -> tuple[EnduranceFault, ...]:
        """What was done; it is whole when this is left."""
        return tuple(
            fault
            if fault.kind in ENDINGS
            else EnduranceFault(
                kind=fault.kind,
                count=self._answers[fault.kind].total(),
                answers=dict(self._answers[fault.kind]),
                reason=self._unsent,
            )
            for fault in self._found.values()
        )

    def _end_service(self) -> None:
        """End the service once for each kind of ending, and start it again."""
        began = time.monotonic()
        for kind in ENDINGS:
            due = began + max(_LEAST_S, _BEGINNING[kind] * self._seconds)
            if kind not in self._found or self._process is None:
                continue
            if self._over.wait(max(0.0, due - time.monotonic())):
                return
            try:
                away_s = self._process.start_again(kill=kind == "kill")
                self._found[kind] = EnduranceFault(kind=kind, count=1, away_s=away_s)
            except WorkerError as error:
                self._found[kind] = EnduranceFault(kind=kind, count=1, reason=error.failure.told)
                return
            self._on_ended()

    def _send_wrong(self) -> None:
        """Send wrong requests of each kind in turn."""
        wrong = {
            "malformed": self._malformed,
            "oversized": self._oversized,
            "slow": self._slow,
        }
        wanted = [kind for kind in wrong if kind in self._found]
        apart_s = max(_LEAST_APART_S, self._seconds / _MOST / max(1, len(wanted)))
        while wanted:
            for kind in wanted:
                if self._over.wait(apart_s):
                    return
                self._answers[kind][self._status_of(wrong[kind])] += 1

    def _status_of(self, send: Callable[[socket.socket], None]) -> str:
        """Send something on a connection of its own, and return the status of the answer."""
        try:
            with socket.create_connection(self._address, timeout=_ANSWER_S) as connection:
                send(connection)
                line = connection.makefile("rb").readline(_LONGEST_LINE)
        except OSError:
            return NO_ANSWER
        words = line.split()
        is_status = len(words) > 1 and words[1].isdigit() and len(words[1]) == 3
        return words[1].decode("ascii") if is_status else NO_ANSWER

    def _malformed(self, connection: socket.socket) -> None:
        body = b'{"inputs": [{"name": '
        connection.sendall(self._head(len(body)) + body)

    def _oversized(self, connection: socket.socket) -> None:
        connection.sendall(self._head(_HUGE_BYTES) + bytes(_SENT_BYTES))

    def _slow(self, connection: socket.socket) -> None:
        connection.sendall(self._head(_SLOW_LENGTH))
        for _ in range(_SLOW_BYTES):
            if self._over.wait(_SLOW_APART_S):
                break
            connection.sendall(b" ")
        connection.shutdown(socket.SHUT_WR)

    def _head(self, length: int) -> bytes:
        lines = [
            f"POST {self._path} HTTP/1.1",
            f"Host: {self._host}",
            "Connection: close",
            "Content-Type: application/json",
            f"Content-Length: {length}",
        ]
        return "\r\n".join([*lines, "", ""]).encode()
