"""Options of generation. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import Keyword, option
from pytest_ortbench.core.placing import Place


class GenerationOptions:
    """What the user asks for of language models."""

    generate: str = option(
        "auto",
        flag="--ort-generate",
        metavar="HOW",
        help="requests of language models (a prompt, then token by token): auto for every decoder "
        "that is recognised, off, or only: no single inferences (default: auto)",
        reader="pytest_ortbench.passes.generation.planning:read_generate",
        to="request.generate",
        keyword=Keyword(
            help="requests of language models, 'only'",
            takes="choice",
            choices=("auto", "off", "only"),
        ),
        place=Place(after="sessions", rank=10),
    )
    engines: tuple[str, ...] = option(
        (),
        flag="--ort-engines",
        kind="list",
        metavar="NAME",
        help="the generation engine: session (this package's loop on an ONNX Runtime session), "
        "genai (onnxruntime-genai, for a folder with genai_config.json); for PyTorch generate "
        "(of transformers) or forward (this package's loop on the model) (default: what fits the "
        "model; generate)",
        reader="pytest_ortbench.passes.generation.planning:read_engines",
        to="request.engines",
        keyword=Keyword(
            help="the generation engine, 'session', 'genai', 'generate' or 'forward'",
            takes="texts",
            example="'session'",
        ),
        place=Place(after="sessions", rank=11),
    )
    prompt_tokens: tuple[int, ...] = option(
        (),
        flag="--ort-prompt-tokens",
        kind="list",
        metavar="N,N",
        help="tokens of the prompt of a request, 16:512 (default: 128, or a quarter of a short "
        "context)",
        reader="pytest_ortbench.passes.generation.planning:read_tokens",
        to="request.prompt_tokens",
        keyword=Keyword(help="tokens of a prompt", takes="numbers"),
        place=Place(after="sessions", rank=12),
    )
    new_tokens: tuple[int, ...] = option(
        (),
        flag="--ort-new-tokens",
        kind="list",
        metavar="N,N",
        help="tokens that a request writes, at least two (default: 32, or less with a short "
        "context)",
        reader="pytest_ortbench.passes.generation.planning:read_new_tokens",
        to="request.new_tokens",
        keyword=Keyword(help="tokens that a request writes", takes="numbers", least=2),
        place=Place(after="sessions", rank=13),
    )
    depths: tuple[int, ...] = option(
        (),
        flag="--ort-depth",
        kind="list",
        metavar="N,N",
        help="tokens in the cache before the prompt, 0:4096 (default: 0)",
        reader="pytest_ortbench.passes.generation.planning:read_depths",
        to="request.depths",
        keyword=Keyword(help="tokens in the cache before the prompt", takes="numbers", least=0),
        place=Place(after="sessions", rank=14),
    )
    sources: dict[str, str] = option(
        {},
        flag="--ort-source",
        kind="list",
        metavar="[MODEL=]FOLDER",
        help="transformers folder (config.json, safetensors, tokenizer) that a language model was "
        "exported from, for its rows in PyTorch (default: the folder of the ONNX file, or the one "
        "above onnx/)",
        reader="pytest_ortbench.passes.generation.planning:read_sources",
        to="request.sources",
        place=Place(after="sessions", rank=16),
    )
    text: str = option(
        "",
        flag="--ort-text",
        kind="path",
        metavar="FILE",
        help="text on which the perplexity of language models is measured, with the "
        "tokenizer.json beside the model",
        reader="pytest_ortbench.passes.generation.planning:read_foreseen",
        to="sampling.text",
        place=Place(after="sessions", rank=15),
    )


OPTIONS = GenerationOptions
