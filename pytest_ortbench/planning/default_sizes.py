"""Documented sizes of symbolic dimensions that nobody named: by the symbol's name, else by place.

They are what people commonly run such models with, never 1: a network at all-ones sizes is another
workload. Whatever is taken from here is printed, and ``--ort-dims`` overrides it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.core.model import TensorInfo

SEQUENCE = 128
PAST = 128
IMAGE = 224
CHANNELS = 3
FEATURES = 64
SAMPLES = 16_000
OTHER = 16

_PAST_NAME = r"past.*|.*past.*|.*cache.*|kv_len(gth)?"
_FRAMES_NAME = r"frames?|num_frames|.*_frames"
_SEQUENCE_NAME = (
    r"s|t|l|seq|seq_?len(gth)?|sequence|time|times|tokens?|num_tokens|text_len(gth)?|"
    r"max_len(gth)?|length|.*sequence_length|.*seq_?len(gth)?|.*sequence"
)

#: Name of the symbol (the whole name, any case), size, what it is taken for.
BY_NAME: tuple[tuple[str, int, str], ...] = (
    (r"batch.*|.*batch(_size)?", 1, "batch"),
    (_PAST_NAME, PAST, "past length"),
    (r"samples|num_samples|audio.*|wav.*|waveform.*", SAMPLES, "audio samples, 1 s at 16 kHz"),
    (r"h|w|height|width|.*_?(height|width|img_?[hw]|image_[hw])", IMAGE, "image size"),
    (r"c|ch|channels?|num_channels|in_channels", CHANNELS, "channels"),
    (_SEQUENCE_NAME, SEQUENCE, "sequence length"),
    (r"(num_?)?(mel|mels|mel_bins|bins|n_mels)", 80, "mel bands"),
    (_FRAMES_NAME, 100, "frames"),
    (r"(num_?)?(boxes|rois|proposals|objects|detections)", 100, "boxes"),
    (r"(num_?)?(points|nodes|edges)", 1024, "points"),
    (r"features?|num_features|dim|d|hidden(_size|_dim)?|embed.*", FEATURES, "features"),
)
_PATTERNS = tuple(re.compile(rf"(?:{name})\Z") for name, _, _ in BY_NAME)
#: Names of sequence lengths, which are no batch axis.
_OF_SEQUENCES = (_PAST_NAME, _FRAMES_NAME, _SEQUENCE_NAME)

_CHANNEL_SIZES = (1, 3, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a symbol stands.

    Attributes:
        info: The input.
        shape: Its shape with a name for every unset axis.
        axis: Which axis.
    """

    info: TensorInfo
    shape: tuple[int | str, ...]
    axis: int


def default_size(symbol: str, places: Sequence[Place]) -> tuple[int, str]:
    """Return the documented size of ``symbol`` and what it was taken for.

    Args:
        symbol: Name of the dimension, possibly a generated one.
        places: Where it stands; empty if only inside expressions.
    """
    by_name = size_by_name(symbol)
    if by_name is not None:
        return by_name
    for place in places:
        found = _by_place(place)
        if found is not None:
            return found
    return OTHER, "nothing says what it is"


def size_by_name(symbol: str) -> tuple[int, str] | None:
    """Return what the name alone says."""
    row = _row_of(symbol)
    return None if row is None else row[1:]


def is_sequence_name(symbol: str) -> bool:
    """Whether a symbol is named like a sequence length (so it is no batch axis)."""
    row = _row_of(symbol)
    return row is not None and row[0] in _OF_SEQUENCES


def _row_of(symbol: str) -> tuple[str, int, str] | None:
    lowered = symbol.lower()
    rows = zip(_PATTERNS, BY_NAME, strict=True)
    return next((row for pattern, row in rows if pattern.match(lowered)), None)


def _by_place(place: Place) -> tuple[int, str] | None:
    rank, axis = len(place.shape), place.axis
    integer = "int" in place.info.type and "uint8" not in place.info.type
    if rank in (4, 5) and not integer:
        return _in_image(place.shape, axis)
    if rank == 3 and axis == 2:
        return FEATURES, "features"
    # Recurrent layers read [sequence, batch, features].
    if (rank in (2, 3) and axis >= rank - 2) or (rank == 3 and place.info.batch_axis == 1):
        return SEQUENCE, "sequence length"
    if rank == 1:
        return SEQUENCE, "sequence length"
    return None


def _in_image(shape: tuple[int | str, ...], axis: int) -> tuple[int, str]:
    """Channels first unless only the last axis looks like channels."""
    rank = len(shape)
    channels_last = shape[-1] in _CHANNEL_SIZES and shape[1] not in _CHANNEL_SIZES
    if axis == (rank - 1 if channels_last else 1):
        return CHANNELS, "channels"
    if rank == 5 and axis == (1 if channels_last else 2):
        return OTHER, "frames of a video or slices of a volume"
    return IMAGE, "image size"
