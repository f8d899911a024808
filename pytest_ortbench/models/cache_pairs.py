"""Which output goes on with which input of a cache, and what the axes of both are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.models.well_known import is_length_name, is_past

#: What tells the tensors of a cache apart; the rest of their names says past or present.
_PARTS = re.compile(r"\d+|key_value|key|value|self|cross|encoder|decoder|(?<![a-z])[kv](?![a-z])")
_OF_ENCODER = re.compile(r"(?<![a-z])(encoder|cross)(?![a-z])")
_PRESENT = re.compile(r"present|updated|new|next|out")
_SHORT = {"k": "key", "v": "value"}
#: Inputs of the tokens that are read, and of those that count.
IDS = re.compile(r"(decoder_)?input_ids\Z")
MASK = re.compile(r"(decoder_)?attention_mask\Z")
_OF_TOKENS = re.compile(r"(decoder_)?(input_ids|attention_mask|position_ids)\Z")
#: By number of axes, where the length stands unless something says otherwise.
_LENGTH_AXES = {3: 1, 4: 2, 5: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePair:
    """An input of a cache with the output that is fed to it in the next step.

    Attributes:
        past: The input.
        present: The output.
    """

    past: TensorInfo
    present: TensorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheAxes:
    """What the axes of a cache tensor are.

    Attributes:
        batch: Axis of the sequences.
        length: Axis of the tokens.
        heads: Axis of the heads, ``None`` for a tensor that has none of their own.
        size: Axis of the size of a head, likewise.
    """

    batch: int
    length: int
    heads: int | None = None
    size: int | None = None


def is_of_encoder(name: str) -> bool:
    """Return whether an input or output is named after an encoder, or attention to one."""
    return bool(_OF_ENCODER.search(name.lower()))


def heard_inputs(
    inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
) -> tuple[TensorInfo, ...]:
    """Return the inputs of a decoder that hold what an encoder said, in every step alike.

    A cache that the decoder itself fills from an encoder's states is none of them: an output goes
    on with it.
    """
    going_on = {parts_of_name(info.name) for info in outputs}
    return tuple(
        info
        for info in inputs
        if is_of_encoder(info.name)
        and not (is_past(info.name) and parts_of_name(info.name) in going_on)
    )


def cache_pairs(
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    named: Iterable[tuple[str, str]] = (),
) -> tuple[CachePair, ...] | str:
    """Return the inputs of a cache, each with its output.

    Args:
        inputs: As declared.
        outputs: As declared.
        named: Names of inputs and outputs that a configuration pairs, or the graph; the names of
            the others say themselves which belong together.

    Returns:
        The name of an input that no output goes on with, or more than one, if there is such one.
    """
    declared = {info.name: info for info in outputs}
    chosen = {past: present for past, present in named if present in declared}
    by_parts: dict[tuple[str, ...], list[TensorInfo]] = {}
    for info in outputs:
        by_parts.setdefault(parts_of_name(info.name), []).append(info)
    pairs = []
    heard = heard_inputs(inputs, outputs)
    for past in inputs:
        if past in heard and past.name not in chosen:
            continue
        if not is_past(past.name) and past.name not in chosen:
            continue
        if past.name in chosen:
            pairs.append(CachePair(past=past, present=declared[chosen[past.name]]))
            continue
        presents = by_parts.get(parts_of_name(past.name), [])
        marked = [info for info in presents if _PRESENT.search(info.name.lower())]
        presents = marked or [info for info in presents if is_past(info.name)]
        if len(presents) != 1:
            return past.name
        pairs.append(CachePair(past=past, present=presents[0]))
    return tuple(pairs)


def parts_of_name(name: str) -> tuple[str, ...]:
    """Return what tells a tensor of a cache from others, in any order of writing."""
    lowered = name.lower().replace("key_values", "").replace("kv_cache", "")
    return tuple(sorted(_SHORT.get(part, part) for part in _PARTS.findall(lowered)))


def cache_axes(pair: CachePair, batch: int | str | None) -> CacheAxes | None:
    """Return what the axes of a tensor are; ``None`` where it has no batch and length.

    What an operator appends along is the length. Else it is the one axis where past and present
    are called differently, or the one that is named like a length, or what is usual.

    Args:
        pair: The tensor.
        batch: What the tokens call their first axis.
    """
    shape = pair.past.shape
    if shape is None or len(shape) not in _LENGTH_AXES:
        return None
    at = _batch_axis(pair.past, shape, batch)
    length = _length_axis(pair, shape, at)
    if length == at or isinstance(shape[length], int):
        return None
    others = [axis for axis in range(len(shape)) if axis not in (at, length)][-2:]
    if len(shape) < 4:
        return CacheAxes(batch=at, length=length)
    return CacheAxes(batch=at, length=length, heads=others[0], size=others[1])


def _batch_axis(
    past: TensorInfo, shape: Sequence[int | str | None], batch: int | str | None
) -> int:
    if past.batch_axis is not None:
        return past.batch_axis
    if isinstance(batch, str) and batch in shape:
        return shape.index(batch)
    return 1 if len(shape) == 5 else 0


def _length_axis(pair: CachePair, shape: Sequence[int | str | None], batch: int) -> int:
    if pair.past.length_axis is not None:
        return pair.past.length_axis
    after = pair.present.shape
    open_axes = [
        axis for axis, size in enumerate(shape) if axis != batch and not isinstance(size, int)
    ]
    for chosen in (
        [
            axis
            for axis in open_axes
            if after is not None
            and len(after) == len(shape)
            and isinstance(after[axis], str)
            and isinstance(shape[axis], str)
            and after[axis] != shape[axis]
        ],
        [axis for axis in open_axes if is_length_name(str(shape[axis] or ""))],
        open_axes,
    ):
        if len(chosen) == 1:
            return chosen[0]
    return _LENGTH_AXES[len(shape)]


def sizes_of_presents(pairs: Iterable[CachePair]) -> dict[str, int]:
    """Return sizes that outputs declare for what the inputs call by a symbol."""
    told: dict[str, int] = {}
    for pair in pairs:
        axes = cache_axes(pair, None)
        before, after = pair.past.shape, pair.present.shape
        if axes is None or before is None or after is None or len(before) != len(after):
            continue
        for axis, (symbol, size) in enumerate(zip(before, after, strict=True)):
            told_here = isinstance(symbol, str) and isinstance(size, int) and size > 0
            if told_here and axis not in (axes.batch, axes.length):
                told.setdefault(str(symbol), int(str(size)))
    return told


def with_named_axes(
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    named: Iterable[tuple[str, str]] = (),
) -> tuple[TensorInfo, ...]:
    """Return the inputs of a decoder with a name for each axis that they leave unset.

    The names are those of exporters, so that one name sets a size of all its tensors. Other models
    are returned as they are.

    Args:
        inputs: As declared.
        outputs: As declared.
        named: As for :func:`cache_pairs`.
    """
    pairs = cache_pairs(inputs, outputs, named)
    ids = next((info for info in inputs if IDS.match(info.name.lower())), None)
    if isinstance(pairs, str) or not pairs or ids is None or len(ids.shape or ()) != 2:
        return tuple(inputs)
    batch, tokens = ids.shape or (None, None)
    usual: dict[str, int | str | None] = {
        "batch": batch or _commonest(pairs, "batch", batch) or "batch_size",
        "length": _commonest(pairs, "length", batch) or "past_sequence_length",
        "heads": _commonest(pairs, "heads", batch) or "num_key_value_heads",
        "size": _commonest(pairs, "size", batch) or "head_size",
    }
    names: dict[str, tuple[int | str | None, ...]] = {}
    for pair in pairs:
        axes = cache_axes(pair, batch)
        if axes is not None:
            kinds = {axes.heads: "heads", axes.size: "size", axes.batch: "batch"}
            kinds[axes.length] = "length"
            rank = len(pair.past.shape or ())
            names[pair.past.name] = tuple(usual.get(kinds.get(axis, "")) for axis in range(rank))
    total = "total_sequence_length"
    for info in inputs:
        if info.shape is not None and len(info.shape) == 2 and _OF_TOKENS.match(info.name.lower()):
            length = total if MASK.match(info.name.lower()) else tokens or "sequence_length"
            names[info.name] = (usual["batch"], length)
    return tuple(
        replace(info, shape=_filled(info.shape, names[info.name]))
        if info.name in names and info.shape is not None
        else info
        for info in inputs
    )


def _filled(
    shape: Sequence[int | str | None], names: Sequence[int | str | None]
) -> tuple[int | str | None, ...]:
    return tuple(
        name if size is None and not isinstance(name, int) else size
        for size, name in zip(shape, names, strict=True)
    )


def _commonest(pairs: Iterable[CachePair], kind: str, batch: int | str | None) -> int | str | None:
    """What most tensors call an axis, ``None`` where they all leave it unset."""
    sizes: Counter[int | str] = Counter()
    for pair in pairs:
        axes = cache_axes(pair, batch)
        axis = None if axes is None else getattr(axes, kind)
        size = None if axis is None or pair.past.shape is None else pair.past.shape[axis]
        if size is not None:
            sizes[size] += 1
    return sizes.most_common(1)[0][0] if sizes else None
