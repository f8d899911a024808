"""A service of a language model in OpenAI's protocol, by hand, whose tokens come when it says.

As a process of its own (:func:`writing_apart`) it shares no interpreter with its client, and tells
at its end when it got each request and when it wrote what. When a request came is told by the
kernel: how long the service sleeps on behind that is its own doing, and no time of its client's.
"""

from __future__ import annotations

import io
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

#: Asks Linux when bytes came (``SO_TIMESTAMPNS``), for which Python has no name.
_TIMESTAMPS = 35
#: What it tells: seconds and nanoseconds of the clock ``time.time``.
_MOMENT = struct.Struct("@qq")


@dataclass(frozen=True)
class Written:
    """When the service did what for one request, by the clock of all processes (``perf_counter``).

    Attributes:
        came_ns: When the first bytes of the request were there, by the kernel where it tells.
        read_ns: When the service had read them.
        first_ns: When it had written the first token.
        last_ns: When it had written the last one.
    """

    came_ns: int
    read_ns: int
    first_ns: int
    last_ns: int


class StampedBytes(io.RawIOBase):
    """What comes over a connection, and when it came.

    Attributes:
        came_ns: When the kernel had the bytes that were read last; when they were read where it
            does not tell.
        read_ns: When they were read.

    Args:
        connection: The connection.
    """

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self.came_ns = self.read_ns = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count, told, _, _ = self._connection.recvmsg_into([buffer], socket.CMSG_SPACE(_MOMENT.size))
        self.came_ns = self.read_ns = time.perf_counter_ns()
        behind_ns = time.time_ns() - self.read_ns
        for level, kind, moment in told:
            if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMPS):
                seconds, nanoseconds = _MOMENT.unpack(moment[: _MOMENT.size])
                self.came_ns = seconds * 10**9 + nanoseconds - behind_ns
        return count


@dataclass
class TextService:
    """What the service does, and what it was asked.

    Attributes:
        first_s: Time to its first token.
        later_s: Time of each later one.
        in_one: Tokens that one part of an answer holds.
        written: Tokens that it says it wrote; ``None`` for what was asked.
        tells_usage: Whether it says how many they are.
        breaks_after: Parts after which the connection ends; ``None`` for never.
        breaks_with: What it tells where the connection ends; ``None`` for nothing.
        status: Of its answers.
        models: What it lists; ``None`` for a service that has no list.
        asked: Bodies of the requests.
        written_at: When it did what, of each request that it answered.
    """

    first_s: float = 0.0
    later_s: float = 0.0
    in_one: int = 1
    written: int | None = None
    tells_usage: bool = True
    breaks_after: int | None = None
    breaks_with: dict[str, Any] | None = None
    status: int = 200
    models: tuple[str, ...] | None = ("tiny",)
    asked: list[dict[str, Any]] = field(default_factory=list)
    written_at: list[Written] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/completions"


class TextHandler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: TextServer

    def setup(self) -> None:
        super().setup()
        self._came = StampedBytes(self.connection)
        self.rfile = io.BufferedReader(self._came)

    def do_GET(self) -> None:
        models = self.server.service.models
        if models is None:
            self._whole(b'{"detail": "Not Found"}', 404)
            return
        listed = [{"id": name, "object": "model"} for name in models]
        self._whole(json.dumps({"object": "list", "data": listed}).encode(), 200)

    def parse_request(self) -> bool:
        self.came_ns, self.read_ns = self._came.came_ns, self._came.read_ns
        return super().parse_request()

    def do_POST(self) -> None:
        service = self.server.service
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service.asked.append(asked)
        if service.status != 200:
            told = service.breaks_with or {"error": {"message": "no"}}
            self._whole(json.dumps(told).encode(), service.status)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        count = asked["max_tokens"]
        times_ns: list[int] = []
        # A service tells first that it began; that is no token.
        self._part({"choices": [{"text": "", "index": 0}]})
        for number, start in enumerate(range(0, count, service.in_one)):
            if number == service.breaks_after:
                if service.breaks_with is not None:
                    self._part(service.breaks_with)
                self.close_connection = True
                return
            due_s = service.first_s + number * service.in_one * service.later_s
            text = "x" * min(service.in_one, count - start)
            part = _data({"choices": [{"text": text, "index": 0}], "usage": None})
            left_s = due_s - (time.perf_counter_ns() - self.came_ns) * 1e-9
            time.sleep(max(0.0, left_s))
            self._chunk(part)
            times_ns.append(time.perf_counter_ns())
        service.written_at.append(Written(self.came_ns, self.read_ns, times_ns[0], times_ns[-1]))
        if service.tells_usage and asked["stream_options"]["include_usage"]:
            written = count if service.written is None else service.written
            self._part({"choices": [], "usage": {"completion_tokens": written}})
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _part(self, part: dict[str, Any]) -> None:
        self._chunk(_data(part))

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _whole(self, body: bytes, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _data(part: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(part).encode() + b"\n\n"


class TextServer(ThreadingHTTPServer):
    """The service's sockets."""

    daemon_threads = True
    request_queue_size = 128
    service: TextService

    def server_bind(self) -> None:
        if sys.platform == "linux":
            self.socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMPS, 1)
        super().server_bind()


@contextmanager
def writing(service: TextService) -> Iterator[TextService]:
    """Run a service on a free port of loopback."""
    with TextServer(("127.0.0.1", 0), TextHandler) as server:
        server.service = service
        service.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def writing_apart(first_s: float, later_s: float) -> Iterator[TextService]:
    """Run a service in a process of its own; when it has ended, it has told what it did."""
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.engines.text_server", str(first_s), str(later_s)],
        cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    service = TextService(first_s=first_s, later_s=later_s, port=int(process.stdout.readline()))
    told = b"[]"
    try:
        yield service
    finally:
        told, _ = process.communicate()
    service.written_at = [Written(**times) for times in json.loads(told)]


def main() -> None:
    """Write until stdin ends, then tell when what was written."""
    first_s, later_s = map(float, sys.argv[1:])
    with writing(TextService(first_s=first_s, later_s=later_s)) as service:
        print(service.port, flush=True)
        sys.stdin.read()
    print(json.dumps([asdict(times) for times in service.written_at]))


if __name__ == "__main__":
    main()
