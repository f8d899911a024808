"""What files beside a model or its own metadata tell: sizes of images, sounds and texts, pixels.

Processors and exporters write them down: ``preprocessor_config.json``, ``config.json`` and
``tokenizer_config.json`` in the model's folder, or one above where that is called ``onnx``, and the
metadata of the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_ortbench.core.model import ToldSize, ValueHint
from pytest_ortbench.models.files_beside import folders_beside, object_in

#: What tokenizers write for "no limit".
_NO_LIMIT = 1_000_000
_PROCESSOR = "preprocessor_config.json"
#: No mean, deviation or factor of pixels is larger.
_LARGEST = 1e6
#: No image has a longer side.
_LONGEST_SIDE = 16_384

_Told = Iterator[tuple[str, int]]


def told_sizes(path: Path, metadata: Mapping[str, str]) -> dict[str, ToldSize]:
    """Return what is told, by what it is the size of; the most specific file first.

    Args:
        path: The model file.
        metadata: Its metadata.

    Returns:
        ``height``, ``width``, ``channels``, ``samples`` (of one second), ``mels``, ``frames``,
        ``frames of a video`` and ``longest`` (a text of so many tokens), as far as they are told.
    """
    found: dict[str, ToldSize] = {}
    for kind, size in _of_metadata(metadata):
        found.setdefault(kind, ToldSize(size=size, why="the model's metadata"))
    folders = folders_beside(path)
    for name, read in (
        (_PROCESSOR, _of_processor),
        ("config.json", _of_config),
        ("tokenizer_config.json", _of_tokenizer),
    ):
        for folder in folders:
            for kind, size in read(object_in(folder / name)):
                found.setdefault(kind, ToldSize(size=size, why=name))
    return found


def told_pixels(path: Path) -> ValueHint | None:
    """Return the values of pixels as a processor beside the model makes them; else ``None``."""
    for folder in folders_beside(path):
        config = object_in(folder / _PROCESSOR)
        mean, deviation = (config.get(key) for key in ("image_mean", "image_std"))
        factor = config.get("rescale_factor", 1 / 255) if config.get("do_rescale", True) else 1
        if not _is_real(factor) or not isinstance(mean, list) or not isinstance(deviation, list):
            continue
        if not config.get("do_normalize", True):
            mean, deviation = [0], [1]
        if len(mean) != len(deviation) or not mean or not all(map(_is_real, mean + deviation)):
            continue
        if min(deviation) > 0:
            pairs = list(zip(mean, deviation, strict=True))
            low = min(-at / spread for at, spread in pairs)
            high = max((255 * factor - at) / spread for at, spread in pairs)
            if low < high:
                why = f"pixels as {_PROCESSOR} scales them"
                return ValueHint(kind="uniform", low=round(low, 4), high=round(high, 4), why=why)
    return None


def _is_real(value: object) -> bool:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and abs(float(str(value))) <= _LARGEST


def _number(value: object, most: int = _LONGEST_SIDE) -> int:
    """A size that makes sense, else 0."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return int(str(value)) if whole and 0 < int(str(value)) <= most else 0


def _sides(value: object) -> tuple[int, int]:
    """Height and width, however they are written; 0 where they are not."""
    if isinstance(value, dict):
        edge = _number(value.get("shortest_edge"))
        return _number(value.get("height")) or edge, _number(value.get("width")) or edge
    if isinstance(value, list) and len(value) == 2:
        return _number(value[0]), _number(value[1])
    return _number(value), _number(value)


def _as_image(value: object) -> _Told:
    height, width = _sides(value)
    if height and width:
        yield "height", height
        yield "width", width


def _of_metadata(metadata: Mapping[str, str]) -> _Told:
    try:
        yield from _as_image(json.loads(metadata.get("imgsz", "null")))
    except (ValueError, RecursionError):
        return


def _of_processor(config: Mapping[str, Any]) -> _Told:
    if config.get("do_center_crop", "crop_size" in config):
        yield from _as_image(config.get("crop_size"))
    if config.get("do_resize", True):
        yield from _as_image(config.get("size"))
    rate = _number(config.get("sampling_rate"), 200_000)
    if rate:
        yield "samples", rate
        if _number(config.get("feature_size"), 1_000) > 1:
            yield "mels", _number(config.get("feature_size"))
        if _number(config.get("nb_max_frames")):
            yield "frames", _number(config.get("nb_max_frames"))


def _of_config(config: Mapping[str, Any]) -> _Told:
    for part in (config, config.get("vision_config")):
        if isinstance(part, dict):
            yield from _as_image(part.get("image_size"))
            if _number(part.get("num_channels"), 64):
                yield "channels", _number(part.get("num_channels"))
    if _number(config.get("num_frames"), 1_000):
        yield "frames of a video", _number(config.get("num_frames"), 1_000)
    if _number(config.get("num_mel_bins"), 1_000):
        yield "mels", _number(config.get("num_mel_bins"))
    if _number(config.get("max_source_positions")):
        yield "frames", 2 * _number(config.get("max_source_positions"))
    if _number(config.get("max_position_embeddings"), _NO_LIMIT):
        yield "longest", _number(config.get("max_position_embeddings"), _NO_LIMIT)


def _of_tokenizer(config: Mapping[str, Any]) -> _Told:
    longest = _number(config.get("model_max_length"), _NO_LIMIT)
    if longest:
        yield "longest", longest
