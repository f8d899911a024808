"""The requests that a language model is measured with: prompts × new tokens × depths × engines."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.generation import Generation
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.units import counted
from pytest_ortbench.models.decoders import completed
from pytest_ortbench.models.encoders import later_half
from pytest_ortbench.models.language_config import language_config
from pytest_ortbench.models.symbols import named_shapes
from pytest_ortbench.planning.engines import all_engines_for
from pytest_ortbench.planning.feeds import Workload, workloads
from pytest_ortbench.planning.no_decoder import why_no_decoder
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.sizes import ModelAxes

#: What is asked of a model where nobody says it; shorter where its context is.
PROMPT_TOKENS = 128
NEW_TOKENS = 32
#: Name of the workload in ids.
GENERATE = "generate"


def shapes_of(
    axes: ModelAxes, request: PlanRequest, providers: Sequence[Provider]
) -> list[tuple[dict[str, int], Workload | None]]:
    """Return sizes that the user set, each with the workloads of the model unless it sets theirs.

    Args:
        axes: Of the model.
        request: What was asked for.
        providers: What runs it; nothing is returned where nothing does.
    """
    if not providers:
        return []
    named = {name: sizes for name, sizes in request.dims.items() if name in axes.symbols}
    chosen = [dict(zip(named, sizes, strict=True)) for sizes in product(*named.values())]
    if any(not known.size and known.symbol not in named for known in axes.cache_sizes):
        # One question for a model whose sizes are not known, whatever is to be measured of it.
        return [(sizes, None) for sizes in chosen]
    presets: list[Workload | None] = [*workloads(axes)]
    if not presets or any(name in preset.dims for preset in presets if preset for name in named):
        presets = [None]
    if request.generate == "only":
        presets = []
    presets += generations(axes, request, providers)
    return [
        (_without(sizes, axes.of_requests) if _is_request(preset) else sizes, preset)
        for sizes in chosen
        for preset in presets
    ]


def _is_request(preset: Workload | None) -> bool:
    return preset is not None and preset.generation is not None


def _without(sizes: Mapping[str, int], names: Container[str]) -> dict[str, int]:
    """Return sizes without some, which would stand in the id and change nothing."""
    return {name: size for name, size in sizes.items() if name not in names}


def generations(
    axes: ModelAxes, request: PlanRequest, providers: Sequence[Provider]
) -> Iterator[Workload]:
    """Yield a workload a request that a model is measured with; none for a model that writes none.

    Args:
        axes: Of the model.
        request: What was asked for.
        providers: What runs it.
    """
    decoder = axes.model.decoder
    if request.generate == "off" or (decoder is None and request.generate != "only"):
        return
    if decoder is None or not decoder.is_complete:
        yield Workload(name=GENERATE, dims={}, refusal=_no_decoder(axes, request.dims))
        return
    # Whoever gives inputs or their sizes asks for inferences with them.
    if request.generate == "auto" and (
        request.inputs is not None or axes.of_requests & request.dims.keys()
    ):
        return
    past, tokens = axes.cache
    for prompt, new, depth, engine in product(
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
            refusal=_refusal(axes.model, asked, request),
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


def _no_decoder(axes: ModelAxes, dims: Mapping[str, tuple[int, ...]]) -> Failure:
    """Return why a model that is to generate can't be made to."""
    model = axes.model
    if model.decoder is not None:
        sizes = {known.symbol: dims.get(known.symbol, ()) for known in axes.cache_sizes}
        name = next((name for name, values in sizes.items() if len(values) > 1), "")
        values = " and ".join(map(str, sizes.get(name, ())))
        return case_failure(
            f"--ort-dims has several values for {name!r}: {values}. {name!r} is a size of the "
            f"cache of model {model.name!r}, and a run that generates text takes one value for it",
            f"Write one value, e.g. --ort-dims={name}:{next(iter(sizes.get(name, ())), 'SIZE')}",
        )
    path = Path(model.path)
    later = later_half(path)
    if later is not None:
        return case_failure(
            f"{path.name} writes only the first token of a text, and {later.name} beside it writes "
            "the others",
            f"To measure both together, name {later.name} in place of {path.name}",
        )
    return case_failure(
        f"model {model.name!r} was not recognised as a language model: {why_no_decoder(model)}",
        "If the model writes text, export it with the names of optimum: input_ids, "
        "past_key_values.0.key, …, logits. If not, leave out --ort-generate=only",
    )


def _default(tokens: int, context: int | None) -> int:
    """Return a number of tokens of which four fit into the context."""
    return tokens if context is None else max(2, min(tokens, context // 4))


def _sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    return {symbol: size for symbol, size in sizes.items() if symbol}


def _refusal(model: Model, asked: Generation, request: PlanRequest) -> Failure | None:
    decoder = model.decoder
    if decoder is not None and set(range(decoder.vocabulary)) <= set(decoder.end_tokens):
        return case_failure(
            f"each of the {decoder.vocabulary} tokens of model {model.name!r} ends a text "
            "(eos_token_id), so none is left to generate",
            f"Correct eos_token_id in {language_config(Path(model.path)).ends_from} beside the "
            "model",
        )
    if decoder is None or decoder.context is None or asked.length <= decoder.context:
        return None
    parts = [
        (length, f"{counted(length, f'{what} token')}{'' if values else ' (default)'}", option)
        for length, what, option, values in (
            (asked.depth, "earlier", "--ort-depth", request.depths),
            (asked.prompt_tokens, "prompt", "--ort-prompt-tokens", request.prompt_tokens),
            (asked.new_tokens, "new", "--ort-new-tokens", request.new_tokens),
        )
        if length
    ]
    length, _, option = max(parts)
    room = length - (asked.length - decoder.context)
    told = " and ".join(", ".join(part for _, part, _ in parts).rsplit(", ", 1))
    return case_failure(
        f"{told} make {asked.length} tokens, but the context of model {model.name!r} has room for "
        f"{decoder.context} ({decoder.context_from})",
        f"Set {option} to at most {room}, e.g. {option}={room}"
        if room > 1
        else f"Lower {' and '.join(option for _, _, option in parts)} by "
        f"{asked.length - decoder.context} in all",
    )
