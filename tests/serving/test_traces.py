"""Traces of requests: which spans there are, whose they are, and what stands in them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import onnx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.serving import traces
from pytest_ortbench.serving.app import make_app
from pytest_ortbench.serving.metrics import Unobserved
from pytest_ortbench.serving.served_model import ServedModel
from pytest_ortbench.serving.service import Service, ServiceLimits
from pytest_ortbench.serving.traces import EXPORTER, Traces, traces_of
from tests.serving.served import during, looked_up, lookup, model_of
from tests.serving.started import started

pytestmark = pytest.mark.live

INFER = "/v2/models/m/infer"
SERVER = "POST /v2/models/{name}/infer"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"
SECRET = "Bearer kept-for-oneself"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ServedModel:
    return model_of(looked_up(), tmp_path_factory.mktemp("model"), joins=True)


async def post(app: Any, path: str, body: bytes, headers: dict[str, str]) -> int:
    """Send one request to an application in this process, and return the status."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1),
        "headers": [(name.lower().encode(), text.encode()) for name, text in headers.items()],
    }  # fmt: skip
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(scope, receive, send)
    return statuses[0]


def traced(
    model: ServedModel,
    *bodies: bytes,
    path: str = INFER,
    headers: dict[str, str] | None = None,
    runs: bool = True,
    **limits: Any,
) -> tuple[list[int], list[ReadableSpan]]:
    """Statuses of requests that are sent together, and the spans that were made of them.

    Where the service does not run, requests wait until their time is over.
    """
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    service = Service(model, ServiceLimits(**limits), Unobserved())
    app = make_app(service, None, Traces("m", provider))

    async def all_of_them() -> list[int]:
        asking = [post(app, path, body, headers or {}) for body in bodies]
        return await asyncio.gather(*asking)

    statuses = during(service, all_of_them) if runs else asyncio.run(all_of_them())
    provider.shutdown()
    return statuses, list(kept.get_finished_spans())


def by_name(spans: Sequence[ReadableSpan]) -> dict[str, ReadableSpan]:
    named = {span.name: span for span in spans}
    assert len(named) == len(spans)
    return named


def test_a_request_is_one_trace_of_its_steps(model: ServedModel) -> None:
    statuses, spans = traced(model, lookup([1]))
    assert statuses == [200]
    named = by_name(spans)
    whole = named.pop(SERVER)
    assert list(named) == ["read", "check", "queue", "inference", "write"]
    assert whole.kind is SpanKind.SERVER
    assert whole.parent is None
    assert whole.status.status_code is StatusCode.UNSET
    last = whole.start_time
    for step in named.values():
        assert step.parent is not None
        assert step.parent.span_id == whole.context.span_id
        assert step.context.trace_id == whole.context.trace_id
        assert step.start_time is not None
        assert step.end_time is not None
        assert last is not None
        assert last <= step.start_time <= step.end_time
        last = step.end_time
    assert whole.end_time is not None
    assert last is not None
    assert last <= whole.end_time


def test_it_goes_on_with_the_trace_of_its_client(model: ServedModel) -> None:
    _, spans = traced(model, lookup([1]), headers={"traceparent": SAMPLED})
    assert {f"{span.context.trace_id:032x}" for span in spans} == {TRACE}
    parent = by_name(spans)[SERVER].parent
    assert parent is not None
    assert f"{parent.span_id:016x}" == PARENT


def test_a_client_that_records_nothing_makes_no_spans(model: ServedModel) -> None:
    statuses, spans = traced(model, lookup([1]), headers={"traceparent": UNSAMPLED})
    assert (statuses, spans) == ([200], [])


@pytest.mark.parametrize("header", ["", "00", f"00-{TRACE}-{PARENT}", "00-" + "0" * 51, "é" * 55])
def test_a_header_that_is_no_trace_begins_another_one(model: ServedModel, header: str) -> None:
    statuses, spans = traced(model, lookup([1]), headers={"traceparent": header})
    assert statuses == [200]
    assert by_name(spans)[SERVER].parent is None


def test_requests_that_are_joined_tell_their_wait_and_the_rows_of_both(model: ServedModel) -> None:
    statuses, spans = traced(model, lookup([1]), lookup([2, 3]), most_rows=3, wait_s=60.0)
    assert statuses == [200, 200]
    traces = {span.context.trace_id for span in spans}
    assert len(traces) == 2
    for trace in traces:
        named = by_name([span for span in spans if span.context.trace_id == trace])
        assert {"queue", "batch", "inference"} <= named.keys()
        assert named["inference"].attributes == {"ortbench.batch.rows": 3}


def test_a_span_holds_nothing_of_tensors_and_no_header(model: ServedModel) -> None:
    headers = {"authorization": SECRET, "x-api-key": SECRET}
    _, spans = traced(model, lookup([7, 8], id="seven"), headers=headers)
    for span in spans:
        assert not span.events
        assert not span.links
    whole = by_name(spans)[SERVER]
    assert dict(whole.attributes or {}) == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "http.route": "/v2/models/{name}/infer",
        "url.path": INFER,
        "url.scheme": "http",
        "ortbench.model": "m",
    }
    rest = {span.name: dict(span.attributes or {}) for span in spans if span is not whole}
    assert [name for name, attributes in rest.items() if attributes] == ["inference"]


@pytest.mark.parametrize(
    ("body", "path", "status", "steps"),
    [
        (b"{", INFER, 400, ["read"]),
        (lookup([1]), "/v2/models/n/infer", 404, []),
        (lookup([10]), INFER, 422, ["read", "check", "queue", "inference"]),
        (lookup([1], x=-1.0), INFER, 406, ["read", "check", "queue", "inference"]),
    ],
)
def test_a_request_that_is_refused_has_the_steps_that_it_made(
    body: bytes, path: str, status: int, steps: list[str], model: ServedModel
) -> None:
    statuses, spans = traced(model, body, path=path)
    named = by_name(spans)
    whole = named.pop(SERVER)
    assert statuses == [status]
    assert list(named) == steps
    assert whole.attributes is not None
    assert whole.attributes["http.response.status_code"] == status
    # A client's mistake is no error of the service.
    assert whole.status.status_code is StatusCode.UNSET


def test_a_request_that_the_service_fails_is_an_error(model: ServedModel) -> None:
    statuses, spans = traced(model, lookup([1]), runs=False, timeout_s=0.5)
    assert statuses == [504]
    whole = by_name(spans)[SERVER]
    assert (whole.attributes or {})["error.type"] == "504"
    assert whole.status.status_code is StatusCode.ERROR


def test_a_long_path_is_cut(model: ServedModel) -> None:
    _, spans = traced(model, lookup([1]), path=f"/v2/models/{'n' * 5000}/infer")
    attributes = by_name(spans)[SERVER].attributes or {}
    assert len(str(attributes["url.path"])) == 200


@pytest.mark.parametrize(
    ("variable", "value", "place"),
    [
        (EXPORTER, "nobody", EXPORTER),
        (EXPORTER, "console,nobody", EXPORTER),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier/pigeon", "OTEL_EXPORTER_OTLP_PROTOCOL"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-1", "--traces"),
    ],
)
def test_a_wrong_word_of_the_environment_is_refused_at_its_place(
    variable: str, value: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError) as refused:
        traces_of("m")
    assert refused.value.place == place


def test_packages_that_do_not_fit_each_other_are_told_whatever_the_variables_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> object:
        raise ImportError("cannot import name 'CREDENTIALS'")

    monkeypatch.setenv("OTEL_SERVICE_NAME", "net")
    monkeypatch.setattr(traces, "BatchSpanProcessor", broken)
    with pytest.raises(UsageError) as refused:
        traces_of("m")
    assert "OTEL_SERVICE_NAME" not in refused.value.hint
    assert "opentelemetry-sdk" in refused.value.hint


@pytest.mark.parametrize("variable", ["", "otlp"])
def test_an_exporter_that_is_not_installed_is_told_at_what_asks_for_it(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EXPORTER, variable)
    monkeypatch.setattr(traces, "entry_points", lambda **_: ())
    with pytest.raises(UsageError) as refused:
        traces_of("m")
    assert refused.value.place == (EXPORTER if variable else "--traces")


@pytest.mark.parametrize(("variable", "name"), [("", "ortbench-serve"), ("vision", "vision")])
def test_a_service_is_called_as_the_environment_says(
    variable: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EXPORTER, "none")
    if variable:
        monkeypatch.setenv("OTEL_SERVICE_NAME", variable)
    assert traces_of("m").resource["service.name"] == name


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """What takes OTLP over HTTP; gives its address and all that it was sent."""
    sent: list[ExportTraceServiceRequest] = []

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sent.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Taking) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", sent
        finally:
            server.shutdown()
            thread.join()


def test_a_service_sends_its_spans_as_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(looked_up(), tmp_path / "lookup.onnx")
    with collector() as (url, sent):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.delenv(EXPORTER, raising=False)
        # FastAPI would send spans of its own, once more for each request.
        monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
        with started(tmp_path / "lookup.onnx", tmp_path, "--traces", "--drain=10ms") as service:
            headers = {"traceparent": SAMPLED, "Authorization": SECRET}
            assert service.ask("POST", INFER, lookup([4]), headers)[0] == 200
    resources = [each for message in sent for each in message.resource_spans]
    spans = [span for each in resources for scope in each.scope_spans for span in scope.spans]
    assert [span.name for span in spans if span.parent_span_id.hex() == PARENT] == [SERVER]
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    assert "inference" in {span.name for span in spans}
    assert SECRET.encode() not in b"".join(message.SerializeToString() for message in sent)


def test_what_makes_spans_is_not_imported_where_nobody_asks(tmp_path: Path) -> None:
    # FastAPI itself imports the interface of OpenTelemetry, which does nothing.
    code = (
        "import sys, pytest_ortbench.serving.server, pytest_ortbench.cli.serve; "
        "sys.exit(any(name.startswith('opentelemetry.sdk') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0
