"""Which file of an encoder a decoder listens to, and which of its outputs each input takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.model import EncoderFile, Model, TensorInfo
from pytest_ortbench.models.cache_pairs import parts_of_name

_DECODERS = ("decoder_model_merged", "decoder_with_past_model", "decoder_model", "decoder")
_ENCODERS = ("encoder_model", "encoder")
_FIRST, _LATER, _MERGED = "decoder_model", "decoder_with_past_model", "decoder_model_merged"
_STATES = ("last_hidden_state", "hidden_states", "encoder_hidden_states", "encoder_outputs")


def encoder_beside(path: Path) -> Path | None:
    """Return the file of an encoder that exporters write beside that of a decoder, if it is there.

    ``decoder_model_merged_quantized.onnx`` goes with ``encoder_model_quantized.onnx``.

    Args:
        path: The decoder's file.
    """
    for decoder in _DECODERS:
        before, matched, after = path.stem.rpartition(decoder)
        if matched:
            names = [f"{before}{encoder}{after}{path.suffix}" for encoder in _ENCODERS]
            return next((path.with_name(name) for name in names if _is_there(path, name)), None)
    return None


def first_half(path: Path) -> Path | None:
    """Return the file of a decoder's first step that exporters write beside that of later steps.

    ``decoder_model.onnx`` reads a prompt without a cache, and ``decoder_with_past_model.onnx`` goes
    on with one.

    Args:
        path: The file of the later steps.
    """
    return _half(path, _LATER, _FIRST)


def later_half(path: Path) -> Path | None:
    """Return the file of the later steps that exporters write beside that of the first one.

    Where the two lie there merged as well, neither is half of anything that is missing.

    Args:
        path: The file of the first step.
    """
    half = None if _MERGED in path.stem else _half(path, _FIRST, _LATER)
    return None if half is None or _called(path, _FIRST, _MERGED).is_file() else half


def _half(path: Path, own: str, other: str) -> Path | None:
    if own not in path.stem:
        return None
    beside = _called(path, own, other)
    return beside if beside.is_file() else None


def _called(path: Path, own: str, other: str) -> Path:
    """Return a file beside another one, whose name says otherwise what is in it."""
    before, _, after = path.stem.rpartition(own)
    return path.with_name(f"{before}{other}{after}{path.suffix}")


def _is_there(path: Path, name: str) -> bool:
    return path.with_name(name).is_file()


def listening_to(model: Model, encoder: Model) -> Model | str:
    """Return a decoder with the file of its encoder, or why the two do not go together.

    Args:
        model: The decoder.
        encoder: The model that is to run before it.
    """
    if not model.hears:
        return f"no input of {model.name!r} takes the output of an encoder"
    heard: dict[str, str] = {}
    first = () if model.first_step is None else model.first_step.inputs
    declared = {info.name: info for info in (*model.inputs, *first)}
    for name in model.hears:
        info = declared[name]
        output = _output_for(info, encoder.outputs)
        if output is not None:
            heard[name] = output.name
        elif not is_mask(info):
            return f"no output of {Path(encoder.path).name} fits input {name!r}"
    return replace(
        model,
        encoder=EncoderFile(
            path=encoder.path,
            source=encoder.source,
            digest=encoder.digest,
            size_bytes=encoder.size_bytes,
            external_files=encoder.external_files,
            inputs=encoder.inputs,
            heard=heard,
            default_dims=encoder.default_dims,
            implied_dims=encoder.implied_dims,
        ),
    )


def is_mask(info: TensorInfo) -> bool:
    """Return whether an input is the mask of what an encoder read: whole numbers, two axes."""
    return "int" in info.type and len(info.shape or ()) == 2


def _output_for(info: TensorInfo, outputs: Sequence[TensorInfo]) -> TensorInfo | None:
    """The output that an input takes: of equal name, the same keys or values, or the states."""
    rank = len(info.shape or ())
    fitting = [output for output in outputs if len(output.shape or ()) == rank]
    if is_mask(info):
        fitting = [output for output in fitting if "int" in output.type]
    for chosen in (
        [output for output in fitting if output.name == info.name],
        [output for output in fitting if parts_of_name(output.name) == parts_of_name(info.name)]
        if rank > 3
        else [],
        [output for output in fitting if output.name in _STATES] if rank == 3 else [],
        fitting if rank == 3 else [],
    ):
        if len(chosen) == 1:
            return chosen[0]
    return None
