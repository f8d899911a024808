"""The service as an ASGI application: its routes, its status codes and its OpenAPI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse

from pytest_ortbench.core.version import VERSION
from pytest_ortbench.serving.metrics import ServiceMetrics
from pytest_ortbench.serving.openapi import (
    ERRORS,
    INFER_ANSWER,
    INFER_BODY,
    JSON_OBJECT,
    with_model,
)
from pytest_ortbench.serving.protocol import JSON_TYPE, metadata_fields
from pytest_ortbench.serving.service import (
    ANOTHER_INSTANCE,
    RequestRefused,
    Service,
    too_large,
)
from pytest_ortbench.serving.steps import Steps
from pytest_ortbench.serving.tensor_values import HEADER_LENGTH

if TYPE_CHECKING:
    from pytest_ortbench.serving.traces import Traces

#: What the service understands beside the protocol itself.
EXTENSIONS = ("binary_tensor_data",)
#: More of a path that is not there is not told back.
_LONGEST_PATH = 100
#: What FastAPI is not to send by itself, whatever the environment says: nobody asked for it here,
#: and it holds messages of errors. Versions that send nothing take it and do nothing.
_NO_TELEMETRY: Any = {"auto_configure": False, "tracing": False, "metrics": False, "logs": False}


def make_app(
    service: Service, metrics: ServiceMetrics | None, traces: Traces | None = None
) -> FastAPI:
    """Return the application.

    Args:
        service: What answers; it is started and ended with the application.
        metrics: What is shown at ``/metrics``; ``None`` shows nothing there.
        traces: Hears of every request for an inference; ended with the application.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await service.end()
        if traces is not None:
            await asyncio.to_thread(traces.close)

    # The pages that FastAPI makes of it load scripts from elsewhere.
    app = FastAPI(
        title=f"pytest-ortbench serve {service.model.metadata.name}",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        telemetry=_NO_TELEMETRY,
    )
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(RequestRefused, _of_refusal)
    app.add_exception_handler(Exception, _of_fault)
    _add_health(app, service)
    _add_model(app, service)
    _add_inference(app, service, traces)
    if metrics is not None:
        _add_metrics(app, metrics)
    app.openapi_schema = with_model(app.openapi(), service.model)
    return app


def _add_health(app: FastAPI, service: Service) -> None:
    async def live() -> Response:
        """Answer: the process is there."""
        return _json(200, {"live": True})

    async def ready() -> Response:
        """Answer whether requests should come."""
        reason = service.not_ready
        if reason:
            raise RequestRefused(503, reason, hint=ANOTHER_INSTANCE)
        return _json(200, {"ready": True})

    async def model_ready(name: str, version: str = "") -> Response:
        """Answer whether requests to the model should come."""
        service.find(name, version)
        return await ready()

    async def server() -> Response:
        """Say what the server is."""
        said = {"name": "pytest-ortbench", "version": VERSION, "extensions": list(EXTENSIONS)}
        return _json(200, said)

    _route(app, "/v2", server)
    _route(app, "/v2/health/live", live)
    _route(app, "/v2/health/ready", ready, errors=(503,))
    _of_model(app, "/ready", model_ready, errors=(404, 503))


def _add_model(app: FastAPI, service: Service) -> None:
    async def metadata(name: str, version: str = "") -> Response:
        """Say what the model takes and gives."""
        service.find(name, version)
        return _json(200, metadata_fields(service.model.metadata))

    _of_model(app, "", metadata, errors=(404,))


def _add_inference(app: FastAPI, service: Service, traces: Traces | None) -> None:
    async def infer(request: Request, name: str, version: str = "") -> Response:
        """Run the model on the tensors of the request."""
        headers = request.headers
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise RequestRefused(
                415,
                "this service reads no compressed bodies",
                place="Content-Encoding",
                hint="Send the body uncompressed",
            )
        announced = headers.get("content-length", "")
        if announced.isdigit() and int(announced) > service.limits.body_bytes:
            raise too_large(service.limits)
        steps = Steps()
        try:
            message, also = await service.infer(
                name, version, headers.get(HEADER_LENGTH), _parts(request), steps
            )
        finally:
            if traces is not None:
                route, path = request.scope["route"].path, request.scope["path"]
                # Behind the response: no client waits for its spans.
                asyncio.get_running_loop().call_soon(
                    traces.add, request.method, route, path, headers, steps
                )
        return Response(message.body, headers=also)

    def documented(app: FastAPI, path: str) -> None:
        app.add_api_route(
            path,
            infer,
            methods=["POST"],
            response_model=None,
            responses=_documented((400, 404, 406, 408, 413, 415, 422, 429, 500, 503, 504)),
            openapi_extra={"requestBody": INFER_BODY, "responses": {"200": INFER_ANSWER}},
        )

    documented(app, "/v2/models/{name}/infer")
    documented(app, "/v2/models/{name}/versions/{version}/infer")


async def _parts(request: Request) -> AsyncIterator[bytes]:
    """The parts of a body; a client that goes away has sent a wrong one."""
    try:
        async for part in request.stream():
            yield part
    except ClientDisconnect as error:
        raise RequestRefused(
            400,
            "the client went away before all of it was there",
            place="body",
            hint="Keep the connection open until the answer is there",
        ) from error


def _add_metrics(app: FastAPI, metrics: ServiceMetrics) -> None:
    async def show() -> Response:
        """Show what was counted and timed."""
        content, kind = metrics.text()
        return Response(content, headers={"Content-Type": kind})

    app.add_api_route(
        "/metrics",
        show,
        methods=["GET"],
        response_model=None,
        response_class=PlainTextResponse,
    )


def _of_model(
    app: FastAPI, path: str, endpoint: Callable[..., Any], *, errors: tuple[int, ...]
) -> None:
    for prefix in ("/v2/models/{name}", "/v2/models/{name}/versions/{version}"):
        _route(app, f"{prefix}{path}", endpoint, errors=errors)


def _route(
    app: FastAPI, path: str, endpoint: Callable[..., Any], *, errors: tuple[int, ...] = ()
) -> None:
    app.add_api_route(
        path,
        endpoint,
        methods=["GET"],
        response_model=None,
        responses=_documented(errors),
        openapi_extra={"responses": {"200": JSON_OBJECT}},
    )


def _documented(statuses: tuple[int, ...]) -> dict[int | str, dict[str, Any]]:
    return {status: ERRORS[status] for status in statuses}


def _json(status: int, fields: object, headers: dict[str, str] | None = None) -> Response:
    content = msgspec.json.encode(fields)
    return Response(content, status, headers={**(headers or {}), "Content-Type": JSON_TYPE})


def _error(status: int, message: str, place: str = "", headers: Any = None) -> Response:
    fields = {"error": message, "place": place} if place else {"error": message}
    return _json(status, fields, dict(headers or {}))


async def _of_refusal(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestRefused)
    return _error(error.status, str(error), error.place, error.headers)


async def _of_http(request: Request, error: Exception) -> Response:
    """Answer what the routes themselves refuse: a path or a method that is not there."""
    assert isinstance(error, HTTPException)
    asked = f"{request.method} {request.url.path[:_LONGEST_PATH]}"
    message = f"{asked}: {error.detail}. GET /openapi.json has all paths and their methods"
    return _error(error.status_code, message, headers=error.headers)


async def _of_fault(_request: Request, _error_found: Exception) -> Response:
    """Answer what must not happen; what it was is in the log, and not told to clients."""
    return _error(500, "the service failed. Its log has the reason")
