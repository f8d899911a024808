"""A service that speaks the Open Inference Protocol, by hand: nothing of the product is in it.

It runs ``y = relu(x)``, and misbehaves where a test wants it to.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

LENGTH = "Inference-Header-Content-Length"
#: A larger body is refused.
MOST_BYTES = 1 << 24
#: Answers one request to infer in place of the service; returns whether it did.
Fault = Callable[["Handler"], bool]


@dataclass
class Service:
    """What the service does, and what it was asked.

    Attributes:
        fault: Answers requests to infer in its place; ``None`` for none.
        extensions: What it says that it can do.
        declared: What it says of its inputs.
        asked: Headers of each request to infer.
        paths: Path of each request.
        port: Where it listens.
        leak_bytes: What it keeps of each request.
        kept: That.
    """

    fault: Fault | None = None
    extensions: tuple[str, ...] = ("binary_tensor_data",)
    declared: list[dict[str, Any]] = field(
        default_factory=lambda: [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]
    )
    asked: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    port: int = 0
    leak_bytes: int = 0
    kept: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v2/models/relu/infer"


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    # Head and body of an answer are two writes, and the client acknowledges late.
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        service = self.server.service
        service.paths.append(self.path)
        if self.path == "/v2":
            told = {"name": "stub", "version": "1", "extensions": list(service.extensions)}
        elif self.path == "/v2/models/relu":
            outputs = [{"name": "y", "datatype": "FP32", "shape": [-1, 4]}]
            told = {"name": "relu", "inputs": service.declared, "outputs": outputs}
        else:
            self.answer(b'{"error": "no such model"}', status=404)
            return
        self.answer(json.dumps(told).encode())

    def do_POST(self) -> None:
        service = self.server.service
        service.paths.append(self.path)
        service.asked.append(dict(self.headers.items()))
        length = int(self.headers["Content-Length"])
        if length > MOST_BYTES:
            self.close_connection = True
            self.answer(b'{"error": "too large"}', status=413)
            return
        self.body = self.rfile.read(length)
        if service.fault is not None and service.fault(self):
            return
        if self.path != "/v2/models/relu/infer":
            self.answer(b'{"error": "no such model"}', status=404)
            return
        size = int(self.headers.get(LENGTH, len(self.body)))
        try:
            head = json.loads(self.body[:size])
        except ValueError:
            self.answer(b'{"error": "no JSON"}', status=400)
            return
        service.kept.append(b"x" * service.leak_bytes)
        [given] = head["inputs"]
        if "data" in given:
            x = np.array(given["data"], dtype=np.float32)
        else:
            x = np.frombuffer(self.body[size:], dtype=np.float32)
        [wanted] = head["outputs"]
        y = np.maximum(x.reshape(given["shape"]), 0)
        self.answer(*answer_of(y, binary=wanted.get("parameters", {}).get("binary_data", False)))

    def answer(self, body: bytes, headers: dict[str, str] | None = None, status: int = 200) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """The service's sockets."""

    daemon_threads = True
    request_queue_size = 128
    service: Service


def answer_of(
    y: np.ndarray[Any, Any], *, binary: bool, **changes: Any
) -> tuple[bytes, dict[str, str]]:
    """Return body and headers of an answer, with some fields of its output changed."""
    output: dict[str, Any] = {"name": "y", "datatype": "FP32", "shape": list(y.shape)}
    raw = b""
    if binary:
        raw = y.astype(np.float32).tobytes()
        output["parameters"] = {"binary_data_size": len(raw)}
    else:
        output["data"] = y.ravel().tolist()
    head = json.dumps({"model_name": "relu", "outputs": [{**output, **changes}]}).encode()
    return head + raw, ({LENGTH: str(len(head))} if binary else {})


@contextmanager
def serving(service: Service | None = None) -> Iterator[Service]:
    """Run a service on loopback, on a free port unless it has one."""
    service = service or Service()
    with Server(("127.0.0.1", service.port), Handler) as server:
        server.service = service
        service.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()


def main() -> None:
    """Run a service on a port until it is ended, as a process of its own."""
    port, leak_bytes = map(int, sys.argv[1:])
    with serving(Service(port=port, leak_bytes=leak_bytes)):
        threading.Event().wait()


if __name__ == "__main__":
    main()
