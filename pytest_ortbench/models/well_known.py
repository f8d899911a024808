"""Inputs whose name says what they hold: masks, positions, lengths, caches, sampling rates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from pytest_ortbench.core.model import TensorInfo, ValueHint
from pytest_ortbench.models.symbols import quote

_PAST = re.compile(
    r"(^|[._/])(past|past_key_values?|past_keys?|past_values?|cache|kv_cache)([._/]|$|\d)"
)
#: Names that speak of a cache and are none: a position in it, its length, whether to use it.
_ABOUT_PAST = re.compile(r"(position|positions|lengths?|lens?|branch|mask|ids?|indices|use_cache)$")
_LENGTH_OF_PAST = re.compile(r"past|len|seq|cache|total|tokens|\bkv\b")
_SIZE_OF_HEAD = re.compile(r"head|dim|hidden|size|width|layer")
_ONES = re.compile(
    r"(^|_)((attention|attn|input|encoder_attention|decoder_attention|pixel|src|tgt)_mask|masks?)$"
)
_PADDING = re.compile(r"(^|_)(key_)?padding_mask$")
_ZEROS = re.compile(r"^(token_type_ids?|segment_ids?|type_ids?|token_types?)$")
_POSITIONS = re.compile(r"^((decoder_)?position_ids?|positions?|cache_position)$")
_LENGTHS = re.compile(
    r"(^|_)(lengths?|lens?|len|seq_?lens?|(num|n)_(frames|samples|tokens)|sizes_of_sequence)$"
)
_RATE = re.compile(r"^(sr|sample_rate|sampling_rate|samplerate)$")
_TIMESTEP = re.compile(r"^(timesteps?|t)$")
#: How large a picture is that another input or an output shows.
_PICTURE_SIZE = re.compile(
    r"((orig(inal)?|target|input|output|out|in)_)*(ims?|imgs?|images?|pictures?)_(sizes?|shapes?|hw)\Z"
    r"|(orig(inal)?_)?(orig(inal)?|target|output|out)_(target_)?(sizes?|shapes?|hw)\Z"
)
_WIDTH_FIRST = re.compile(r"orig_target_sizes?\Z")
#: Sides of a picture where no input is one.
_SIDE = "1024"
_POINT_LABELS = re.compile(r"point_labels?\Z")
_IS_GIVEN = re.compile(r"has_\w+\Z")
#: Patches of each picture as they lie: frames, rows, columns.
_PATCH_GRID = re.compile(r"(image|video|img|grid)(_grid)?_thw\Z")
_OVER_PICTURE = re.compile(r"(^|_)(masks?|trimaps?|mattes?|alphas?)\Z")
_BEAMS = re.compile(r"(^|_)(beam_idx|beam_indices|cache_indirection)$")
_FLAG = re.compile(
    r"(use_cache(_branch)?|(use|has|with)_(past|kv_cache)(_key_values?)?|is_incremental"
    r"|(is_)?(decode|decoding)(_step)?)\Z"
)
#: Likewise of the first step, which has no cache yet.
_FIRST = re.compile(r"((is_)?(prefill|prompt)(_step)?|is_first|(is_)?first_step)\Z")
_TRAINS = re.compile(r"(^|_)(train|training|is_training|training_mode|do_sample)$")
#: Rows of patches in a picture where nobody says it.
_GRID_ROWS = 16
#: Elements of a setting: one number, or a few a row of the batch.
_FEW = 8


#: What a cache holds was made by layers behind a normalisation: ten times as much is no input that
#: a model ever gets, and makes of attention a choice of one token.
_CACHED = ValueHint(
    kind="uniform", low=-2.0, high=2.0, why="its name: a cache, of what normalised layers made"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the other inputs of the model tell.

    Attributes:
        batch: Symbol of the batch axis, empty if there is none.
        past: Symbol of the cache's length, empty if the model has no cache.
        lengths: By input name, the symbol of the axis that a length would count.
        sides: Height and width of the picture, empty if no input is one.
        patches: Symbol of the axis of patches, empty if there is none.
    """

    batch: str = ""
    past: str = ""
    lengths: dict[str, str]
    sides: tuple[str, ...] = ()
    patches: str = ""


#: What a setting is, by its name; the value that changes nothing, or a usual one where none does.
_REAL_SETTINGS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(rf"(^|_)({names})s?(_|\Z)"), number, what)
    for names, number, what in (
        (r"(min|low|lower)_?freq(uency)?|f_?min", "50", "a lowest frequency in Hz"),
        (r"(max|high|upper)_?freq(uency)?|f_?max", "2000", "a highest frequency in Hz"),
        (r"threshold|thresh|thr|iou|conf(idence)?|cutoff|min_score", "0.5", "a threshold"),
        (r"top_?p|temperature|temp|penalty", "1", "a setting of sampling that changes nothing"),
        (r"eps(ilon)?", "0.00001", "a small number"),
        (r"((pitch|key|time)_)?shift|f0_up_key|transpose", "0", "a shift that changes nothing"),
        (
            r"scale(_factor)?|speed|rate|tempo|pace|ratio|factor|multiplier|gain|zoom|volume|strength"
            r"|length_scale|noise_scale|noise_w|duration(_control)?|control|alpha|sigma|gamma",
            "1",
            "a factor that changes nothing",
        ),
    )
)
_WHOLE_SETTINGS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(rf"(?:{names})\Z"), number, what)
    for names, number, what in (
        (r"num_beams|num_return_sequences|beam_(size|width)", "1", "one answer"),
        (r"min_(length|new_tokens)", "1", "the shortest answer"),
        (r"max_(length|new_tokens)|num_(new_)?tokens_to_generate", "160", "the longest answer"),
        (r"top_?k|k", "5", "as many as are looked at"),
        (r"(num_|n_)?(inference_)?steps", "4", "a few steps"),
        (r"(random_)?seed", "0", "a seed"),
        (r"s(peaker)?_?ids?|speaker|lang(uage)?_?ids?|voice_?ids?", "0", "the first of them"),
        (r"scale(_factor)?|factor|ratio|speed", "1", "a factor that changes nothing"),
        (r"((pitch|key)_)?shift|f0_up_key|transpose", "0", "a shift that changes nothing"),
    )
)


def is_past(name: str) -> bool:
    """Whether an input is a cache of earlier keys and values, by its name."""
    lowered = name.lower()
    about = _ABOUT_PAST.search(lowered) or _FLAG.match(lowered)
    return bool(_PAST.search(lowered)) and not about


def past_symbol(
    inputs: Sequence[TensorInfo], shapes: Sequence[tuple[int | str, ...] | None], batch: str
) -> str:
    """Return the symbol of the cache's length axis: the symbolic axis that is not the batch.

    An operator that appends along an axis says which it is; else names do, else the place.
    """
    for info, shape in zip(inputs, shapes, strict=True):
        if not is_past(info.name) or shape is None or len(shape) < 3:
            continue
        if info.length_axis is not None:
            size = shape[info.length_axis]
            if isinstance(size, str) and size != batch:
                return size
            continue
        # [batch, heads, past, size] and [batch, past, size], transposed keys being the exception.
        symbols = [size for axis in (-2, -1, 1) if isinstance(size := shape[axis], str)]
        symbols = [size for size in symbols if size != batch]
        if symbols:
            return next((size for size in symbols if is_length_name(size)), symbols[0])
    return ""


def is_length_name(symbol: str) -> bool:
    """Whether a dimension of a cache is called as a number of tokens, and not as a size."""
    lowered = symbol.lower()
    return bool(_LENGTH_OF_PAST.search(lowered)) and not _SIZE_OF_HEAD.search(lowered)


def by_name(
    info: TensorInfo,
    found: ValueHint | None,
    surroundings: Surroundings,
    *,
    is_guess: bool = False,
) -> ValueHint | None:
    """Return the hint that the name of an input implies, within what its consumers accept.

    Args:
        info: The input.
        found: What its consumers say.
        surroundings: What the other inputs tell.
        is_guess: Whether its consumers would accept other values than the one of ``found``.
    """
    name = re.split(r"[/:.]", info.name.lower())
    short = name[-1] if not name[-1].isdigit() else name[0]
    integer, boolean = "int" in info.type, "(bool)" in info.type
    if is_past(info.name):
        return _CACHED if found is None and "float" in info.type else found
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
        if not surroundings.past:
            return ValueHint(kind="constant", choices=("1",), why="its name: the cache is used")
        used = f"min(1, {quote(surroundings.past)})"
        why = "its name: the cache is used unless it is empty"
        return ValueHint(kind="constant", choices=(used,), why=why)
    if boolean and _FIRST.match(short) and surroundings.past:
        first = f"1 - min(1, {quote(surroundings.past)})"
        why = "its name: it is the first step if the cache is empty"
        return ValueHint(kind="constant", choices=(first,), why=why)
    if boolean and _TRAINS.search(short):
        return ValueHint(kind="zeros", why="its name: no training")
    if _RATE.match(short) and (found is None or found.kind != "constant"):
        return ValueHint(kind="constant", choices=("16000",), why="its name: sampling rate in Hz")
    if integer and info.shape is not None and len(info.shape) <= 1 and _LENGTHS.search(short):
        counted = surroundings.lengths.get(info.name, "")
        # What a recurrent layer says is better; how long a mask is made of it says nothing.
        told = found is not None and found.kind == "constant" and not is_guess
        if counted and not told:
            why = f"its name: the whole length {counted}"
            return ValueHint(kind="constant", choices=(quote(counted),), why=why)
    setting = _setting(info, short, found)
    if setting is None and (is_guess or found is None or found.kind != "constant"):
        # Where an operator takes certain values alone, as Col2Im does, a name says nothing.
        setting = _of_picture(info, short, surroundings)
    if setting is not None:
        return setting
    if found is not None:
        return found
    if integer and _BEAMS.search(short) and surroundings.batch:
        bound = f"{quote(surroundings.batch)} - 1"
        return ValueHint(kind="integers", high_dim=bound, why="its name: rows of the batch")
    if _TIMESTEP.match(short) and info.shape is not None and len(info.shape) <= 1:
        return ValueHint(kind="constant", choices=("500",), why="its name: a diffusion step")
    return None


def is_picture_size(info: TensorInfo) -> bool:
    """Whether an input holds the height and width of a picture, or of each one, by its name."""
    shape = info.shape
    ranked = shape is not None and len(shape) in (1, 2) and shape[-1] == 2
    return ranked and bool(_PICTURE_SIZE.search(info.name.lower())) and "(bool)" not in info.type


def _of_picture(info: TensorInfo, short: str, surroundings: Surroundings) -> ValueHint | None:
    """What goes with a picture: its size, the grid of its patches, what is clicked, its mask."""
    if is_picture_size(info):
        sides = surroundings.sides or (_SIDE, _SIDE)
        if _WIDTH_FIRST.match(short):
            return ValueHint(kind="constant", choices=sides[::-1], why="its name: width and height")
        return ValueHint(kind="constant", choices=sides, why="its name: height and width")
    shape = info.shape or ()
    if _PATCH_GRID.search(short) and shape[-1:] == (3,) and surroundings.patches:
        patches = quote(surroundings.patches)
        rows = quote(shape[0]) if len(shape) == 2 and isinstance(shape[0], str) else "1"
        grid = ("1", str(_GRID_ROWS), f"max(1, {patches} // ({_GRID_ROWS} * {rows}))")
        return ValueHint(kind="constant", choices=grid, why="its name: patches as they lie")
    real = "float" in info.type or "double" in info.type
    if _POINT_LABELS.match(short):
        return ValueHint(kind="ones", why="its name: a point of what is meant")
    if real and _IS_GIVEN.match(short) and _is_small(info.shape):
        return ValueHint(kind="zeros", why="its name: there is none")
    if real and len(shape) == 4 and shape[1] == 1 and _OVER_PICTURE.search(short):
        return ValueHint(kind="uniform", low=0.0, high=1.0, why="its name: a mask of a picture")
    return None


def is_length(info: TensorInfo) -> bool:
    """Whether an input holds one length for each row of the batch, by its name."""
    ranked = info.shape is not None and len(info.shape) == 1
    return ranked and "int" in info.type and bool(_LENGTHS.search(info.name.lower()))


def is_flag(info: TensorInfo) -> bool:
    """Whether an input says if the cache is used, or if it is the first step, which has none."""
    name = info.name.lower()
    return "(bool)" in info.type and bool(_FLAG.match(name) or _FIRST.match(name))


def is_first_flag(info: TensorInfo) -> bool:
    """Whether a flag is true in the first step, where others are in all later ones."""
    return bool(_FIRST.match(info.name.lower()))


def _setting(info: TensorInfo, short: str, found: ValueHint | None) -> ValueHint | None:
    """What a number that sets something holds, by its name, if its consumers accept that."""
    if not _is_small(info.shape) or "(bool)" in info.type or "string" in info.type:
        return None
    if found is not None and found.kind in ("constant", "choice"):
        return None
    rows = _WHOLE_SETTINGS if "int" in info.type else _REAL_SETTINGS
    named = next((row for row in rows if row[0].search(short)), None)
    if named is None:
        return None
    _, number, what = named
    bounded = found is not None and found.kind in ("uniform", "integers")
    if found is not None and bounded and not found.high_dim:
        if not found.low <= float(number) <= found.high:
            return None
    elif found is not None and bounded:
        return None
    return ValueHint(kind="constant", choices=(number,), why=f"its name: {what}")


def _is_small(shape: Sequence[int | str | None] | None) -> bool:
    """Whether a tensor holds one number, or a few a row of the batch."""
    if shape is None or sum(not isinstance(size, int) for size in shape) > 1:
        return False
    return len(shape) <= 2 and prod(size for size in shape if isinstance(size, int)) <= _FEW


def _positions(found: ValueHint | None, surroundings: Surroundings) -> ValueHint:
    hint = ValueHint(kind="arange", high=-1.0, why="its name: positions")
    if found is not None and found.kind == "integers":
        why = f"its name: positions, within {found.why}"
        hint = replace(found, kind="arange", why=why)
    return replace(hint, low_dim=quote(surroundings.past) if surroundings.past else "")
