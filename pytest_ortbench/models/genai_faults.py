"""What is wrong with values of a ``genai_config.json``, by its own rules and by the graph.

The rules are those of onnxruntime-genai 0.18: what it refuses, and what ends in an error of ONNX
Runtime. Where the graph knows better, the graph is what our own loop goes by.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_ortbench.core.generation import CacheTensor, ConfigFault, Decoder
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.model_spec import GENAI_CONFIG
from pytest_ortbench.models.genai_config import CACHE_TEMPLATES, GenaiConfig

#: Numbers that it must have, and the least of each.
_NEEDED = {"vocab_size": 1, "context_length": 1}
#: Whole numbers that it may have; some libraries write -1 for a token that there is not.
_WHOLE = ("pad_token_id", "bos_token_id")
#: Whole numbers of its decoder, each with whether onnxruntime-genai needs it to be no less than 0.
_SIZES = {
    "head_size": True,
    "num_key_value_heads": True,
    "num_hidden_layers": False,
    "hidden_size": False,
    "num_attention_heads": False,
}
_YES_OR_NO = frozenset({"do_sample", "early_stopping", "past_present_share_buffer"})
#: Whole numbers have 32 bits.
_LARGEST = 2**31 - 1
#: Where a value is cut that is shown.
_LONGEST = 40
_LEFT_OUT = "If the model has such a value, correct it in the file. If not, remove the key"


def config_faults(
    config: GenaiConfig, decoder: Decoder, inputs: Sequence[TensorInfo]
) -> tuple[ConfigFault, ...]:
    """Return what is wrong with values of a configuration, those first that stop its library.

    Args:
        config: The configuration.
        decoder: The decoder that it names, by its graph.
        inputs: Of the decoder, as they are declared.
    """
    faults = [
        *_of_file(config),
        *_of_nulls(config.model, "model"),
        *_of_numbers(config),
        *_of_vocabulary(config.model, decoder),
        *_of_ends(config.model, decoder),
        *_of_sizes(config, decoder, inputs),
        *_of_names(config),
        *_of_search(config.search),
    ]
    return tuple(sorted(faults, key=lambda fault: not fault.stops_genai))


def _fault(key: str, value: object, rule: str, remedy: str, *, stops: bool = True) -> ConfigFault:
    text = json.dumps(value)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return ConfigFault(
        told=f"{key} in {GENAI_CONFIG} is {shown}, {rule}", remedy=remedy, stops_genai=stops
    )


def _of_file(config: GenaiConfig) -> Iterator[ConfigFault]:
    if config.has_byte_order_mark:
        yield ConfigFault(
            told=f"{GENAI_CONFIG} begins with a byte order mark, "
            "which onnxruntime-genai does not read",
            remedy="Save the file as UTF-8 without a byte order mark",
        )


def _of_nulls(section: Mapping[str, Any], key: str) -> Iterator[ConfigFault]:
    """Yield everything that is null: nothing of a model may be."""
    for name, value in section.items():
        if value is None:
            yield _fault(f"{key}.{name}", None, "which is not allowed there", _LEFT_OUT)
        elif isinstance(value, dict):
            yield from _of_nulls(value, f"{key}.{name}")


def _of_numbers(config: GenaiConfig) -> Iterator[ConfigFault]:
    model, decoder = config.model, config.decoder
    for name, least in _NEEDED.items():
        if name not in model:
            yield ConfigFault(
                told=f"model.{name} is missing in {GENAI_CONFIG}, but onnxruntime-genai needs it",
                remedy=f'Add "{name}" with a number to the section model',
            )
        else:
            yield from _of_number(
                f"model.{name}", model[name], least, remedy="Correct the value in the file"
            )
    for name in _WHOLE:
        yield from _of_number(f"model.{name}", model.get(name), None)
    for name, needed in _SIZES.items():
        yield from _of_number(f"model.decoder.{name}", decoder.get(name), 0, needed=needed)


def _of_number(
    key: str, value: object, least: int | None, *, needed: bool = True, remedy: str = _LEFT_OUT
) -> Iterator[ConfigFault]:
    """Yield what is wrong with a whole number; one that is null is told of all at once."""
    if value is None:
        return
    number = whole(value)
    if number is None:
        yield _fault(key, value, "which is not a whole number", remedy)
    elif abs(number) > _LARGEST:
        yield _fault(key, value, "which does not fit into 32 bits", remedy)
    elif least is not None and number < least:
        yield _fault(key, value, f"but the minimum is {least}", remedy, stops=needed)


def whole(value: object) -> int | None:
    """Return a whole number, also one that is written with a point; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) and value == int(value) else None


def _of_vocabulary(model: Mapping[str, Any], decoder: Decoder) -> Iterator[ConfigFault]:
    size = whole(model.get("vocab_size"))
    if size is not None and 0 < size <= _LARGEST and size != decoder.vocabulary:
        yield _fault(
            "model.vocab_size",
            model["vocab_size"],
            f"but output {decoder.logits!r} of the model has scores of {decoder.vocabulary} tokens",
            f"Write {decoder.vocabulary}",
        )


def _of_ends(model: Mapping[str, Any], decoder: Decoder) -> Iterator[ConfigFault]:
    value = model.get("eos_token_id")
    for token in value if isinstance(value, list) else [] if value is None else [value]:
        number = whole(token)
        if number is None:
            yield _fault("model.eos_token_id", value, "which is not a token", _LEFT_OUT)
            return
        if not 0 <= number < decoder.vocabulary:
            yield _fault(
                "model.eos_token_id",
                value,
                f"but the model has the tokens 0 to {decoder.vocabulary - 1}",
                _LEFT_OUT,
            )
            return


def _of_sizes(
    config: GenaiConfig, decoder: Decoder, inputs: Sequence[TensorInfo]
) -> Iterator[ConfigFault]:
    """Yield sizes of the cache that the graph contradicts, each once.

    What the graph declares as a number is what onnxruntime-genai goes by, too.
    """
    shapes = {info.name: info.shape for info in inputs}
    told = set()
    for tensor in decoder.cache:
        for name, axis in _heads_and_size(tensor):
            value, known = config.decoder.get(name, 0), tensor.shape[axis]
            size, shape = whole(value), shapes.get(tensor.past)
            is_open = shape is None or not isinstance(shape[axis], int)
            # Where the graph has a number, a size of 0 says nothing.
            least = 0 if is_open else 1
            if size is None or not least <= size <= _LARGEST or known in (0, size) or name in told:
                continue
            told.add(name)
            yield _fault(
                f"model.decoder.{name}",
                value,
                f"but axis {axis} of input {tensor.past!r} of the model has {known}",
                f"Write {known}",
                stops=is_open,
            )


def _heads_and_size(tensor: CacheTensor) -> list[tuple[str, int]]:
    others = [
        axis
        for axis in range(len(tensor.shape))
        if axis not in (tensor.batch_axis, tensor.length_axis)
    ][-2:]
    if tensor.is_of_encoder or len(tensor.shape) != 4:
        return []
    return list(zip(("num_key_value_heads", "head_size"), others, strict=True))


def _of_names(config: GenaiConfig) -> Iterator[ConfigFault]:
    if "type" not in config.model:
        yield ConfigFault(
            told=f"model.type is missing in {GENAI_CONFIG}, but onnxruntime-genai needs it",
            remedy='Add "type" to the section model, e.g. "type": "llama"',
        )
    named = {"model.type": config.model.get("type")}
    for part in ("inputs", "outputs"):
        section = config.decoder.get(part, {})
        if section is not None and not isinstance(section, dict):
            yield _fault(f"model.decoder.{part}", section, "which is not an object", _LEFT_OUT)
        if not isinstance(section, dict):
            continue
        named |= {f"model.decoder.{part}.{name}": value for name, value in section.items()}
    for key, value in named.items():
        if value is None:
            continue
        if not isinstance(value, str):
            yield _fault(key, value, "which is not a name", _LEFT_OUT)
        elif key.rpartition(".")[2] in CACHE_TEMPLATES and value.count("%d") != 1:
            yield _fault(
                key,
                value,
                "which does not contain %d exactly once, for the number of the layer",
                'Write it as in "past_key_values.%d.key"',
            )


def _of_search(search: object) -> Iterator[ConfigFault]:
    for name, value in search.items() if isinstance(search, dict) else ():
        if name in _YES_OR_NO:
            if not isinstance(value, bool):
                yield _fault(f"search.{name}", value, "which is not true or false", _LEFT_OUT)
        elif (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            yield _fault(f"search.{name}", value, "which is not a number", _LEFT_OUT)
