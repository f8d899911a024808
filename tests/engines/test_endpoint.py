"""The client of an endpoint: against a service written by hand, whole and broken."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import numpy as np
import psutil
import pytest

from pytest_ortbench.core.endpoint_address import address_of
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.exchange import Exchanges
from pytest_ortbench.core.precision import Floor
from pytest_ortbench.engines.endpoint.worker.answer_check import UncheckedTexts
from pytest_ortbench.engines.endpoint.worker.asked import Endpoint, exchanged
from pytest_ortbench.engines.endpoint.worker.exchange_error import ExchangeError
from pytest_ortbench.engines.endpoint.worker.http_client import HttpClient, Reply
from pytest_ortbench.engines.endpoint.worker.sender import EndpointSender
from pytest_ortbench.engines.seam import EngineRefusal, EngineTask, EngineTensor, RightAnswer
from tests.engines.endpoint_server import LENGTH, Fault, Handler, Service, answer_of, serving

pytestmark = pytest.mark.live

X = np.array([[-1.0, 2.0, -3.0, 4.0], [0.5, -0.5, 0.0, 1e-3]], dtype=np.float32)
Y = np.maximum(X, 0)
#: Longer than any answer here takes, on a machine however busy.
AGES_S = 60.0


def endpoint(url: str, encoding: str = "", **changes: Any) -> Endpoint:
    task: dict[str, Any] = {
        "path": Path("m.onnx"),
        "inputs": (EngineTensor(name="x", type="tensor(float)", shape=X.shape),),
        "outputs": (EngineTensor(name="y", type="tensor(float)"),),
        "threads": 1,
        "device": encoding,
        "options": {"url": url},
    }
    return Endpoint(EngineTask(**{**task, **changes}))


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as running:
        yield running


@pytest.fixture(autouse=True)
def few_round_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client find out in a moment what it takes by itself."""
    monkeypatch.setattr("pytest_ortbench.engines.endpoint.worker.own_cost._SINGLE", 5)
    monkeypatch.setattr("pytest_ortbench.engines.endpoint.worker.own_cost._MANY_S", 0.02)


def asked_once(url: str, encoding: str = "") -> Any:
    with closing(endpoint(url, encoding)) as engine:
        [outputs] = engine.open()({"x": X})
        return outputs


@pytest.mark.parametrize(
    ("encoding", "extensions", "is_binary"),
    [
        ("", ("binary_tensor_data",), True),
        ("", (), False),
        ("json", ("binary_tensor_data",), False),
        ("binary", (), True),
    ],
)
def test_answers_are_those_of_the_model_in_both_encodings(
    service: Service, encoding: str, extensions: tuple[str, ...], is_binary: bool
) -> None:
    service.extensions = extensions
    with closing(endpoint(service.url, encoding)) as engine:
        infer = engine.open()
        for feeds in ({"x": X}, {"x": 2 * X}):
            [outputs] = infer(feeds)
            assert outputs.dtype == np.float32
            np.testing.assert_array_equal(outputs, np.maximum(feeds["x"], 0))
        in_force = engine.in_force()
    assert in_force == {
        "url": service.url,
        "protocol": "v2",
        "encoding": "binary" if is_binary else "json",
        "server": "stub 1",
    }
    assert [LENGTH in asked for asked in service.asked] == [is_binary, is_binary]


def test_a_header_of_the_environment_is_sent_and_nobody_else_learns_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORTBENCH_ENDPOINT_AUTHORIZATION", "Bearer 123-secret")
    with closing(endpoint(service.url)) as engine:
        engine.open()({"x": X})
        assert "123-secret" not in str(engine.in_force())
    assert service.asked[0]["Authorization"] == "Bearer 123-secret"


def test_variables_of_proxies_change_no_way(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1/")
    np.testing.assert_array_equal(asked_once(service.url), Y)


def said(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Fault:
    def fault(handler: Handler) -> bool:
        handler.answer(body, dict(headers or {}), status)
        return True

    return fault


def changed(**changes: Any) -> Fault:
    """Answer with an output of which some fields are others."""

    def fault(handler: Handler) -> bool:
        handler.answer(*answer_of(Y, binary=True, **changes))
        return True

    return fault


def cut_off(handler: Handler) -> bool:
    body, headers = answer_of(Y, binary=True)
    handler.send_response(200)
    handler.send_header(LENGTH, headers[LENGTH])
    handler.send_header("Content-Length", str(len(body) + 100))
    handler.end_headers()
    handler.wfile.write(body)
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)
    return True


def hung_up(handler: Handler) -> bool:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)
    return True


def no_http(handler: Handler) -> bool:
    handler.wfile.write(b"what?\r\n\r\n")
    return hung_up(handler)


def redirected(handler: Handler) -> bool:
    handler.answer(b"", {"Location": f"{handler.path}?again"}, 307)
    return True


def with_nan(handler: Handler) -> bool:
    handler.answer(*answer_of(np.where(Y > 1, np.nan, Y), binary=True))
    return True


#: Faults, the kind of each, and what a case comes to that meets it.
FAULTS: dict[str, tuple[Fault, str, str]] = {
    "400": (said(b'{"error": "no"}', 400), "client error", "error"),
    "404": (said(b"", 404), "client error", "unavailable"),
    "429": (said(b"", 429), "client error", "unavailable"),
    "500": (said(b"<html>", 500), "server error", "error"),
    "503": (said(b"", 503), "server error", "unavailable"),
    "204": (said(b"", 204), "invalid", "error"),
    "redirect": (redirected, "redirect", "error"),
    "cut off": (cut_off, "broken", "error"),
    "hung up": (hung_up, "broken", "error"),
    "no HTTP": (no_http, "invalid", "error"),
    "no JSON": (said(b"{"), "invalid", "error"),
    "a list": (said(b"[1]"), "invalid", "error"),
    "deep": (said(b"[" * 60_000), "invalid", "error"),
    "no outputs": (said(b'{"model_name": "relu", "outputs": []}'), "invalid", "error"),
    "another type": (changed(datatype="FP64"), "invalid", "error"),
    "another shape": (changed(shape=[9, 9]), "invalid", "error"),
    "a negative size": (changed(shape=[-2, -4]), "invalid", "error"),
    "huge sizes": (changed(shape=[1 << 40, 1 << 40]), "invalid", "error"),
    "more than there is": (
        changed(parameters={"binary_data_size": 1 << 40}), "invalid", "error",
    ),
    "a wrong header": (said(b"{}", headers={LENGTH: "x"}), "invalid", "error"),
    "a header of many digits": (said(b"{}", headers={LENGTH: "9" * 5000}), "invalid", "error"),
    "the right bytes, a wrong header": (
        said(answer_of(Y, binary=True)[0], headers={LENGTH: "1"}), "invalid", "error",
    ),
    "compressed": (said(b"\x1f\x8b", headers={"Content-Encoding": "gzip"}), "invalid", "error"),
    "compressed refusal": (said(b"", 503, {"Content-Encoding": "gzip"}), "server error",
                           "unavailable"),
    "half of a pair": (said(b'{"error": "\\ud800"}', 500), "server error", "error"),
    "another name": (changed(name="z"), "invalid", "error"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_of_a_service_has_one_outcome(service: Service, name: str) -> None:
    service.fault, _, kind = FAULTS[name]
    with pytest.raises(EngineRefusal) as caught:
        asked_once(service.url)
    assert caught.value.kind == kind
    # It can be written to a document, whatever the service said.
    assert str(caught.value).encode()
    # A redirect is not followed.
    assert service.paths.count("/v2/models/relu/infer") == 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        # What is written to a connection that the service is just closing.
        (aiohttp.ClientConnectionResetError("closing"), "broken"),
        (aiohttp.ClientOSError(104, "reset"), "broken"),
        (aiohttp.ClientPayloadError("short"), "broken"),
        (aiohttp.ServerDisconnectedError(), "broken"),
        (aiohttp.SocketTimeoutError(), "timeout"),
        (aiohttp.ClientError("no HTTP"), "invalid"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_of_the_connection_is_no_wrong_answer(error: Exception, kind: str) -> None:
    @asynccontextmanager
    async def fails(*_: object, **__: object) -> AsyncIterator[None]:
        raise error
        yield

    client = HttpClient(AGES_S)
    client._session = SimpleNamespace(request=fails)
    with pytest.raises(ExchangeError) as raised:
        asyncio.run(client.get("http://127.0.0.1:1/"))
    assert raised.value.kind == kind


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EngineRefusal) as caught:
        asked_once(f"http://127.0.0.1:{port}/v2/models/relu/infer")
    assert caught.value.kind == "unavailable"


def test_a_model_that_the_service_does_not_have(service: Service) -> None:
    with pytest.raises(EngineRefusal) as caught:
        asked_once(service.url.replace("relu", "gelu"))
    assert caught.value.kind == "unavailable"
    # It was told before anything was sent.
    assert service.asked == []


@pytest.mark.parametrize(
    "declared",
    [
        [{"name": "z", "datatype": "FP32", "shape": [-1, 4]}],
        [{"name": "x", "datatype": "FP16", "shape": [-1, 4]}],
        [{"name": "x", "datatype": "FP32", "shape": [-1, 5]}],
        [{"name": "x", "datatype": "FP32", "shape": [4]}],
        [{"name": f"x{n}", "datatype": "FP32", "shape": [-1, 4]} for n in range(10_000)],
    ],
)
def test_another_model_of_that_name_is_refused_before_it_is_fed(
    service: Service, declared: list[dict[str, Any]]
) -> None:
    service.declared = declared
    with pytest.raises(EngineRefusal) as caught:
        asked_once(service.url)
    # A test that is skipped would let a service that was asked for pass.
    assert caught.value.kind == "error"
    assert len(str(caught.value)) < 2000
    assert service.asked == []


@pytest.mark.parametrize(
    ("shape", "option"), [([3, 4], "--ort-batch-sizes=3"), ([-1, 5], "--ort-dims")]
)
def test_a_size_that_the_service_does_not_take_is_no_other_model(
    service: Service, shape: list[int], option: str
) -> None:
    service.declared = [{"name": "x", "datatype": "FP32", "shape": shape}]
    with pytest.raises(EngineRefusal) as caught:
        asked_once(service.url)
    assert option in caught.value.hint
    assert "--ort-endpoint" not in caught.value.hint


def test_memory_that_the_service_lacks_is_the_step() -> None:
    def fails() -> None:
        raise ExchangeError("server error", "why", status=500, said="CUDA out of memory")

    with pytest.raises(EngineRefusal) as caught:
        exchanged(fails)
    assert "memory" in caught.value.hint


def sent(
    url: str, count: int, *, timeout_s: float = AGES_S, holds_failures: bool = False,
    between: Callable[[int], None] = lambda _: None, right: RightAnswer | None = None,
) -> Exchanges:  # fmt: skip
    """Send some requests, each when the last one is done."""
    with closing(endpoint(url)) as engine:
        engine.open()
        sender = engine.sender(
            {"x": X},
            timeout_s=timeout_s,
            percents=(50.0, 99.0),
            holds_failures=holds_failures,
            right=right,
        )
        try:
            for number in range(count):
                between(number)
                done = threading.Event()
                sender.send(lambda _, done=done: done.set(), lambda: None)
                assert done.wait(AGES_S)
        finally:
            exchanges = sender.close()
    return exchanges


@pytest.mark.parametrize("name", [*FAULTS, "NaN"])
def test_a_fault_under_load_is_counted_by_its_kind(service: Service, name: str) -> None:
    fault, kind, _ = FAULTS.get(name, (with_nan, "invalid", ""))

    def meet(number: int) -> None:
        service.fault = fault if number == 1 else None

    found = sent(service.url, 3, between=meet)
    assert (found.sent, found.failed) == (3, {kind: 1})
    assert found.first_failure
    # The third one was answered.
    assert found.away_s > 0
    assert found.came_back
    assert set(found.round_trip_ns) == set(found.send_delay_ns) == {"50", "99"}


#: What single precision keeps.
FLOOR = Floor(sqnr_db=60.0, agreement=0.99, of="fp32")
OF_OTHERS = {
    "twice": 2 * Y,
    "rows of others": Y[::-1],
    "zeros": np.zeros_like(Y),
}


@pytest.mark.parametrize("reference", [[Y], None])
@pytest.mark.parametrize("name", OF_OTHERS)
def test_wrong_values_under_load_are_failures(
    service: Service, name: str, reference: list[Any] | None
) -> None:
    def meet(number: int) -> None:
        answered = {1: OF_OTHERS[name], 2: Y * (1 + 1e-6)}.get(number)
        given = None if answered is None else answer_of(answered, binary=True)
        service.fault = None if given is None else said(given[0], headers=given[1])

    right = RightAnswer(floor=FLOOR, outputs=reference)
    found = sent(service.url, 4, between=meet, right=right)
    assert (found.sent, found.failed, found.compared) == (4, {"wrong": 1}, 4)
    assert found.compared_with == ("first" if reference is None else "reference")


def test_what_was_wrong_before_the_load_is_no_failure_of_it(service: Service) -> None:
    """The check of answers tells of it; under load answers must stay what they are."""
    right = RightAnswer(floor=FLOOR, outputs=[1.1 * Y])
    found = sent(service.url, 2, right=right)
    assert (found.failed, found.compared, found.compared_with) == ({}, 2, "first")


def test_without_anything_to_compare_with_nothing_is_compared(service: Service) -> None:
    found = sent(service.url, 2)
    assert (found.failed, found.compared, found.compared_with) == ({}, 0, "")


def test_an_answer_that_never_comes_fails_after_the_timeout(service: Service) -> None:
    over = threading.Event()

    def silent(_: Handler) -> bool:
        return over.wait(AGES_S)

    def meet(number: int) -> None:
        service.fault = silent if number == 0 else None

    found = sent(service.url, 2, timeout_s=1.0, between=meet)
    over.set()
    assert (found.sent, found.failed, found.timeout_s) == (2, {"timeout": 1}, 1.0)


class Answered:
    """A request that is answered at once the first time, and never again.

    Attributes:
        asked: How often it was sent.
    """

    size_bytes = 1

    def __init__(self) -> None:
        self.asked = 0

    def after(self, reply: Reply) -> Answered:
        del reply
        return self

    async def send(self, client: HttpClient, at_first: Callable[[], None] = lambda: None) -> Reply:
        del client, at_first
        self.asked += 1
        if self.asked > 1:
            await asyncio.Event().wait()
        return Reply(b"", {})


@contextmanager
def one_at_a_time(
    monkeypatch: pytest.MonkeyPatch, *, timeout_s: float, holds_failures: bool = False
) -> Iterator[tuple[EndpointSender, Answered]]:
    """A sender whose client has one connection, to a service that answers nothing but a first."""
    monkeypatch.setattr(EndpointSender.__module__ + ".MOST_CONNECTIONS", 1)
    address, request = address_of("custom:own.py:call"), Answered()
    assert address is not None
    sender = EndpointSender(
        address, "own", lambda: request, UncheckedTexts(), timeout_s=timeout_s, percents=(100.0,),
        holds_failures=holds_failures,
    )  # fmt: skip
    try:
        yield sender, request
    finally:
        sender.close()


def test_what_is_not_over_at_the_end_counts_as_unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what waits for a connection: nothing that was taken is forgotten."""
    done: list[int] = []
    with one_at_a_time(monkeypatch, timeout_s=AGES_S) as (sender, request):
        for _ in range(3):
            sender.send(done.append, lambda: None)
        found = sender.close()
    assert (found.sent, found.failed) == (3, {"timeout": 3})
    assert (len(done), found.came_back, request.asked) == (3, False, 2)


@pytest.mark.parametrize("holds_failures", [False, True])
def test_waiting_for_a_connection_counts_towards_the_timeout(
    monkeypatch: pytest.MonkeyPatch, holds_failures: bool
) -> None:
    with one_at_a_time(monkeypatch, timeout_s=0.3, holds_failures=holds_failures) as (sender, _):
        over = [threading.Event() for _ in range(3)]
        for event in over:
            sender.send(lambda _, event=event: event.set(), lambda: None)
        assert all(event.wait(AGES_S) for event in over)
        found = sender.close()
    assert (found.sent, found.failed) == (3, {"timeout": 3})


def test_waiting_for_a_connection_is_a_delay_of_sending(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EndpointSender.__module__ + ".MOST_CONNECTIONS", 1)
    reached, go_on = threading.Event(), threading.Event()

    def held(_: Handler) -> bool:
        reached.set()
        go_on.wait(AGES_S)
        return False

    with closing(endpoint(service.url)) as engine:
        engine.open()
        sender = engine.sender({"x": X}, timeout_s=AGES_S, percents=(100.0,), holds_failures=False)
        service.fault = held
        over = [threading.Event() for _ in range(2)]
        sender.send(lambda _: over[0].set(), lambda: None)
        assert reached.wait(AGES_S)
        sender.send(lambda _: over[1].set(), lambda: None)
        began_ns = time.perf_counter_ns()
        time.sleep(0.05)
        least_ns = time.perf_counter_ns() - began_ns
        go_on.set()
        assert all(event.wait(AGES_S) for event in over)
        found = sender.close()
    assert found.failed == {}
    assert found.send_delay_ns["100"] >= least_ns


def test_what_a_request_was_issued_late_is_a_delay_of_sending(service: Service) -> None:
    """Delays belong to the requests in the order in which they were handed over."""
    hour_ns = 3600 * 10**9
    reached, go_on = threading.Event(), threading.Event()

    def held(handler: Handler) -> bool:
        if not reached.is_set():
            reached.set()
            go_on.wait(AGES_S)
        return False

    with closing(endpoint(service.url)) as engine:
        engine.open()
        sender = engine.sender({"x": X}, timeout_s=AGES_S, percents=(1.0, 100.0),
                               holds_failures=False)  # fmt: skip
        service.fault = held
        over = [threading.Event() for _ in range(2)]
        sender.send(lambda _: over[0].set(), lambda: None)
        assert reached.wait(AGES_S)
        # The second is over before the first one.
        sender.send(lambda _: over[1].set(), lambda: None)
        assert over[1].wait(AGES_S)
        go_on.set()
        assert over[0].wait(AGES_S)
        found = sender.close((2 * hour_ns, hour_ns))
    assert found.delay_from == "arrival"
    assert hour_ns <= found.send_delay_ns["1"] < 2 * hour_ns <= found.send_delay_ns["100"]


@pytest.mark.parametrize("delays_ns", [(), (5,), (5, 5, 5)])
def test_delays_of_other_requests_count_for_none(
    service: Service, delays_ns: tuple[int, ...]
) -> None:
    with closing(endpoint(service.url)) as engine:
        engine.open()
        sender = engine.sender({"x": X}, timeout_s=AGES_S, percents=(100.0,), holds_failures=False)
        over = [threading.Event() for _ in range(2)]
        for event in over:
            sender.send(lambda _, event=event: event.set(), lambda: None)
        assert all(event.wait(AGES_S) for event in over)
        found = sender.close(delays_ns)
    assert (found.sent, found.delay_from) == (2, "issue")


def test_a_service_that_stays_away_is_away_to_the_end(service: Service) -> None:
    def meet(number: int) -> None:
        service.fault = hung_up if number else None

    found = sent(service.url, 3, between=meet)
    assert (found.failures, found.came_back) == (2, False)
    service.fault = None
    whole = sent(service.url, 2)
    assert (whole.failures, whole.away_s, whole.came_back) == (0, 0.0, True)


def test_an_answer_is_read_up_to_a_size(service: Service) -> None:
    def meet(number: int) -> None:
        service.fault = said(b" " * (1 << 20)) if number == 0 else None

    assert sent(service.url, 2, between=meet).failed == {"too large": 1}


def test_the_client_tells_what_it_takes_by_itself(service: Service) -> None:
    found = sent(service.url, 1)
    cost = found.cost
    assert cost.reason == ""
    assert cost.p50_ns is not None
    assert cost.p99_ns is not None
    assert 0 < cost.p50_ns <= cost.p99_ns
    assert cost.most_per_s is not None
    assert cost.most_per_s > 0
    # Head and body of the first answer are what the responder sends.
    assert found.answer_bytes == len(answer_of(Y, binary=True)[0])
    assert found.request_bytes > X.nbytes


def test_the_responder_ends_with_the_measuring(service: Service) -> None:
    before = psutil.Process().children()
    assert sent(service.url, 1).cost.reason == ""
    assert psutil.Process().children() == before


CUSTOM = """
import asyncio
import numpy as np

def by_name(feeds):
    return {"y": np.maximum(feeds["x"], 0)}

def in_order(feeds):
    return [np.maximum(feeds["x"], 0)]

async def later(feeds):
    await asyncio.sleep(0)
    return by_name(feeds)

class Client:
    async def __call__(self, feeds):
        return by_name(feeds)

client = Client()

async def never(feeds):
    await asyncio.sleep(600)

def raising(feeds):
    raise ValueError("out of luck")

def another(feeds):
    return {"z": feeds["x"]}

def double(feeds):
    return [feeds["x"].astype("float64")]

def nothing(feeds):
    return None

def ragged(feeds):
    return [[[1.0], [1.0, 2.0]]]

def leaving(feeds):
    raise SystemExit(3)

def late(feeds):
    raise TimeoutError("of its own")

value = 3
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(CUSTOM)
    return f"custom:{tmp_path / 'own.py'}"


@pytest.mark.parametrize("function", ["by_name", "in_order", "later", "client"])
def test_a_function_of_the_users_sends_and_returns_outputs(own: str, function: str) -> None:
    np.testing.assert_array_equal(asked_once(f"{own}:{function}"), Y)
    found = sent(f"{own}:{function}", 3)
    assert (found.sent, found.failed, found.protocol, found.encoding) == (3, {}, "custom", "own")
    assert (found.request_bytes, found.answer_bytes) == (X.nbytes, Y.nbytes)
    # Nothing stands in for what it sends to.
    assert (found.cost.p50_ns, found.cost.most_per_s) == (None, None)
    assert found.cost.reason


@pytest.mark.parametrize(
    ("kind", "status", "step", "step_of_ours"),
    [
        ("refused", 0, "--ort-endpoint", "log"),
        ("client error", 401, "ORTBENCH_ENDPOINT_AUTHORIZATION", "log"),
        ("client error", 404, "name of the model", "log"),
        ("client error", 429, "fewer requests", "log"),
        ("server error", 503, "ready", "log"),
        ("server error", 500, "log", "log"),
        ("invalid", 200, "--ort-endpoint", "Correct what the service answers"),
        ("redirect", 307, "--ort-endpoint", "log"),
    ],
)
def test_the_step_fits_what_the_service_answered(
    kind: str, status: int, step: str, step_of_ours: str
) -> None:
    def fails() -> None:
        raise ExchangeError(kind, "why", status=status)

    for is_ours, expected in ((False, step), (True, step_of_ours)):
        with pytest.raises(EngineRefusal) as caught:
            exchanged(fails, is_ours=is_ours)
        assert expected in caught.value.hint
        assert ("--ort-endpoint" in caught.value.hint) is (expected == "--ort-endpoint") or (
            status == 404
        )


NO_ANSWER = ["raising", "leaving", "another", "double", "nothing", "ragged", "value", "absent"]


@pytest.mark.parametrize("function", NO_ANSWER)
def test_a_function_that_gives_no_answer_says_so_once(own: str, function: str) -> None:
    with pytest.raises(EngineRefusal) as caught:
        asked_once(f"{own}:{function}")
    assert caught.value.kind == "error"
    # There is no service whose log could be read.
    assert "log" not in caught.value.hint
    assert "own.py" in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("line", ["1 / 0", "raise SystemExit(3)", "def (", "import nothing_here"])
def test_a_file_that_does_not_load_fails_the_session(own: str, line: str) -> None:
    Path(own.removeprefix("custom:")).write_text(line)
    with pytest.raises(WorkerError) as caught:
        asked_once(f"{own}:by_name")
    assert (caught.value.failure.kind, caught.value.failure.phase) == ("error", "session")


@pytest.mark.parametrize(
    ("function", "kind"),
    [("leaving", "raised"), ("late", "raised"), ("ragged", "invalid"), ("nothing", "invalid")],
)
def test_a_function_that_spoils_a_request_under_load_is_counted(
    own: str, function: str, kind: str
) -> None:
    done = threading.Event()
    wrapped = f"""
calls = []

def first(feeds):
    calls.append(1)
    return by_name(feeds) if len(calls) == 1 else {function}(feeds)
"""
    Path(own.removeprefix("custom:")).write_text(CUSTOM + wrapped)
    with closing(endpoint(f"{own}:first")) as engine:
        engine.open()
        sender = engine.sender({"x": X}, timeout_s=AGES_S, percents=(50.0,), holds_failures=False)
        sender.send(lambda _: done.set(), lambda: None)
        assert done.wait(AGES_S)
        found = sender.close()
    assert (found.sent, found.failed) == (1, {kind: 1})


def test_a_function_that_does_not_return_is_given_up(own: str) -> None:
    with closing(endpoint(f"{own}:never")) as engine:
        engine.open()
        with pytest.raises(EngineRefusal) as caught:
            engine.sender({"x": X}, timeout_s=0.5, percents=(50.0,), holds_failures=False)
    assert caught.value.kind == "timeout"
    assert "own.py" in caught.value.hint
