"""A service of a language model in OpenAI's protocol, by hand, whose tokens come when it says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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
        status: Of its answers.
        models: What it lists.
        asked: Bodies of the requests.
        slips_ns: How much later than meant each first token was sent, and each last one.
    """

    first_s: float = 0.0
    later_s: float = 0.0
    in_one: int = 1
    written: int | None = None
    tells_usage: bool = True
    breaks_after: int | None = None
    status: int = 200
    models: tuple[str, ...] = ("tiny",)
    asked: list[dict[str, Any]] = field(default_factory=list)
    slips_ns: list[tuple[int, int]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1/completions"


class TextHandler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: TextServer

    def do_GET(self) -> None:
        listed = [{"id": name, "object": "model"} for name in self.server.service.models]
        self._whole(json.dumps({"object": "list", "data": listed}).encode(), 200)

    def do_POST(self) -> None:
        service, began = self.server.service, time.perf_counter()
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service.asked.append(asked)
        if service.status != 200:
            self._whole(b'{"error": {"message": "no"}}', service.status)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        count = asked["max_tokens"]
        slips = []
        # A service tells first that it began; that is no token.
        self._part({"choices": [{"text": "", "index": 0}]})
        for number, start in enumerate(range(0, count, service.in_one)):
            if number == service.breaks_after:
                self.close_connection = True
                return
            due = began + service.first_s + number * service.in_one * service.later_s
            time.sleep(max(0.0, due - time.perf_counter()))
            slips.append(int((time.perf_counter() - due) * 1e9))
            text = "x" * min(service.in_one, count - start)
            self._part({"choices": [{"text": text, "index": 0}], "usage": None})
        service.slips_ns.append((slips[0], slips[-1]))
        if service.tells_usage and asked["stream_options"]["include_usage"]:
            written = count if service.written is None else service.written
            self._part({"choices": [], "usage": {"completion_tokens": written}})
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _part(self, part: dict[str, Any]) -> None:
        self._chunk(b"data: " + json.dumps(part).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _whole(self, body: bytes, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class TextServer(ThreadingHTTPServer):
    """The service's sockets."""

    daemon_threads = True
    request_queue_size = 128
    service: TextService


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
