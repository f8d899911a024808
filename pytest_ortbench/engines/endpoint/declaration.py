"""Declares the endpoint: a service that is asked over HTTP, whatever runs the model there."""

from __future__ import annotations

from pytest_ortbench.core.endpoint_address import ENCODINGS
from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="endpoint",
    title="the endpoint",
    target="pytest_ortbench.engines.endpoint.worker.asked:Endpoint",
    is_endpoint=True,
    distributions=("aiohttp",),
    takes_device=True,
    devices=ENCODINGS,
    options={"url": "where requests are sent, as --ort-endpoint takes it"},
)
