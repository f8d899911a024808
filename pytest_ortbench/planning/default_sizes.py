"""Documented sizes of symbolic dimensions that nobody named: by the symbol's name, else by place.

They are what people commonly run such models with, never 1: a network at all-ones sizes is another
workload. Whatever is taken from here is printed, and ``--ort-dims`` overrides it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_ortbench.core.model import AxisRole, TensorInfo, ToldSize
from pytest_ortbench.models.signals import is_named_sound
from pytest_ortbench.models.well_known import is_length, is_picture_size

SEQUENCE = 128
PAST = 128
IMAGE = 224
CHANNELS = 3
#: Height, width and what it is, by kind of image.
OF_IMAGE_KINDS: dict[str, tuple[int, int, str]] = {
    "line": (48, 320, "a line of text"),
    "turned line": (48, 192, "a line of text"),
    "boxes": (640, 640, "a detector"),
    "page": (736, 736, "a page"),
    "map": (512, 512, "a picture"),
}
FEATURES = 64
SAMPLES = 16_000
OTHER = 16
#: A side of a latent picture: an image of 512 by what autoencoders leave of it.
LATENT = 64
#: Frames that Whisper makes of 30 seconds.
HEARD = 3_000
#: Samples of a signal with several channels: ten seconds of a heart at 100 Hz, two of it at 500.
SIGNAL = 1_000
_VIDEO = "frames of a video or slices of a volume"

_PAST_NAME = r"past.*|.*past.*|.*cache.*|kv_len(gth)?"
#: In front of what is counted.
_COUNT = r"(num_?|nb_?|n_|number_of_|total_|max_)?(of_)?"
_FRAMES_NAME = r"frames?|num_frames|.*_frames"
_SEQUENCE_NAME = (
    r"s|t|l|seq|seq_?len(gth)?|sequence|time|times|tokens?|num_tokens|text_len(gth)?|"
    r"max_len(gth)?|length|.*sequence_length|.*seq_?len(gth)?|.*sequence|chunk_(len(gth)?|size)"
)

_OF_FEATURES = "features"
_OF_FRAMES = "frames"
#: Name of the symbol (the whole name, any case), size, what it is taken for.
BY_NAME: tuple[tuple[str, int, str], ...] = (
    (r"batch.*|.*batch(_size)?|b|bs", 1, "batch"),
    (_PAST_NAME, PAST, "past length"),
    (r"samples|num_samples|audio.*|wav.*|waveform.*", SAMPLES, "audio samples, 1 s at 16 kHz"),
    (r"h|w|height|width|.*_?(height|width|img_?[hw]|image_[hw])", IMAGE, "image size"),
    (r"c|ch|channels?|num_channels|in_channels", CHANNELS, "channels"),
    (_SEQUENCE_NAME, SEQUENCE, "sequence length"),
    (r"(num_?)?(mel|mels|mel_bins|bins|n_mels)", 80, "mel bands"),
    (_FRAMES_NAME, 100, _OF_FRAMES),
    (rf"{_COUNT}(box(es)?|rois?|proposals?|objects?|detections?|anchors?|spans?)", 100, "boxes"),
    (rf"{_COUNT}(points?|nodes?|vertices|faces|pts)", 1024, "points"),
    (rf"{_COUNT}edges?", 4096, "edges, four a node"),
    (rf"{_COUNT}(atoms?|residues?|bonds?)", 30, "atoms of a molecule"),
    (rf"{_COUNT}(voxels?|pillars?)", 4096, "voxels"),
    (rf"{_COUNT}(patch(es)?|crops?_patches|image_tokens)", 256, "patches, 16 a side"),
    (rf"{_COUNT}(mem(ory|ories|s)?|slots?|mem(ory)?_slots?|banks?)", 8, "memory slots"),
    (rf"{_COUNT}(keypoints?|joints?|landmarks?)", 17, "keypoints"),
    (rf"{_COUNT}(quer(y|ies)|prompts?|class(es)?|labels?|entities|mentions)", 16, "a count"),
    (rf"{_COUNT}(quantizers?|codebooks?)", 8, "codebooks"),
    (rf"{_COUNT}(graphs|images|chunks)", 1, "one at a time"),
    (r"features?|num_features|dim|d|hidden(_size|_dim)?|embed.*", FEATURES, _OF_FEATURES),
)
_PATTERNS = tuple(re.compile(rf"(?:{name})\Z") for name, _, _ in BY_NAME)
#: Names of sequence lengths, which are no batch axis.
_OF_SEQUENCES = (_PAST_NAME, _FRAMES_NAME, _SEQUENCE_NAME)
#: What counts say that they count, where it is no batch even if each is treated by itself.
_COUNTED = frozenset(
    {
        *("boxes", "points", "edges, four a node", "atoms of a molecule", "voxels"),
        *("patches, 16 a side", "memory slots", "keypoints", "a count", "frames", "codebooks"),
    }
)
#: Names that exporters make up, which say nothing.
_MADE_UP = re.compile(
    r"(unk__\d+|(p2o\.)?DynamicDimension\.\d+|s\d+|d\d+|dim_?\d+|axis_?\d+|dynamic_axes_\d+(_\d+)?"
    r"|.+_dim_\d+_*)\Z"
)

_CHANNEL_SIZES = (1, 3, 4)
#: Channels of pixels, at most; bands of a spectrum; names of what a diffusion starts from.
_MOST_OF_PIXELS = 3
_BANDS = (80, 128)
_LATENT = re.compile(r"(^|_)(latents?|latent_sample|noisy_sample|sample|x_t|hidden_states)\Z")


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


def default_size(
    symbol: str, places: Sequence[Place], told: Mapping[str, ToldSize] | None = None
) -> tuple[int, str]:
    """Return the documented size of ``symbol`` and what it was taken for.

    Operators say more than a name: what an STFT reads are samples, and a table that is read along
    an axis can't be shorter than it.

    Args:
        symbol: Name of the dimension, possibly a generated one.
        places: Where it stands; empty if only inside expressions.
        told: What files beside the model and its metadata tell, by what it is the size of.
    """
    roles = [role for role in (place.info.role_of(place.axis) for place in places) if role]
    size, what = _unlimited(symbol, places, roles)
    untold = (size, what)
    size, what = _as_told(symbol, places, size, what, told or {})
    if what == _OF_IMAGES and untold == (size, what):
        size, what = _as_shown(symbol, places, roles)
    why = next((role.limit_why for role in roles if role.limit_why), "")
    for place in places:
        last = last_position(place.info)
        if last is not None and place.axis == len(place.shape) - 1 and size > last:
            return last + 1, f"{what}, all that {place.info.name!r} has positions for"
    least = max((role.least for role in roles), default=0)
    most = min((role.most for role in roles if role.most), default=0)
    if most and size > most:
        return most, f"{what}, all that {why} takes"
    if size < least:
        return 2 * least, f"{what}, {why} needs {least}"
    return size, what


def last_position(info: TensorInfo) -> int | None:
    """Return the last row of the table that an input of positions is looked up in, if known."""
    hint = info.hint
    counted = hint is not None and hint.kind == "arange" and hint.high >= 0
    return int(hint.high) if hint is not None and counted else None


def _as_told(
    symbol: str, places: Sequence[Place], size: int, what: str, told: Mapping[str, ToldSize]
) -> tuple[int, str]:
    """The size that a file tells for what a default stands for."""
    if what == _OF_IMAGES:
        kind = "height" if _is_height(symbol, places) else "width"
    elif what == _OF_SEQUENCES_TOLD:
        longest = told.get("longest")
        if longest is None or longest.size >= size:
            return size, what
        return longest.size, f"{what}, all that {longest.why} allows"
    else:
        kind = _KINDS_TOLD.get(what.partition(",")[0], "")
    known = told.get(kind)
    return (size, what) if known is None else (known.size, f"{what}, by {known.why}")


def _as_shown(symbol: str, places: Sequence[Place], roles: Sequence[AxisRole]) -> tuple[int, str]:
    """The side of an image by what the graph shows that it is looked at for."""
    role = next((role for role in roles if role.image), None)
    if role is None:
        return IMAGE, _OF_IMAGES
    height, width, shows = OF_IMAGE_KINDS[role.image]
    side = height if _is_height(symbol, places) else width
    return side, f"{_OF_IMAGES} of {shows}, since {role.image_why}"


#: What a default is taken for, and what files tell of it.
_OF_IMAGES = "image size"
_OF_SEQUENCES_TOLD = "sequence length"
_KINDS_TOLD = {
    "channels": "channels",
    "audio samples": "samples",
    "mel bands": "mels",
    "frames": "frames",
    _VIDEO: "frames of a video",
}


def _is_height(symbol: str, places: Sequence[Place]) -> bool:
    """Whether it is the first of the two sides, by its name or else by its place."""
    lowered = symbol.lower()
    if re.search(r"(^|_)(h|height)(_|$|\d)", lowered):
        return True
    if re.search(r"(^|_)(w|width)(_|$|\d)", lowered) or not places:
        return False
    shape, axis = places[0].shape, places[0].axis
    last = len(shape) - 1 - (shape[-1] in _CHANNEL_SIZES)
    return axis < last


def _unlimited(symbol: str, places: Sequence[Place], roles: Sequence[AxisRole]) -> tuple[int, str]:
    sounds = next((role.limit_why for role in roles if role.samples), "")
    if sounds:
        return SAMPLES, f"audio samples, 1 s at 16 kHz, read by {sounds}"
    rows = _rows(symbol, places)
    if rows is not None:
        return rows
    by_name = size_by_name(symbol)
    if by_name is not None and places:
        by_name = _in_place(by_name, places)
    if places and all(is_picture_size(place.info) and place.axis == 0 for place in places):
        return 1, "one size a picture"
    if any(_is_sound(place) for place in places) and (by_name is None or by_name[0] == SEQUENCE):
        return SAMPLES, "audio samples, 1 s at 16 kHz, by the name of the input"
    if by_name is not None and not (by_name[1] == _OF_FEATURES and _leads(places)):
        return by_name
    for place in places:
        found = _by_place(place)
        if found is not None:
            return _in_place(found, places)
    return OTHER, "its meaning is not stated"


def _in_place(row: tuple[int, str], places: Sequence[Place]) -> tuple[int, str]:
    """What a name says, where the other axes and the input's own name say more."""
    if row[1] == _OF_FRAMES and any(len(place.shape) == 5 for place in places):
        return OTHER, _VIDEO
    if row[1] == _OF_IMAGES and all(map(_is_latent, places)):
        return LATENT, "a latent picture, an eighth of 512"
    if row[1] == _OF_SEQUENCES_TOLD and any(map(_is_heard, places)):
        return HEARD, f"{_OF_FRAMES}, of 30 s"
    if row[0] == SAMPLES and all(map(_has_leads, places)):
        return SIGNAL, "samples of several channels"
    return row


def _is_latent(place: Place) -> bool:
    """Whether an input is the state of a diffusion, of four channels or more."""
    channels = place.shape[1] if len(place.shape) == 4 else 0
    few = not isinstance(channels, int) or channels <= _MOST_OF_PIXELS
    return bool(_LATENT.search(place.info.name.lower())) and len(place.shape) == 4 and not few


def _is_heard(place: Place) -> bool:
    """Whether an axis holds the frames of a spectrum as Whisper and its kind take them."""
    bands = place.shape[1] if len(place.shape) == 3 else 0
    named = place.info.name.lower() == "input_features"
    return named and place.axis == 2 and bands in _BANDS


def _has_leads(place: Place) -> bool:
    """Whether something is recorded at more places than a sound has channels."""
    channels = place.shape[1] if len(place.shape) == 3 and place.axis == 2 else 0
    return isinstance(channels, int) and channels > 2 and not is_named_sound(place.info)


def _is_sound(place: Place) -> bool:
    """Whether an input is a sound of one channel by its name, and this axis its samples."""
    rank, real = len(place.shape), "float" in place.info.type or "double" in place.info.type
    single = rank == 2 or (rank == 3 and place.shape[1] == 1)
    return is_named_sound(place.info) and real and (rank == 1 or single) and place.axis == rank - 1


def _leads(places: Sequence[Place]) -> bool:
    """Whether an axis is always the first, where features are never."""
    return bool(places) and all(place.axis == 0 for place in places)


def _rows(symbol: str, places: Sequence[Place]) -> tuple[int, str] | None:
    """Rows of a table: ``samples`` on the first axis are no samples of a sound."""
    leading = places and all(place.axis == 0 and len(place.shape) > 1 for place in places)
    if leading and re.fullmatch(r"(num_|n_)?(samples|rows|examples|instances)", symbol.lower()):
        return 1, "rows of a table"
    return None


def size_by_name(symbol: str) -> tuple[int, str] | None:
    """Return what the name alone says."""
    row = _row_of(symbol)
    return None if row is None else row[1:]


def is_sequence_name(symbol: str) -> bool:
    """Whether a symbol is named like a sequence length (so it is no batch axis)."""
    row = _row_of(symbol)
    return row is not None and row[0] in _OF_SEQUENCES


def is_count_name(symbol: str) -> bool:
    """Whether a symbol is named like a count of things that make one input together."""
    row = _row_of(symbol)
    return row is not None and row[2] in _COUNTED


def is_made_up(symbol: str) -> bool:
    """Whether an exporter made a symbol up, so that its name says nothing."""
    return _MADE_UP.match(symbol) is not None


def _row_of(symbol: str) -> tuple[str, int, str] | None:
    lowered = symbol.lower()
    rows = zip(_PATTERNS, BY_NAME, strict=True)
    return next((row for pattern, row in rows if pattern.match(lowered)), None)


def _by_place(place: Place) -> tuple[int, str] | None:
    rank, axis = len(place.shape), place.axis
    integer = "int" in place.info.type and "uint8" not in place.info.type
    if axis == 0 and rank > 1 and place.info.batch_axis != 1:
        return _on_first_axis(place, rank)
    if rank in (4, 5) and not integer:
        return _in_image(place.shape, axis)
    if rank == 3 and axis == 2:
        return FEATURES, _OF_FEATURES
    # Recurrent layers read [sequence, batch, features].
    if (rank in (2, 3) and axis >= rank - 2) or (rank == 3 and place.info.batch_axis == 1):
        return SEQUENCE, "sequence length"
    if rank == 1:
        return (1, "one length a row") if is_length(place.info) else (SEQUENCE, "sequence length")
    return None


def _on_first_axis(place: Place, rank: int) -> tuple[int, str]:
    """A count of rows that is no batch, or may be none."""
    role = place.info.role_of(0)
    if role is None or role.role != "mixed":
        return (OTHER, "its meaning is not stated") if rank > 3 else (SEQUENCE, "sequence length")
    return (OTHER if rank > 3 else SEQUENCE), f"a count, mixed by {role.why}"


def _in_image(shape: tuple[int | str, ...], axis: int) -> tuple[int, str]:
    """Channels first unless only the last axis looks like channels."""
    rank = len(shape)
    last = (*_CHANNEL_SIZES, 2) if rank == 4 else _CHANNEL_SIZES  # two are a grid, or a flow
    channels_last = shape[-1] in last and shape[1] not in _CHANNEL_SIZES
    if axis == (rank - 1 if channels_last else 1):
        return CHANNELS, "channels"
    if rank == 5 and axis == (1 if channels_last else 2):
        return OTHER, _VIDEO
    return IMAGE, "image size"
