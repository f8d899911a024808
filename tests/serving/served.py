"""Small models that are served, and requests to them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnx

from pytest_ortbench.core.case import Case
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.serving.metrics import Unobserved
from pytest_ortbench.serving.protocol import InferResponse, decode_response
from pytest_ortbench.serving.served_model import ServedModel
from pytest_ortbench.serving.service import Service, ServiceLimits
from tests.launch.cases import case_of
from tests.models import graphs

R = TypeVar("R")


def looked_up() -> onnx.ModelProto:
    """Rows of a table of ten, by their numbers; the logarithm of one column beside."""
    table = graphs.weight("table", 10, 3)
    return graphs.model(
        [
            graphs.node("Gather", ["table", "ids"], ["rows"]),
            graphs.node("Add", ["rows", "x"], ["sum"]),
            graphs.node("Log", ["x"], ["log"]),
        ],
        [graphs.value("ids", ["batch"], graphs.INT64), graphs.value("x", ["batch", 3])],
        [graphs.value("sum", ["batch", 3]), graphs.value("log", ["batch", 3])],
        [table],
    )


def cases(proto: onnx.ModelProto, folder: Path) -> tuple[Case, Case]:
    """The case of a model, and that with a batch of two where a dimension is called so."""
    found = graphs.read(proto, folder)
    one = replace(
        case_of(Path(found.path), inputs=resolve_inputs(found, batch=1, dims={})), model=found
    )
    # By its name, as of a graph that can't be followed: what says no there is asked before.
    return one, replace(one, inputs=resolve_inputs(found, batch=None, dims={"batch": 2}))


def model_of(proto: onnx.ModelProto, folder: Path, *, joins: bool = False) -> ServedModel:
    one, two = cases(proto, folder)
    return ServedModel(one, "m", double=two if joins else None)


def service_of(model: ServedModel, **limits: Any) -> Service:
    return Service(model, ServiceLimits(**limits), Unobserved())


def lookup(ids: list[int], *, x: float = 1.0, **fields: Any) -> bytes:
    """A request to :func:`looked_up`."""
    inputs = [
        {"name": "ids", "shape": [len(ids)], "datatype": "INT64", "data": ids},
        {"name": "x", "shape": [len(ids), 3], "datatype": "FP32", "data": [x] * 3 * len(ids)},
    ]
    return json.dumps({"inputs": inputs, **fields}).encode()


async def parts(*content: bytes) -> AsyncIterator[bytes]:
    for part in content:
        yield part


async def asked(service: Service, body: bytes, header_length: str | None = None) -> InferResponse:
    message, _ = await service.infer("m", "", header_length, parts(body))
    return decode_response(message.body, message.header_length)


def during(service: Service, what: Callable[[], Awaitable[R]]) -> R:
    """Do something while a service runs."""

    async def all_of_it() -> R:
        service.start()
        try:
            return await what()
        finally:
            await service.end()

    return asyncio.run(all_of_it())


def arrays(response: InferResponse) -> dict[str, np.ndarray[Any, Any]]:
    return {tensor.name: tensor.array for tensor in response.outputs}
