"""Traces of requests through a service, by OpenTelemetry's own library.

This module is imported where traces are asked for, and nowhere else. Spans are made behind the
response, of the times that the service notes anyway, so that no request waits for them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points

from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context

from pytest_ortbench.core.errors import UsageError, class_and_line, near_and_known, says
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.serving.steps import Steps

#: Says where spans go, in OpenTelemetry's own words.
EXPORTER = "OTEL_TRACES_EXPORTER"
#: Under which installed packages name their exporters.
_GROUP = "opentelemetry_traces_exporter"
_OTLP, _NONE = "otlp", "none"
#: Collectors whose own exporters ended.
_TAKE_OTLP = {"jaeger"}
#: Say how OTLP is sent, the first one that is set.
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
#: Exporters by what these say.
_OF_PROTOCOL = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
#: Characters of a path that a span keeps: a client may write any.
_LONGEST_PATH = 200


class Traces:
    """Makes the spans of each request: of the whole, and of its steps below that.

    A request with the header ``traceparent`` goes on with the trace of its client, which also says
    whether it is recorded.

    Args:
        model: What requests call the model.
        provider: Makes spans and hands them on.
    """

    def __init__(self, model: str, provider: TracerProvider) -> None:
        self._model, self._provider = model, provider
        self._tracer = provider.get_tracer(__package__ or __name__, VERSION)

    def add(
        self, method: str, route: str, path: str, headers: Mapping[str, str], steps: Steps
    ) -> None:
        """Make the spans of a request that has its response.

        Args:
            method: Of HTTP.
            route: Path of the application that it matched.
            path: Its own path.
            headers: Its headers, of which those are read that carry a trace.
            steps: What became of it.
        """
        ahead_ns = time.time_ns() - time.monotonic_ns()

        def at(seconds: float) -> int:
            return int(seconds * 1e9) + ahead_ns

        whole = self._tracer.start_span(
            f"{method} {route}",
            extract(headers),
            SpanKind.SERVER,
            {
                "http.request.method": method,
                "http.response.status_code": steps.status,
                "http.route": route,
                "url.path": path[:_LONGEST_PATH],
                "url.scheme": "http",
                "ortbench.model": self._model,
            },
            start_time=at(steps.began),
        )
        if whole.is_recording():
            inside = set_span_in_context(whole)
            for name, began, ended in steps.made:
                rows = {"ortbench.batch.rows": steps.rows} if name == "inference" else None
                step = self._tracer.start_span(name, inside, attributes=rows, start_time=at(began))
                step.end(at(ended))
            if steps.status >= 500:
                whole.set_attribute("error.type", str(steps.status))
                whole.set_status(StatusCode.ERROR)
        whole.end(at(steps.ended))

    @property
    def resource(self) -> Mapping[str, object]:
        """What each span says of where it comes from."""
        return self._provider.resource.attributes

    def close(self) -> None:
        """Hand on what was not yet, and end."""
        self._provider.shutdown()


def traces_of(model: str) -> Traces:
    """Return traces that go where OpenTelemetry's environment variables say.

    Args:
        model: What requests call the model.

    Raises:
        UsageError: if these name what is not there.
    """
    named = SERVICE_NAME in OTELResourceDetector().detect().attributes
    resource = Resource.create({} if named else {SERVICE_NAME: "ortbench-serve"})
    try:
        provider = TracerProvider(resource=resource)
        for entry in _exporters():
            provider.add_span_processor(BatchSpanProcessor(entry.load()()))
    except UsageError:
        raise
    except Exception as error:  # exporters of others raise what they like
        names = ", ".join(sorted(name for name in os.environ if name.startswith("OTEL_")))
        broken = isinstance(error, ImportError | AttributeError)  # whatever the variables say
        what = "traces can't be set up"
        if broken:
            what += ", since the installed packages of OpenTelemetry do not fit each other"
        raise UsageError(
            f"{what}. {says('Python' if broken else 'OpenTelemetry', class_and_line(error))}",
            place="--traces",
            hint=f"Correct what is wrong in these environment variables: {names}"
            if names and not broken
            else "Run: pip install --force-reinstall opentelemetry-sdk "
            f"{_package_of(_sender_of_otlp())}",
        ) from error
    return Traces(model, provider)


def _exporters() -> Iterator[EntryPoint]:
    installed = {entry.name: entry for entry in entry_points(group=_GROUP)}
    known = {_OTLP, _NONE, *installed}
    for name in (os.environ.get(EXPORTER) or _OTLP).split(","):
        asked = name.strip()
        if asked == _NONE:
            continue
        if asked not in known:
            takes_otlp = asked in _TAKE_OTLP
            raise UsageError(
                f"there is no exporter {asked!r}"
                if takes_otlp
                else f"no installed package has an exporter of traces {asked!r}",
                place=EXPORTER,
                hint=f"It takes OTLP: write {EXPORTER}={_OTLP}"
                if takes_otlp
                else near_and_known(asked, sorted(known)),
            )
        entry = installed.get(_sender_of_otlp() if asked == _OTLP else asked)
        if entry is None:
            place, protocol = _protocol()
            raise UsageError(
                f"the package that sends traces with the protocol {protocol!r} is not installed",
                place=place,
                hint=f"Run: pip install {_package_of(_sender_of_otlp())}",
            )
        yield entry


def _package_of(sender: str) -> str:
    return f"opentelemetry-exporter-{sender.replace('_', '-')}"


def _sender_of_otlp() -> str:
    """Name of the exporter that sends OTLP as the environment says.

    Raises:
        UsageError: for a protocol that there is not.
    """
    return _OF_PROTOCOL[_protocol()[1]]


def _protocol() -> tuple[str, str]:
    """Return the variable that chooses the protocol of OTLP, and the protocol.

    Raises:
        UsageError: for a protocol that there is not.
    """
    for place in _PROTOCOLS:
        protocol = os.environ.get(place, "")
        if protocol and protocol not in _OF_PROTOCOL:
            raise UsageError(
                f"traces can't be sent with the protocol {protocol!r}",
                place=place,
                hint=near_and_known(protocol, sorted(_OF_PROTOCOL)),
            )
        if protocol:
            return place, protocol
    return EXPORTER if os.environ.get(EXPORTER) else "--traces", "http/protobuf"
