"""The requests that a language model is measured with: prompts × new tokens × depths × engines."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.generation import Generation
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.models.decoders import completed
from pytest_ortbench.models.symbols import named_shapes
from pytest_ortbench.planning.decoder_notes import why_no_decoder
from pytest_ortbench.planning.engines import all_engines_for
from pytest_ortbench.planning.feeds import Workload
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.sizes import ModelAxes

#: What is asked of a model where nobody says it; shorter where its context is.
PROMPT_TOKENS = 128
NEW_TOKENS = 32
#: Name of the workload in ids.
GENERATE = "generate"


def generations(
    axes: ModelAxes, request: PlanRequest, providers: Iterable[Provider]
) -> Iterator[Workload]:
    """Yield a workload a request that a model is measured with; none for a model that writes none.

    Args:
        axes: Of the model.
        request: What was asked for.
        providers: What runs it.
    """
    decoder = axes.model.decoder
    past, tokens = axes.cache
    if request.generate == "off" or (decoder is None and request.generate != "only"):
        return
    if decoder is None or not decoder.is_complete:
        yield Workload(name=GENERATE, dims={}, refusal=_no_decoder(axes.model))
        return
    # Whoever gives inputs or their sizes asks for inferences with them.
    if request.generate == "auto" and (
        request.inputs is not None or past in request.dims or tokens in request.dims
    ):
        return
    for prompt, new, depth, engine in itertools.product(
        request.prompt_tokens or (_default(PROMPT_TOKENS, decoder.context),),
        request.new_tokens or (_default(NEW_TOKENS, decoder.context),),
        request.depths or (0,),
        all_engines_for(axes.model, request, providers),
    ):
        asked = Generation(engine=engine, prompt_tokens=prompt, new_tokens=new, depth=depth)
        yield Workload(
            name=GENERATE,
            dims=_sizes(
                {tokens: prompt, past: 0}
                if axes.model.first_step is None
                else {tokens: 1, past: prompt}
            ),
            generation=asked,
            refusal=_refusal(axes.model, asked),
        )


def with_cache_sizes(model: Model, dims: Mapping[str, tuple[int, ...]]) -> Model:
    """Return a model whose decoder knows the sizes of its cache that the user set.

    Args:
        model: As it was read.
        dims: Sizes that the user set; one that has several values is not of a cache.
    """
    if model.decoder is None or model.decoder.is_complete:
        return model
    shapes = zip(model.inputs, named_shapes(model.inputs), strict=True)
    inputs = [replace(info, shape=shape) for info, shape in shapes]
    sizes = {name: values[0] for name, values in dims.items() if len(values) == 1}
    return replace(model, decoder=completed(model.decoder, inputs, sizes))


def _no_decoder(model: Model) -> Failure:
    """Return why a model that is to generate can't be made to."""
    if model.decoder is not None:
        return case_failure(
            f"the cache of model {model.name!r} has several sizes", "Set one with --ort-dims"
        )
    return case_failure(
        f"model {model.name!r} was not recognised as a model that writes text: "
        f"{why_no_decoder(model)}",
        "Leave out --ort-generate=only to measure single inferences",
    )


def _default(tokens: int, context: int | None) -> int:
    """Return a number of tokens of which four fit into the context."""
    return tokens if context is None else max(2, min(tokens, context // 4))


def _sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    return {symbol: size for symbol, size in sizes.items() if symbol}


def _refusal(model: Model, asked: Generation) -> Failure | None:
    decoder = model.decoder
    if decoder is not None and set(range(decoder.vocabulary)) <= set(decoder.end_tokens):
        return case_failure(
            f"each of the {decoder.vocabulary} tokens of model {model.name!r} ends a text "
            "(eos_token_id), so none is left to write",
            "Correct eos_token_id in its configuration",
        )
    if decoder is None or decoder.context is None or asked.length <= decoder.context:
        return None
    return case_failure(
        f"depth {asked.depth}, prompt {asked.prompt_tokens} and {asked.new_tokens} new "
        f"tokens make {asked.length} tokens, but the context of model {model.name!r} ends at "
        f"{decoder.context} ({decoder.context_from})",
        "Set fewer with --ort-depth, --ort-prompt-tokens or --ort-new-tokens",
    )
