"""``ortbench serve`` as a process of its own, and requests to it over HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

#: Long enough for a machine that is busy.
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Started:
    """A service that can be reached.

    Attributes:
        process: Its process.
        port: On loopback.
    """

    process: subprocess.Popen[str]
    port: int

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT_S)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Return status and body of one request on a connection of its own."""
        with closing(self.connection()) as connection:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return response.status, response.read()

    def fields(self, path: str) -> Any:
        status, body = self.ask("GET", path)
        assert status == 200
        return json.loads(body)

    def counted(self) -> dict[str, float]:
        """Every sample of its metrics, by its name and labels as they are written."""
        status, body = self.ask("GET", "/metrics")
        assert status == 200
        lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
        return {name: float(number) for name, _, number in (line.rpartition(" ") for line in lines)}


def free_port() -> int:
    """A port of loopback that nobody has at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@contextmanager
def started(
    model: Path, folder: Path, *options: str, errors: IO[str] | None = None
) -> Iterator[Started]:
    """Serve a model as ``m`` at a port that is free, and end it."""
    command = [sys.executable, "-m", "pytest_ortbench.cli", "serve", str(model), "--name=m"]
    process = subprocess.Popen(
        [*command, "--port=0", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = next((word for word in line.split() if word.startswith("http")), "")
        assert address, line
        yield Started(process, int(address.split(":")[2].split("/")[0]))
    finally:
        process.terminate()
        try:
            process.communicate(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
