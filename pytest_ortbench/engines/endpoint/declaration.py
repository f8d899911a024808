"""Declares the endpoint: a service that is asked over HTTP, whatever runs the model there."""

from __future__ import annotations

from pytest_ortbench.core.endpoint_address import ENCODINGS, OPENAI
from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="endpoint",
    title="the endpoint",
    target="pytest_ortbench.engines.endpoint.worker.asked:Endpoint",
    is_endpoint=True,
    distributions=("aiohttp",),
    takes_device=True,
    devices=(*ENCODINGS, OPENAI),
    options={
        "url": "where requests are sent, as --ort-endpoint takes it",
        "app": "what is started there, as --ort-serve takes it",
        "model": "what a service of several language models calls the one that is asked",
        "ignore_eos": "1 asks to write on behind the end of a text (vLLM, SGLang, llama.cpp)",
    },
    writer="pytest_ortbench.engines.endpoint.worker.openai_writer:OpenAiEndpoint",
)
