"""What is told where a service does not answer a request as it should."""

from __future__ import annotations

import http.client
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failure import Failure
from pytest_ortbench.launch.ending import Ending, ending
from pytest_ortbench.launch.service_process import ServiceProcess
from pytest_ortbench.passes.served import run
from pytest_ortbench.serving.protocol import WireMessage

#: What a server does with a request: a status, none to close, or to wait.
CLOSE, WAIT = 0, -1


@pytest.fixture
def served() -> Iterator[Any]:
    """A server on loopback whose answer a test sets."""
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status = self.server.status  # type: ignore[attr-defined]
            if status > 0:
                self.send_response(status)
                self.end_headers()
            if status == WAIT:
                is_over.wait(30)

        def log_message(self, *_: object) -> None:
            pass

    server: Any = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    is_over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def _failure(server: Any, status: int, ended: Ending | None = None) -> Failure:
    server.status = status
    process: Any = SimpleNamespace(command=("serve", "it"), wait=lambda _: ended)
    message = WireMessage(body=b"{}")
    host, port = server.server_address
    with (
        closing(http.client.HTTPConnection(host, port, timeout=0.2)) as connection,
        pytest.raises(WorkerError) as caught,
    ):
        run._ask(connection, "/", message, process)
    return caught.value.failure


def test_a_service_that_only_closes_the_connection_is_started_by_hand(served: Any) -> None:
    failure = _failure(served, CLOSE)
    assert "Python says" in failure.message
    assert failure.hint.endswith("serve it")


def test_a_service_that_has_ended_is_told_with_how(served: Any) -> None:
    assert "exited with 0" in _failure(served, CLOSE, ending(0)).message
    assert "serve it" not in _failure(served, CLOSE, ending(0)).hint
    assert "SIGKILL" in _failure(served, CLOSE, ending(-9)).message
    assert "serve it" in _failure(served, CLOSE, ending(-9)).hint


def test_a_service_that_is_slow_is_told_with_the_limit(served: Any) -> None:
    failure = _failure(served, WAIT)
    assert "60 s" in failure.message
    assert "serve it" not in failure.hint


@pytest.mark.parametrize(("status", "by_hand"), [(500, True), (429, False)])
def test_a_limit_of_requests_is_not_looked_for_by_hand(
    served: Any, status: int, by_hand: bool
) -> None:
    failure = _failure(served, status)
    assert str(status) in failure.message
    assert ("serve it" in failure.hint) is by_hand


@pytest.mark.live
def test_how_a_service_ended_is_waited_for() -> None:
    service = object.__new__(ServiceProcess)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        service._process = process
        assert service.wait(0) is None
        process.kill()
        assert service.wait(30) == Ending(signal="SIGKILL")
