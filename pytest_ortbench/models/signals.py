"""Inputs that hold a picture or a sound: which values, by the operators that read them first.

A bell curve is no picture: it has values that no pixel has, and layers behind it overflow in half
precision where a picture's would not. What is subtracted from an input, and what it is divided by,
tells how pixels are written; where nothing does, its use tells what is usual.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_ortbench.core.model import AxisRole, TensorInfo, ValueHint
from pytest_ortbench.models.dataflow import Dataflow, Scope

if TYPE_CHECKING:
    import onnx

#: Operators whose result holds the values of their first input, wherever they stand.
_MOVES = frozenset(
    {
        *("Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Slice", "Transpose"),
        *("Pad", "Concat", "Split", "Gather", "Expand", "Resize", "Upsample", "Dropout", "Clip"),
        *("QuantizeLinear", "DequantizeLinear", "SpaceToDepth", "DepthToSpace"),
    }
)
_FILTERS = frozenset({"Conv", "FusedConv", "NhwcConv", "ConvInteger"})
_WINDOWS = _FILTERS | {"QLinearConv", "MaxPool", "AveragePool"}
#: A window of so many samples on a single channel is one over a sound.
_SOUND_WINDOW = 8
#: Channels of a sound.
_MOST_EARS = 2
#: Sides of pictures that are fixed are at least so long.
_SMALLEST_SIDE = 16
#: Values looked at, at most.
_MOST = 200

#: What is taken from pixels of 0 to 255 is at least this, and what they are divided by.
_BYTE_OFFSET, _BYTE_DIVISOR = 16, 32
#: What a whole number of 16 bits is divided by, at least.
_WORD_DIVISOR = 1_000

_NAMED_PICTURE = re.compile(r"(^|_)(images?|imgs?|pixels?|pixel_values|pictures?|photos?)\d*\Z")
_NAMED_SOUND = re.compile(
    r"(^|_)(audios?|waveforms?|wavs?|pcm|speech|sounds?)(_(in|input|values|signals?|data))?\Z"
    r"|\Ainput_values\Z"
)
#: Names of what has the shape of a picture and is none: spectra, and states of other networks.
_NO_PICTURE = re.compile(
    r"(^|_)(mels?|mel_.*|spec|spectrograms?|spectra|fbanks?|mfccs?|frames?|latents?|feats?"
    r"|features?|flow|embed.*|hidden.*)(_|\d|\Z)"
)
#: Constants of more values are no means or scales of channels.
_MOST_CHANNELS = 4
_WORDS = frozenset({"tensor(int16)"})
_REALS = frozenset({"tensor(float)", "tensor(float16)", "tensor(double)", "tensor(bfloat16)"})


@dataclass(frozen=True, slots=True)
class _ScaledValue:
    """A value that is ``scale · fed + offset``, and the operators that made it so."""

    name: str
    scope: Scope
    scale: float = 1.0
    offset: float = 0.0
    by: str = ""


def signal_hint(
    info: TensorInfo, roles: Sequence[AxisRole], flow: Dataflow, told: ValueHint | None = None
) -> ValueHint | None:
    """Return the values of a picture or a sound, ``None`` if nothing shows that an input is one.

    Args:
        info: The input.
        roles: What the graph says about its axes.
        flow: The graph.
        told: Values of pixels that a file beside the model or its weights tell.
    """
    if not info.shape or info.type not in _REALS | _WORDS:
        return None
    readers = list(_readers(info.name, flow))
    heard = _sound(info, roles, readers, flow)
    if heard:
        return _samples(info, heard, readers)
    shown = _picture(info, roles, readers)
    return _pixels(info, roles, shown, readers, told) if shown else None


_Readers = Sequence[tuple["onnx.NodeProto", _ScaledValue]]


def _sound(info: TensorInfo, roles: Sequence[AxisRole], readers: _Readers, flow: Dataflow) -> str:
    """What shows that an input is a sound, empty if nothing does."""
    why = next((role.limit_why for role in roles if role.samples), "")
    if why:
        return f"read by {why}"
    for node, reading in readers:
        if node.op_type == "STFT":
            return f"read by STFT {node.output[0]!r}"
        weight = flow.shape(reading.scope, node.input[1]) if node.op_type in _FILTERS else None
        if weight is not None and _is_over_sound(weight, len(info.shape or ())):
            return f"read by {node.op_type} {node.output[0]!r}"
    return "its name" if _of_few_channels(info.shape or ()) and is_named_sound(info) else ""


def _of_few_channels(shape: Sequence[int | str | None]) -> bool:
    """Whether a shape is that of a sound: bands of a spectrum are more than two channels."""
    if len(shape) != 3:
        return len(shape) < 3
    sizes = [size for size in shape[1:] if isinstance(size, int)]
    return not sizes or min(sizes) <= _MOST_EARS


def is_named_sound(info: TensorInfo) -> bool:
    """Whether an input is a sound by its name."""
    return _NAMED_SOUND.search(_short(info)) is not None


def _is_over_sound(weight: Sequence[int | str | None], rank: int) -> bool:
    """Whether a filter has a long window on a single channel, also where one side stands idle."""
    if rank > 3 or len(weight) not in (3, 4) or weight[1] != 1:
        return False
    window = [size for size in weight[2:] if size != 1]
    return len(window) == 1 and isinstance(window[0], int) and window[0] >= _SOUND_WINDOW


def _samples(info: TensorInfo, heard: str, readers: _Readers) -> ValueHint:
    """Half of full scale: whole numbers of 16 bits where the type or a division says so."""
    whole = info.type in _WORDS
    divided = next((at for _, at in readers if abs(at.scale) * _WORD_DIVISOR <= 1), None)
    if whole or divided is not None:
        by = f", {divided.by}" if divided is not None else ""
        why = f"samples of 16 bits at half of full scale, {heard}{by}"
        kind = "integers" if whole else "uniform"
        return ValueHint(kind=kind, low=-16384, high=16384, why=why)
    return ValueHint(kind="uniform", low=-0.5, high=0.5, why=f"samples of a sound, {heard}")


def _picture(info: TensorInfo, roles: Sequence[AxisRole], readers: _Readers) -> str:
    """What shows that an input is a picture, empty if nothing does.

    Three channels under a window over two sides are one. A single channel may be a spectrum, and
    four a state of another network: these need more.
    """
    channels = _channels(info.shape or ())
    symbols = [size.lower() for size in info.shape or () if isinstance(size, str)]
    # Frames of a video are pictures.
    names = (_short(info), *(symbols if len(info.shape or ()) == 4 else ()))
    if info.type not in _REALS or not channels or any(map(_NO_PICTURE.search, names)):
        return ""
    window = next((node for node, _ in readers if node.op_type in _WINDOWS), None)
    if window is None:
        return ""
    if channels == 3:
        return f"{window.op_type} {window.output[0]!r} reads its {channels} channels"
    if _NAMED_PICTURE.search(_short(info)):
        return "its name"
    return next((role.image_why for role in roles if role.image and channels == 1), "")


def _pixels(
    info: TensorInfo,
    roles: Sequence[AxisRole],
    shown: str,
    readers: _Readers,
    told: ValueHint | None,
) -> ValueHint:
    """Pixels as the graph's first arithmetic, a file, weights or else the picture's use tells."""
    written = next((at for _, at in readers if at.by), None)
    if written is not None:
        high = 255.0 if _takes_bytes(written) else 1.0
        why = f"pixels from 0 to {high:g}, {written.by}"
        return ValueHint(kind="uniform", low=0.0, high=high, why=why)
    if told is not None:
        return told
    # Detectors and readers of grey pictures mostly take 0 to 1, others centre their pixels.
    plain = _channels(info.shape or ()) == 1 or any(role.image == "boxes" for role in roles)
    low = 0.0 if plain else -1.0
    why = f"pixels from {low:g} to 1, a picture: {shown}"
    return ValueHint(kind="uniform", low=low, high=1.0, why=why)


def _takes_bytes(written: _ScaledValue) -> bool:
    """Whether what is taken from pixels, or what they are divided by, is that of 0 to 255."""
    if abs(written.scale) * _BYTE_DIVISOR <= 1:
        return True
    return abs(written.offset) >= _BYTE_OFFSET * abs(written.scale) > 0


def _short(info: TensorInfo) -> str:
    return re.split(r"[/:.]", info.name.lower())[0]


def _channels(shape: Sequence[int | str | None]) -> int:
    """Channels of what has the shape of a picture, else 0."""
    if len(shape) == 5:
        return _channels_of_video(shape)
    if len(shape) != 4:
        return 0
    for channels, sides in ((shape[1], shape[2:]), (shape[3], shape[1:3])):
        large = all(not isinstance(side, int) or side >= _SMALLEST_SIDE for side in sides)
        if channels in (1, 3, 4) and large:
            return int(str(channels))
    return 0


def _channels_of_video(shape: Sequence[int | str | None]) -> int:
    """Three channels of frames, in front of them, behind them or last; else 0."""
    for place, sides in ((1, shape[3:]), (2, shape[3:]), (4, shape[2:4])):
        large = all(not isinstance(side, int) or side >= _SMALLEST_SIDE for side in sides)
        if shape[place] == 3 and large:
            return 3
    return 0


def _readers(name: str, flow: Dataflow) -> Iterator[tuple[onnx.NodeProto, _ScaledValue]]:
    """Yield what reads an input, behind what moves it, shifts it or scales it."""
    pending, count = [_ScaledValue(name, flow.main)], 0
    while pending and count < _MOST:
        reading = pending.pop(0)
        count += 1
        for node, index in reading.scope.readers.get(reading.name, ()):
            behind = _behind(reading, node, index, flow)
            if behind is None:
                yield node, reading
            else:
                pending.extend(behind)
        pending.extend(
            replace(reading, scope=inner) for inner in reading.scope.captures.get(reading.name, ())
        )
        pending.extend(_chosen(reading))


def _chosen(reading: _ScaledValue) -> Iterator[_ScaledValue]:
    """What a branch of an If gives out becomes an output of the If."""
    scope = reading.scope
    if scope.node is not None and scope.node.op_type == "If" and scope.outer is not None:
        for output, result in zip(scope.outputs, scope.node.output, strict=False):
            if output == reading.name:
                yield replace(reading, name=result, scope=scope.outer)


def _behind(
    reading: _ScaledValue, node: onnx.NodeProto, index: int, flow: Dataflow
) -> list[_ScaledValue] | None:
    """The value behind an operator that moves it, shifts it or scales it; ``None`` for others."""
    op = node.op_type
    if op in _MOVES and (index == 0 or op == "Concat"):
        return [replace(reading, name=result) for result in node.output]
    if op == "BatchNormalization" and index == 0:
        mean, variance = (_typical(name, reading.scope, flow) for name in node.input[3:5])
        if mean is None or not variance:
            return None
        return [_then(reading, node, scale=variance**-0.5, offset=-mean * variance**-0.5)]
    if op not in ("Add", "Sub", "Mul", "Div") or len(node.input) != 2:
        return None
    number = _typical(node.input[1 - index], reading.scope, flow)
    if number is None or (op == "Div" and (index == 1 or number == 0)):
        return None
    if op == "Mul":
        return [_then(reading, node, scale=number)]
    if op == "Div":
        return [_then(reading, node, scale=1 / number)]
    if op == "Add":
        return [_then(reading, node, offset=number)]
    sign = 1 if index == 0 else -1
    return [_then(reading, node, scale=sign, offset=-sign * number)]


def _then(
    reading: _ScaledValue, node: onnx.NodeProto, *, scale: float = 1.0, offset: float = 0.0
) -> _ScaledValue:
    by = f"{node.op_type} {node.output[0]!r}"
    return replace(
        reading,
        name=node.output[0],
        scale=reading.scale * scale,
        offset=reading.offset * scale + offset,
        by=f"{reading.by} and {by}" if reading.by else f"by {by}",
    )


def _typical(name: str, scope: Scope, flow: Dataflow) -> float | None:
    """The number in the middle of a constant for all channels, ``None`` if it is none."""
    array = flow.constant(scope, name)
    if array is None or not 0 < array.size <= _MOST_CHANNELS or array.dtype.kind not in "iuf":
        return None
    return float(sorted(array.reshape(-1))[array.size // 2])
