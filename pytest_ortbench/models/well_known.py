"""Inputs whose name says what they hold: masks, positions, lengths, caches, sampling rates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.core.model import TensorInfo, ValueHint
from pytest_ortbench.models.symbols import quote

_PAST = re.compile(
    r"(^|[._/])(past|past_key_values?|past_keys?|past_values?|cache|kv_cache)([._/]|$|\d)"
)
#: Names that speak of a cache and are none: a position in it, its length, whether to use it.
_ABOUT_PAST = re.compile(r"(position|positions|lengths?|lens?|branch|mask|ids?|indices|use_cache)$")
_ONES = re.compile(
    r"(^|_)((attention|attn|input|encoder_attention|decoder_attention|pixel|src|tgt)_mask|masks?)$"
)
_PADDING = re.compile(r"(^|_)(key_)?padding_mask$")
_ZEROS = re.compile(r"^(token_type_ids?|segment_ids?|type_ids?|token_types?)$")
_POSITIONS = re.compile(r"^((decoder_)?position_ids?|positions?|cache_position)$")
_LENGTHS = re.compile(r"(^|_)(lengths?|lens?|num_frames|sizes_of_sequence)$")
_RATE = re.compile(r"^(sr|sample_rate|sampling_rate|samplerate)$")
_TIMESTEP = re.compile(r"^(timesteps?|t)$")
_BEAMS = re.compile(r"(^|_)(beam_idx|beam_indices|cache_indirection)$")
_FLAG = re.compile(r"^(use_cache_branch|use_cache)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the other inputs of the model tell.

    Attributes:
        batch: Symbol of the batch axis, empty if there is none.
        past: Symbol of the cache's length, empty if the model has no cache.
        lengths: By input name, the symbol of the axis that a length would count.
    """

    batch: str = ""
    past: str = ""
    lengths: dict[str, str]


def is_past(name: str) -> bool:
    """Whether an input is a cache of earlier keys and values, by its name."""
    lowered = name.lower()
    return bool(_PAST.search(lowered)) and not _ABOUT_PAST.search(lowered)


def past_symbol(
    inputs: Sequence[TensorInfo], shapes: Sequence[tuple[int | str, ...] | None], batch: str
) -> str:
    """Return the symbol of the cache's length axis: the symbolic axis that is not the batch."""
    for info, shape in zip(inputs, shapes, strict=True):
        if not is_past(info.name) or shape is None or len(shape) < 3:
            continue
        # [batch, heads, past, size] and [batch, past, size], transposed keys being the exception.
        for axis in (-2, -1, 1):
            size = shape[axis]
            if isinstance(size, str) and size != batch:
                return size
    return ""


def by_name(
    info: TensorInfo,
    found: ValueHint | None,
    surroundings: Surroundings,
    *,
    of_range: bool = False,
) -> ValueHint | None:
    """Return the hint that the name of an input implies, within what its consumers accept.

    Args:
        info: The input.
        found: What its consumers say.
        surroundings: What the other inputs tell.
        of_range: Whether a Range says the one value that its consumers accept.
    """
    name = re.split(r"[/:.]", info.name.lower())
    short = name[-1] if not name[-1].isdigit() else name[0]
    integer, boolean = "int" in info.type, "(bool)" in info.type
    if is_past(info.name):
        return found
    if _PADDING.search(short):
        kind = "zeros" if boolean else "ones"  # true means "padding" for booleans
        return ValueHint(kind=kind, why="its name: nothing is padding")
    if _ONES.search(short) and (short != "mask" or integer):
        if boolean and short in ("mask", "masks"):
            return found
        return ValueHint(kind="ones", why="its name: everything is attended to")
    if (integer or boolean) and _ZEROS.match(short):
        return ValueHint(kind="zeros", why="its name: one segment")
    if integer and _POSITIONS.match(short):
        return _positions(found, surroundings)
    if boolean and _FLAG.match(short):
        return ValueHint(kind="constant", choices=("1",), why="its name: the cache is used")
    if _RATE.match(short) and (found is None or found.kind != "constant"):
        return ValueHint(kind="constant", choices=("16000",), why="its name: sampling rate in Hz")
    if integer and info.shape is not None and len(info.shape) <= 1 and _LENGTHS.search(short):
        counted = surroundings.lengths.get(info.name, "")
        # What a recurrent layer says is better; how long a mask is made of it says nothing.
        told = found is not None and found.kind == "constant" and not of_range
        if counted and not told:
            why = f"its name: the whole length {counted}"
            return ValueHint(kind="constant", choices=(quote(counted),), why=why)
    if found is not None:
        return found
    if integer and _BEAMS.search(short) and surroundings.batch:
        bound = f"{quote(surroundings.batch)} - 1"
        return ValueHint(kind="integers", high_dim=bound, why="its name: rows of the batch")
    if _TIMESTEP.match(short) and info.shape is not None and len(info.shape) <= 1:
        return ValueHint(kind="constant", choices=("500",), why="its name: a diffusion step")
    return None


def _positions(found: ValueHint | None, surroundings: Surroundings) -> ValueHint:
    hint = ValueHint(kind="arange", high=-1.0, why="its name: positions")
    if found is not None and found.kind == "integers":
        why = f"its name: positions, within {found.why}"
        hint = replace(found, kind="arange", why=why)
    return replace(hint, low_dim=quote(surroundings.past) if surroundings.past else "")
