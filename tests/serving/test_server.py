"""``ortbench serve`` as it is started: what it answers, survives and shows, and how it ends."""

from __future__ import annotations

import http.client
import json
import logging
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import onnx
import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.serving.metrics import SERVICE_METRICS
from pytest_ortbench.serving.protocol import decode_error, decode_response
from pytest_ortbench.serving.server import RareWarnings, listening
from pytest_ortbench.serving.tensor_values import HEADER_LENGTH
from tests.serving.served import arrays, looked_up, lookup
from tests.serving.started import Started, started

pytestmark = pytest.mark.live

INFER = "/v2/models/m/infer"
LARGEST = 2**20


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small model."""
    path = tmp_path_factory.mktemp("model") / "lookup.onnx"
    onnx.save(looked_up(), path)
    return path


@pytest.fixture(scope="module")
def service(model: Path) -> Iterator[Started]:
    """Serves it in batches, bodies of a mebibyte at most."""
    with started(model, model.parent, "--batch=4", "--batch-wait=1ms", "--body=1") as made:
        yield made


@pytest.fixture(scope="module")
def hasty(model: Path) -> Iterator[Started]:
    """Serves it, and waits for a second at most."""
    with started(model, model.parent, "--timeout=1s", "--drain=0s") as made:
        yield made


def test_it_says_what_it_is_and_what_the_model_takes(service: Started) -> None:
    assert service.fields("/v2")["extensions"] == ["binary_tensor_data"]
    assert service.fields("/v2/health/live") == {"live": True}
    assert service.fields("/v2/health/ready") == {"ready": True}
    assert service.fields("/v2/models/m/versions/1/ready") == {"ready": True}
    told = service.fields("/v2/models/m")
    assert (told["name"], told["platform"]) == ("m", "onnxruntime_onnx")
    assert told["inputs"][1] == {"name": "x", "datatype": "FP32", "shape": [-1, 3]}


def test_it_answers_in_json_and_in_bytes(service: Started) -> None:
    status, body = service.ask("POST", INFER, lookup([4]))
    assert status == 200
    plain = arrays(decode_response(body))
    with closing(service.connection()) as connection:
        asked = lookup([4], parameters={"binary_data_output": True})
        connection.request("POST", "/v2/models/m/versions/1/infer", asked)
        response = connection.getresponse()
        length = response.headers[HEADER_LENGTH]
        binary = arrays(decode_response(response.read(), int(length)))
    assert plain["sum"].tolist() == binary["sum"].tolist()


def test_its_openapi_has_every_route(service: Started) -> None:
    paths = service.fields("/openapi.json")["paths"]
    of_model = [
        f"/v2/models/{{name}}{version}{rest}"
        for version in ("", "/versions/{version}")
        for rest in ("", "/ready", "/infer")
    ]
    assert {*paths} == {"/v2", "/v2/health/live", "/v2/health/ready", "/metrics", *of_model}


def test_the_request_that_its_openapi_shows_is_answered(service: Started) -> None:
    for path in (INFER, "/v2/models/m/versions/1/infer"):
        shown = path.replace("/m/", "/{name}/").replace("/1/", "/{version}/")
        operation = service.fields("/openapi.json")["paths"][shown]["post"]
        asked = operation["requestBody"]["content"]["application/json"]["example"]
        status, body = service.ask("POST", path, json.dumps(asked).encode())
        assert status == 200
        assert {*arrays(decode_response(body))} == {"sum", "log"}


# -- what it survives ------------------------------------------------------------------------------

_JUNK: list[Any] = [None, True, -1, 3.5, "", "x", [], {}, [[]], [None], {"a": 1}]
_FIELDS = ("name", "shape", "datatype", "data")
_PATHS = (
    *("/v2/models/n/infer", "/v2/models/m/versions/7/infer", "/v2/models//infer"),
    *("/v2/models/../m/infer", "/v2/models/%2e%2e%2fetc%2fpasswd/infer", "/../../etc/passwd"),
    *("/docs", "/redoc", "/v2/repository/index", "/v2/models/m/infer/", "/" + "a" * 3000),
)


def malformed(number: int) -> tuple[str, str, bytes, dict[str, str]]:
    """One wrong request: method, path, body, headers; each number another one."""
    draw = random.Random(number)
    good = lookup([draw.randrange(10)])
    kind = draw.randrange(6)
    if kind == 0:
        return "POST", INFER, b"\x00" + draw.randbytes(draw.randrange(300)), {}
    if kind == 1:
        return "POST", INFER, good[: draw.randrange(len(good))], {}
    if kind == 2:
        fields = json.loads(good)
        changed = draw.choice(fields["inputs"])
        changed[draw.choice(_FIELDS)] = draw.choice([one for one in _JUNK if one != "x"])
        return "POST", INFER, json.dumps(fields).encode(), {}
    if kind == 3:
        length = draw.choice(["", "x", "-5", "0", "1", str(len(good) - 1), "9" * 40])
        return "POST", INFER, good, {HEADER_LENGTH: length}
    if kind == 4:
        return "POST", draw.choice(_PATHS), good, {}
    method = draw.choice(["GET", "PUT", "DELETE", "PATCH", "BREW"])
    return method, INFER, b"", {}


def test_a_thousand_malformed_requests_are_refused_and_it_lives(service: Started) -> None:
    before = service.counted()
    statuses: Counter[int] = Counter()
    with closing(service.connection()) as connection:
        for number in range(1000):
            method, path, body, headers = malformed(number)
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            told = response.read()
            statuses[response.status] += 1
            assert decode_error(told), (number, method, path, body, headers)
    assert statuses.keys() == {400, 404, 405}
    assert statuses.total() == 1000
    assert service.ask("POST", INFER, lookup([4]))[0] == 200
    after = service.counted()
    counted = {
        name: number - before.get(name, 0)
        for name, number in after.items()
        if name.startswith("ortbench_serve_requests_total")
    }
    assert {name for name, number in counted.items() if number} <= {
        f'ortbench_serve_requests_total{{code="{code}"}}' for code in (200, 400, 404)
    }
    assert after["ortbench_serve_requests_inside"] == 0


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50), 400),  # somebody speaks TLS
        (b"GET /v2\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", 400),
        (b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: a\r\nContent-Length: -4\r\n\r\n", 400),
        (
            b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
            % (LARGEST + 1),
            413,
        ),
        (
            b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
            b"Content-Encoding: gzip\r\n\r\n{}",
            415,
        ),
        (
            b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: a\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n" + b"80000\r\n" + bytes(0x80000) + b"\r\n" +
            b"80000\r\n" + bytes(0x80000) + b"\r\n" + b"1\r\n \r\n0\r\n\r\n",
            413,
        ),
    ],
    ids=["TLS", "no version", "header", "negative length", "announced", "gzip", "chunked"],
)  # fmt: skip
def test_what_is_no_request_is_refused_and_it_lives(
    service: Started, sent: bytes, status: int
) -> None:
    with closing(socket.create_connection(("127.0.0.1", service.port), timeout=60)) as raw:
        raw.sendall(sent)
        answer = raw.recv(1000)
    assert answer.split()[1] == str(status).encode()
    assert service.fields("/v2/health/live") == {"live": True}


def test_a_client_that_goes_away_is_no_fault_of_the_service(service: Started) -> None:
    name = 'ortbench_serve_requests_total{code="400"}'
    before = service.counted().get(name, 0)
    for sent in (
        b"POST",
        b"POST " + INFER.encode() + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{",
    ):
        with closing(socket.create_connection(("127.0.0.1", service.port), timeout=60)) as raw:
            raw.sendall(sent)
    for _ in range(600):
        if service.counted().get(name, 0) > before:
            break
        time.sleep(0.1)
    else:
        pytest.fail("it was not counted")
    assert service.ask("POST", INFER, lookup([4]))[0] == 200
    assert not [name for name in service.counted() if 'code="5' in name]


@pytest.mark.parametrize("sent", [b"", b"GET /v2", b"GET /v2 HTTP/1.1\r\nHost: a\r\n\r\nGET"])
def test_a_head_that_does_not_come_ends_its_connection(hasty: Started, sent: bytes) -> None:
    """The last one comes behind a request that was answered."""
    with closing(socket.create_connection(("127.0.0.1", hasty.port), timeout=60)) as raw:
        raw.sendall(sent)
        answered = b""
        while part := raw.recv(1000):
            answered += part
    assert answered.count(b"HTTP/1.1 200") == sent.count(b"\r\n\r\n")


def test_no_part_of_a_response_waits_for_the_client() -> None:
    listener = listening("127.0.0.1", 0)
    with listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# -- what it shows ---------------------------------------------------------------------------------


def test_every_metric_is_shown(service: Started) -> None:
    service.ask("POST", INFER, lookup([4]))
    _, body = service.ask("GET", "/metrics")
    told = {line.split()[2] for line in body.decode().splitlines() if line.startswith("# HELP")}
    assert {*SERVICE_METRICS} <= told
    assert "process_resident_memory_bytes" in told


# -- how it ends -----------------------------------------------------------------------------------


class Client(threading.Thread):
    """Asks over and over on one connection, until the service says that it closes it."""

    def __init__(self, service: Started, asked: threading.Semaphore) -> None:
        super().__init__(daemon=True)
        self._connection = service.connection()
        self._asked = asked
        self.statuses: Counter[int] = Counter()
        self.lost: list[BaseException] = []

    def run(self) -> None:
        try:
            while not self._closes():
                self._asked.release()
        except (OSError, http.client.HTTPException) as error:
            self.lost.append(error)
        finally:
            self._connection.close()

    def _closes(self) -> bool:
        self._connection.request("POST", INFER, lookup([4]))
        response = self._connection.getresponse()
        response.read()
        self.statuses[response.status] += 1
        return response.headers.get("Connection") == "close"


def test_sigterm_under_load_loses_no_request(model: Path) -> None:
    with started(model, model.parent, "--batch=4", "--drain=3s") as service:
        asked = threading.Semaphore(0)
        clients = [Client(service, asked) for _ in range(8)]
        for client in clients:
            client.start()
        for _ in range(200):
            asked.acquire()
        service.process.terminate()
        for client in clients:
            client.join()
        assert [error for client in clients for error in client.lost] == []
        assert {status for client in clients for status in client.statuses} == {200}
        assert service.process.wait(timeout=60) == 0


def test_it_is_not_ready_while_it_ends(model: Path) -> None:
    with started(model, model.parent, "--drain=3s", "--no-metrics") as service:
        assert service.ask("GET", "/metrics")[0] == 404
        with closing(service.connection()) as connection:
            connection.request("GET", "/v2/health/ready")
            first = connection.getresponse()
            first.read()
            service.process.terminate()
            statuses = [first.status]
            while statuses[-1] == 200:
                connection.request("GET", "/v2/health/ready")
                response = connection.getresponse()
                response.read()
                statuses.append(response.status)
        assert statuses[-1] == 503


def test_a_second_interrupt_ends_it_at_once_and_says_so(model: Path, tmp_path: Path) -> None:
    with (tmp_path / "errors").open("w+", encoding="utf-8") as errors:
        options = ("--drain=60s", "--no-metrics")
        with started(model, model.parent, *options, errors=errors) as service:
            service.process.send_signal(signal.SIGINT)
            while service.ask("GET", "/v2/health/ready")[0] == 200:
                pass
            service.process.send_signal(signal.SIGINT)
            assert service.process.wait(timeout=60) == 130
        errors.seek(0)
        assert len(errors.read().splitlines()) == 1


@pytest.mark.parametrize("host", ["a..b", "192.0.2.1"])
def test_a_host_of_another_machine_is_refused_at_its_option(host: str) -> None:
    with pytest.raises(UsageError) as refused:
        listening(host, 0)
    assert refused.value.place == "--host"


def test_a_warning_that_clients_cause_is_logged_once_a_minute() -> None:
    now = 0.0
    rare = RareWarnings(clock=lambda: now)

    def passes(text: str, level: int = logging.WARNING) -> bool:
        return rare.filter(logging.LogRecord("uvicorn.error", level, "", 0, text, (), None))

    assert [passes("limit"), passes("limit"), passes("no HTTP")] == [True, False, True]
    assert [passes("broken", logging.ERROR), passes("broken", logging.ERROR)] == [True, True]
    now = 61.0
    assert [passes("limit"), passes("limit")] == [True, False]
