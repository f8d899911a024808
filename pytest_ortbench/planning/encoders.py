"""Encoders of models that listen: found, and given sizes for a request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import InputSpec, Runtime
from pytest_ortbench.core.errors import ModelError, UsageError
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.model import EncoderFile, FirstStepFile, Model
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.models.builders.registry import BUILDERS
from pytest_ortbench.models.encoders import encoder_beside, listening_to
from pytest_ortbench.planning.feeds import inputs_at
from pytest_ortbench.planning.sizes import ModelAxes, RefusedCombination

_BUILTIN = "builtin:"
#: How inputs of sound are called: ``[batch, samples]``, or ``[batch, bands, frames]``.
_SOUND = re.compile(
    r"(^|_)(audios?|sounds?|speech|waveforms?|mels?|input_features|input_values)(_|\Z)"
)
#: A frame of a spectrogram every 10 ms, and samples a second, of models of speech.
_FRAME_S, _SAMPLES_PER_S = 0.01, 16_000


def with_encoder(
    model: Model, named: str, read: Callable[[str], Model], place: str = "encoder"
) -> Model:
    """Return a model with the encoder that it listens to, as far as one is known.

    Args:
        model: As it was read.
        named: What the project calls its encoder; empty for one that is found beside it.
        read: Reads the model that a specification stands for.
        place: Where it is called so, for messages.

    Raises:
        OrtbenchError: if the named one can't be read.
        UsageError: if the named one does not go with it.
    """
    if not named and not model.hears:
        return model
    spec = named or _usual(model)
    if not spec:
        return _noted(model, "there is no encoder file beside the model")
    try:
        encoder = read(spec)
        if named and not model.hears and encoder.path == model.path:
            raise UsageError(
                f"{named!r} is the file of the model, too",
                place=place,
                hint="Write the file of the decoder into the key 'file' of this entry",
            )
        found = listening_to(model, encoder)
    except (ModelError, UsageError) as error:
        if named:
            raise
        found = str(error)
    if isinstance(found, Model):
        return found
    if named:
        raise UsageError(
            f"{named!r} can't be the encoder: {found}",
            place=place,
            hint="Name the encoder that was exported with this decoder. If it has none, leave the "
            "key 'encoder' out"
            if model.hears
            else "Leave the key 'encoder' out. If another model takes the output of this "
            "encoder, write the key into the entry of that model",
        )
    return _noted(model, found)


def _usual(model: Model) -> str:
    """What stands for the encoder of a model that nobody named: a shipped one, or a file."""
    if model.source.startswith(_BUILTIN):
        encoder = BUILDERS[model.source.removeprefix(_BUILTIN)].encoder
        return f"{_BUILTIN}{encoder}" if encoder else ""
    beside = encoder_beside(Path(model.path))
    return "" if beside is None else str(beside)


def _noted(model: Model, why: str) -> Model:
    note = f"the encoder's output is random, and its time is not included: {why}"
    return replace(model, notes=(*model.notes, note))


def fed_to_encoder(encoder: EncoderFile, batch: int) -> tuple[InputSpec, ...] | Failure:
    """Return what an encoder reads in a request, or why it can't.

    Args:
        encoder: Its file.
        batch: Number of sequences.
    """
    return fed_to_file(encoder, "encoder", batch=batch, sizes={})


def fed_to_file(
    file: EncoderFile | FirstStepFile, role: str, *, batch: int, sizes: Mapping[str, int]
) -> tuple[InputSpec, ...] | Failure:
    """Return the inputs of a file that runs beside a decoder, or why they can't be made.

    Args:
        file: The file.
        role: What it is, for the message: ``encoder``.
        batch: Number of sequences.
        sizes: Sizes by symbol; those of symbols that the file does not have are left alone.
    """
    name = Path(file.path).name
    axes = ModelAxes(
        Model(
            name=name,
            path=file.path,
            source=file.source,
            digest=file.digest,
            size_bytes=file.size_bytes,
            inputs=file.inputs,
            default_dims=file.default_dims,
            implied_dims=file.implied_dims,
        )
    )
    own = {symbol: size for symbol, size in sizes.items() if symbol in axes.symbols}
    try:
        return inputs_at(axes, batch=batch, dims=own)
    except (RefusedCombination, UsageError) as error:
        return Failure(kind="unsupported", phase="inputs", message=f"{role} {name}: {error}")


def sound_seconds(specs: Sequence[InputSpec]) -> float | None:
    """Return how many seconds of sound inputs hold; ``None`` where they hold none."""
    for spec in specs:
        if "float" not in spec.type or not _SOUND.search(spec.name.lower()):
            continue
        if len(spec.shape) == 3:
            return spec.shape[2] * _FRAME_S
        if len(spec.shape) == 2:
            return spec.shape[1] / _SAMPLES_PER_S
    return None


def refuse_encoder(runtime: Runtime) -> Failure | None:
    """Return why a request with an encoder can't be measured in a runtime, if it can't."""
    if runtime.shares_files:
        return None
    return case_failure(
        "the file of the encoder is read from the disk of this machine, but runtime "
        f"{runtime.label!r} does not share files with this machine",
        "Measure the model in a runtime that shares files, e.g. --ort-runtimes=current",
        phase="files",
    )
