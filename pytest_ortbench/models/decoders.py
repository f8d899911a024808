"""Which models write text token by token, and what their inputs and outputs mean then.

The convention is that of exporters: ``input_ids``, ``attention_mask``, ``position_ids``,
``past_key_values.N.key`` and ``present.N.key``, ``logits``. A ``genai_config.json`` that names the
file may call them otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.core.generation import CacheTensor, Decoder
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.models.cache_pairs import (
    IDS,
    MASK,
    CachePair,
    cache_axes,
    cache_pairs,
    heard_inputs,
    is_of_encoder,
)
from pytest_ortbench.models.decoder_graph import DecoderGraph
from pytest_ortbench.models.genai_faults import config_faults
from pytest_ortbench.models.hints import default_hint
from pytest_ortbench.models.language_config import LanguageConfig
from pytest_ortbench.models.well_known import is_first_flag, is_flag, is_past

_POSITIONS = re.compile(r"(decoder_)?position_ids\Z|(cache|input)_pos(ition)?\Z")
_LOGITS = re.compile(r"(lm_)?logits\Z")
_INTEGERS = ("tensor(int64)", "tensor(int32)")
#: Inputs that hold one value in every step, and which.
_CONSTANTS: tuple[tuple[re.Pattern[str], int, str], ...] = (
    (re.compile(r"(num_)?logits_to_keep\Z"), 1, "the scores of the last token alone"),
    (re.compile(r"token_type_ids\Z"), 0, "one segment"),
)
#: What tells a cache that neither names nor the graph tell.
_HOW_TO_NAME = (
    "If the model is a language model, name its caches in a genai_config.json beside it: "
    "past_key_names and past_value_names in model.decoder.inputs, present_key_names and "
    "present_value_names in model.decoder.outputs, each with %d for the layer, e.g. 'past.%d.key'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """What became of taking a model for a decoder.

    Attributes:
        decoder: What its inputs and outputs mean; ``None`` for another model.
        reason: Why it is none.
    """

    decoder: Decoder | None = None
    reason: str = ""


def decoder_of(
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    *,
    sizes: Mapping[str, int] | None = None,
    graph: DecoderGraph | None = None,
    told: LanguageConfig | None = None,
    is_later: bool = False,
) -> Recognised:
    """Take a model for a decoder, by the names of its inputs and outputs.

    Args:
        inputs: As declared, with what their consumers say.
        outputs: As declared.
        sizes: Sizes of symbols that the graph fixes.
        graph: What the graph shows.
        told: What files beside it tell.
        is_later: Whether another file makes the first step, so that one token at a time will do.
    """
    graph, told = graph or DecoderGraph(), told or LanguageConfig()
    parts = _parts(inputs, outputs, told, graph, is_later=is_later)
    if isinstance(parts, str):
        return Recognised(reason=parts)
    if not parts.pairs and not (told.is_causal or graph.is_causal):
        return Recognised(
            reason="the model takes no cache of keys and values, none of its operators is causal, "
            "and no config.json beside the model names a language model"
        )
    tensors = []
    for pair in parts.pairs:
        tensor = _tensor(pair, parts.ids, sizes or {}, told, graph.windows)
        if isinstance(tensor, str):
            return Recognised(reason=tensor)
        tensors.append(tensor)
    vocabulary = _vocabulary(parts, told)
    if not vocabulary:
        return Recognised(
            reason=f"the number of tokens is not known: the last axis of {parts.logits.name!r} is "
            "open, and no config.json beside the model has vocab_size"
        )
    context, context_from = _context(parts, graph, told)
    decoder = Decoder(
        ids=parts.ids.name,
        logits=parts.logits.name,
        vocabulary=vocabulary,
        cache=tuple(tensors),
        ids_type=parts.ids.type,
        mask=_name(parts.mask),
        positions=_name(parts.positions),
        cache_flag=_name(parts.flag),
        cache_flag_first=parts.flag is not None and is_first_flag(parts.flag),
        constants=parts.constants,
        heard=parts.heard,
        shares_buffers=graph.shares_buffers,
        context=context,
        context_from=context_from,
        end_tokens=tuple(token for token in told.end_tokens if token < vocabulary),
        folder="" if told.genai is None else str(told.genai.folder),
        config_faults=told.faults,
    )
    if told.genai is not None:
        decoder = replace(decoder, config_faults=config_faults(told.genai, decoder, inputs))
    return Recognised(decoder=decoder)


def is_cache_of(model: Model, name: str) -> bool:
    """Return whether an input is a cache: by its name, or by what the model does with it.

    Args:
        model: Any model.
        name: Of one of its inputs.
    """
    if is_past(name):
        return True
    decoder = model.decoder
    return decoder is not None and any(tensor.past == name for tensor in decoder.cache)


def completed(decoder: Decoder, inputs: Sequence[TensorInfo], sizes: Mapping[str, int]) -> Decoder:
    """Return a decoder with sizes of its cache that somebody else knows.

    Args:
        decoder: As it was recognised.
        inputs: Of its model, with a name for every open axis.
        sizes: By symbol.
    """
    shapes = {info.name: info.shape for info in inputs}
    return replace(
        decoder,
        cache=tuple(
            replace(tensor, shape=_sized(tensor, shapes.get(tensor.past) or (), sizes))
            for tensor in decoder.cache
        ),
    )


def _sized(
    tensor: CacheTensor, shape: Sequence[int | str | None], sizes: Mapping[str, int]
) -> tuple[int, ...]:
    sized = list(tensor.shape)
    for axis in tensor.open_axes:
        symbol = shape[axis] if axis < len(shape) else None
        sized[axis] = sizes.get(symbol, 0) if isinstance(symbol, str) else 0
    return tuple(sized)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """The inputs and outputs of a decoder by what they mean."""

    ids: TensorInfo
    logits: TensorInfo
    pairs: tuple[CachePair, ...]
    mask: TensorInfo | None
    positions: TensorInfo | None
    flag: TensorInfo | None
    constants: dict[str, int]
    heard: tuple[str, ...]


def _parts(
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    told: LanguageConfig,
    graph: DecoderGraph,
    *,
    is_later: bool,
) -> _Parts | str:
    """Return what each input and output means, or why that can't be told."""
    ids = _named(inputs, IDS, told, "input_ids")
    logits = _named(outputs, _LOGITS, told, "logits")
    if ids is None:
        return "no input is called input_ids"
    if ids.type not in _INTEGERS or ids.shape is None or len(ids.shape) != 2:
        return f"input {ids.name!r} does not take [batch, tokens] of whole numbers"
    if isinstance(ids.shape[1], int) and not (is_later and ids.shape[1] == 1):
        return f"input {ids.name!r} accepts exactly {ids.shape[1]} tokens, not any number of them"
    if logits is None:
        return "no output is called logits"
    if logits.shape is not None and len(logits.shape) != 3:
        return (
            f"output {logits.name!r} has {len(logits.shape)} axes, not [batch, tokens, vocabulary]"
        )
    named = () if told.genai is None else told.genai.cache_names
    pairs = cache_pairs(inputs, outputs, (*named, *graph.flowing))
    if isinstance(pairs, str):
        return (
            f"which output the cache input {pairs!r} takes in the next step is not known. "
            f"{_HOW_TO_NAME}"
        )
    mask = _named(inputs, MASK, told, "attention_mask")
    positions = _named(inputs, _POSITIONS, told, "position_ids")
    for info, most in ((mask, 2), (positions, 2)):
        if info is not None and (info.type not in _INTEGERS or len(info.shape or (0,)) > most):
            return (
                f"input {info.name!r} is {info.type} with {len(info.shape or ())} axes, but must "
                f"take whole numbers on at most {most}"
            )
    flag = next((info for info in inputs if is_flag(info)), None)
    constants = {info.name: value for info in inputs for value in _constant(info)}
    heard = tuple(info.name for info in heard_inputs(inputs, outputs))
    known = {info.name for info in (ids, mask, positions, flag) if info is not None}
    known |= {pair.past.name for pair in pairs} | {*constants, *heard}
    unknown = next((info.name for info in inputs if info.name not in known), None)
    if unknown is not None:
        return f"what to feed input {unknown!r} for each token is not known. {_HOW_TO_NAME}"
    return _Parts(
        ids=ids,
        logits=logits,
        pairs=pairs,
        mask=mask,
        positions=positions,
        flag=flag,
        constants=constants,
        heard=heard,
    )


def _named(
    infos: Iterable[TensorInfo], pattern: re.Pattern[str], told: LanguageConfig, what: str
) -> TensorInfo | None:
    """Return the one that a configuration names, else the first with a usual name."""
    name = "" if told.genai is None else told.genai.name_of(what)
    infos = list(infos)
    chosen = next((info for info in infos if name and info.name == name), None)
    return chosen or next((info for info in infos if pattern.match(info.name.lower())), None)


def _constant(info: TensorInfo) -> list[int]:
    if info.type not in _INTEGERS:
        return []
    return [value for pattern, value, _ in _CONSTANTS if pattern.match(info.name.lower())]


def _name(info: TensorInfo | None) -> str:
    return "" if info is None else info.name


def _tensor(
    pair: CachePair,
    ids: TensorInfo,
    sizes: Mapping[str, int],
    told: LanguageConfig,
    windows: Mapping[str, int],
) -> CacheTensor | str:
    """Return a tensor of the cache as far as its sizes are known, or why it is none."""
    past, shape = pair.past, pair.past.shape
    axes = cache_axes(pair, ids.shape[0] if ids.shape else None)
    if shape is None:
        return f"the shape of input {past.name!r} is not declared"
    if axes is None:
        return f"no open axis of input {past.name!r}, of shape {list(shape)}, counts tokens"
    known = {axes.heads: told.heads, axes.size: told.head_size}
    sized = []
    for axis, declared in enumerate(shape):
        size = declared if isinstance(declared, int) else 0
        if isinstance(declared, str):
            size = sizes.get(declared, 0)
        sized.append(0 if axis in (axes.batch, axes.length) else size or known.get(axis, 0))
    return CacheTensor(
        past=past.name,
        present=pair.present.name,
        type=past.type,
        shape=tuple(sized),
        batch_axis=axes.batch,
        length_axis=axes.length,
        is_of_encoder=is_of_encoder(past.name),
        window=windows.get(past.name, 0),
    )


def _vocabulary(parts: _Parts, told: LanguageConfig) -> int:
    """Tokens by the scores; where they don't say, by files, or by the table of the tokens."""
    size = parts.logits.shape[-1] if parts.logits.shape else None
    if isinstance(size, int) and size > 0:
        return size
    hint = parts.ids.hint
    if told.vocabulary or hint is None or hint == default_hint(parts.ids.type):
        return told.vocabulary
    return int(hint.high) + 1 if hint.kind == "integers" else 0


def _context(parts: _Parts, graph: DecoderGraph, told: LanguageConfig) -> tuple[int | None, str]:
    """The shortest of what says how long a text may be."""
    limits = [(told.context, told.context_from)] if told.context else []
    if graph.positions:
        limits.append((graph.positions, graph.positions_from))
    hint = None if parts.positions is None else parts.positions.hint
    if hint is not None and hint.kind == "arange" and hint.high > 0:
        limits.append((int(hint.high) + 1, hint.why))
    return min(limits, default=(None, ""), key=lambda limit: limit[0] or 0)
