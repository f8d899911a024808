"""Decoders in two files: one for the first step of a request, one with a cache for all later ones.

The first file reads the prompt and gives the cache, and the keys and values of an encoder's output
where there is one. The model is that of the later steps, which take nearly all of the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.generation import Decoder
from pytest_ortbench.core.model import FirstStepFile, Model, TensorInfo
from pytest_ortbench.models.cache_pairs import parts_of_name
from pytest_ortbench.models.decoders import decoder_of
from pytest_ortbench.models.encoders import is_mask
from pytest_ortbench.models.language_config import language_config


def begun_by(later: Model, first: Model) -> Model | str:
    """Return a decoder with the file of its first step, or why the two do not go together.

    Args:
        later: The model that goes on with a cache.
        first: The model that is to read the prompt.
    """
    told = language_config(Path(later.path))
    decoder = later.decoder
    if decoder is None:
        found = decoder_of(
            later.inputs, later.outputs, sizes=later.implied_dims, told=told, is_later=True
        )
        if found.decoder is None:
            return f"{Path(later.path).name} was not recognised as a language model: {found.reason}"
        decoder = found.decoder
    if not decoder.cache:
        return f"{Path(later.path).name} has no cache"
    name = Path(first.path).name
    # It gives a cache, so that it reads from the left as the later steps do.
    found = decoder_of(
        first.inputs, first.outputs, sizes=first.implied_dims, told=replace(told, is_causal=True)
    )
    if found.decoder is None:
        return f"{name} was not recognised as a language model: {found.reason}"
    if found.decoder.cache:
        return f"{name} takes a cache itself"
    if found.decoder.vocabulary != decoder.vocabulary:
        return (
            f"{name} has a vocabulary of {found.decoder.vocabulary} tokens, but "
            f"{Path(later.path).name} one of {decoder.vocabulary}"
        )
    given = _given(decoder, later.inputs, found.decoder, first.outputs)
    if isinstance(given, str):
        return f"no single output of {name} fits input {given!r}"
    return replace(
        later,
        # What the first step gives is as long as the prompt: there is no room behind it.
        decoder=replace(decoder, shares_buffers=False),
        first_step=FirstStepFile(
            path=first.path,
            source=first.source,
            digest=first.digest,
            size_bytes=first.size_bytes,
            decoder=found.decoder,
            given=given,
            external_files=first.external_files,
            inputs=first.inputs,
            default_dims=first.default_dims,
            implied_dims=first.implied_dims,
        ),
    )


def _given(
    decoder: Decoder,
    inputs: Iterable[TensorInfo],
    first: Decoder,
    outputs: tuple[TensorInfo, ...],
) -> dict[str, str] | str:
    """The output of the first step that each later input takes, or the input that none is for."""
    presents = {tensor.past: tensor.present for tensor in decoder.cache}
    given: dict[str, str] = {}
    for info in inputs:
        if info.name in presents:
            wanted = presents[info.name]
        elif info.name in decoder.heard and info.name not in first.heard and not is_mask(info):
            wanted = info.name
        else:
            continue
        named = [output for output in outputs if output.name == wanted]
        alike = [
            output
            for output in outputs
            if output.name != first.logits
            and parts_of_name(output.name) == parts_of_name(info.name) != ()
        ]
        chosen = named or alike
        if len(chosen) != 1 or chosen[0].type != info.type:
            return info.name
        given[info.name] = chosen[0].name
    return given
