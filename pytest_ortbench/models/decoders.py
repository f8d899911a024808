"""Which models write text token by token, and what their inputs and outputs mean then.

The convention is that of exporters: ``input_ids``, ``attention_mask``, ``position_ids``,
``past_key_values.N.key`` and ``present.N.key``, ``logits``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pytest_ortbench.core.generation import CacheTensor, Decoder
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.models.well_known import is_flag, is_past

_IDS = re.compile(r"(decoder_)?input_ids\Z")
_MASK = re.compile(r"(decoder_)?attention_mask\Z")
_POSITIONS = re.compile(r"(decoder_)?position_ids\Z")
_LOGITS = re.compile(r"(lm_)?logits\Z")
_INTEGERS = ("tensor(int64)", "tensor(int32)")


def decoder_of(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> Decoder | None:
    """Return what the inputs and outputs of a decoder mean; ``None`` for any other model.

    Args:
        inputs: As declared.
        outputs: As declared.
    """
    ids, logits = _named(inputs, _IDS), _named(outputs, _LOGITS)
    if ids is None or logits is None or ids.type not in _INTEGERS:
        return None
    vocabulary = logits.shape[-1] if logits.shape else None
    pasts = [info for info in inputs if is_past(info.name)]
    cache = [_cached(past, outputs) for past in pasts]
    if not isinstance(vocabulary, int) or not cache or None in cache:
        return None
    mask, positions = _named(inputs, _MASK), _named(inputs, _POSITIONS)
    flag = next((info for info in inputs if is_flag(info)), None)
    known = {info.name for info in (ids, mask, positions, flag, *pasts) if info is not None}
    if any(info.name not in known for info in inputs):
        return None
    return Decoder(
        ids=ids.name,
        logits=logits.name,
        vocabulary=vocabulary,
        cache=tuple(tensor for tensor in cache if tensor is not None),
        ids_type=ids.type,
        mask="" if mask is None else mask.name,
        positions="" if positions is None else positions.name,
        cache_flag="" if flag is None else flag.name,
    )


def _named(infos: Iterable[TensorInfo], pattern: re.Pattern[str]) -> TensorInfo | None:
    return next((info for info in infos if pattern.match(info.name.lower())), None)


def _cached(past: TensorInfo, outputs: Sequence[TensorInfo]) -> CacheTensor | None:
    """Return the tensor of a cache with the output that goes on with it, if both can be told."""
    numbers = re.findall(r"\d+|key|value", past.name.lower())
    present = next(
        (
            info
            for info in outputs
            if "present" in info.name.lower()
            and re.findall(r"\d+|key|value", info.name.lower()) == numbers
        ),
        None,
    )
    if present is None or past.shape is None or len(past.shape) != 4:
        return None
    _, heads, _, size = past.shape
    if not isinstance(heads, int) or not isinstance(size, int):
        return None
    return CacheTensor(
        past=past.name, present=present.name, type=past.type, shape=(0, heads, 0, size)
    )
