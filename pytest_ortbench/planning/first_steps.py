"""Decoders whose requests run several files: which files, their inputs, and what is refused.

One file makes the first step and another one the later steps; an encoder may come before both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ortbench.core.case import Case, InputSpec
from pytest_ortbench.core.errors import ModelError, UsageError
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.models.encoders import first_half, later_half
from pytest_ortbench.models.first_steps import begun_by
from pytest_ortbench.planning.encoders import (
    fed_to_encoder,
    fed_to_file,
    refuse_encoder,
    sound_seconds,
)


def how_to_merge(first: Path, later: Path) -> str:
    """Return the command that makes one file of the two of a decoder.

    Args:
        first: The file of the first step.
        later: That of the later steps.
    """
    files = ", ".join(f'"{path}"' for path in (first, later))
    merged = f'merge_decoders({files}, save_path="decoder_model_merged.onnx")'
    return f"python -c 'from optimum.onnx import merge_decoders; {merged}'"


def with_first_step(
    model: Model, named: str, read: Callable[[str], Model], place: str = "first_step"
) -> Model:
    """Return a model with the file of its first step, if it is one of two that make a decoder.

    The file of the first step is no decoder by itself then: it would read all again for each token.

    Args:
        model: As it was read.
        named: What the project calls the file of its first step; empty for one that lies beside it.
        read: Reads the model that a specification stands for.
        place: Where it is called so, for messages.

    Raises:
        OrtbenchError: if the named one can't be read.
        UsageError: if the named one does not go with it.
    """
    if not named and later_half(Path(model.path)) is not None:
        return replace(model, decoder=None)
    beside = first_half(Path(model.path))
    spec = named or (str(beside) if beside is not None else "")
    if not spec:
        return model
    other: Model | None = None
    try:
        other = read(spec)
        found = begun_by(model, other)
    except (ModelError, UsageError) as error:
        if named:
            raise
        found = str(error)
    if isinstance(found, Model):
        return _noted(found, f"the first token of a request is written by {Path(spec).name}")
    if named and other is not None and isinstance(begun_by(other, model), Model):
        raise UsageError(
            f"{Path(named).name} does not read the prompt, but {Path(model.path).name} does",
            place=place,
            hint="Swap the values of the keys 'file' and 'first_step'",
        )
    if named:
        raise UsageError(
            f"{named!r} can't be the file that reads the prompt: {found}",
            place=place,
            hint="Name the file that the exporter wrote for the prompt. If it wrote only one "
            "file, leave the key 'first_step' out",
        )
    return _noted(
        model,
        f"{Path(spec).name} beside the model is not used to read the prompt: {found}. To make "
        f"one file of both, run: {how_to_merge(beside or Path(spec), Path(model.path))}",
    )


def fed_to_first_step(
    model: Model, *, batch: int, sizes: Mapping[str, int]
) -> tuple[InputSpec, ...] | Failure:
    """Return what the file of a first step is fed of an encoder's output, or why it can't be.

    Nothing is fed where there is no such file, or no encoder.

    Args:
        model: That of the later steps.
        batch: Number of sequences.
        sizes: Sizes by symbol; others than its own are left alone.
    """
    first = model.first_step
    if first is None or not first.decoder.heard:
        return ()
    specs = fed_to_file(first, "first step", batch=batch, sizes=sizes)
    if isinstance(specs, Failure):
        return specs
    return tuple(spec for spec in specs if spec.name in first.decoder.heard)


@dataclass(frozen=True, slots=True, kw_only=True)
class FedBeside:
    """What the files that a request runs beside the model's own are fed.

    Attributes:
        encoder_inputs: What an encoder reads at the beginning of each request.
        first_inputs: What the file of a first step is fed of the encoder's output.
        sound_s: Seconds of sound that the encoder reads; ``None`` where it reads none.
        refusal: Why they can't be fed; ``None`` if they can.
    """

    encoder_inputs: tuple[InputSpec, ...] = ()
    first_inputs: tuple[InputSpec, ...] = ()
    sound_s: float | None = None
    refusal: Failure | None = None


def fed_beside(model: Model, *, batch: int, sizes: Mapping[str, int]) -> FedBeside:
    """Return what the other files of a request are fed.

    Args:
        model: That of the decoder.
        batch: Number of sequences.
        sizes: Sizes by symbol.
    """
    begun = fed_to_first_step(model, batch=batch, sizes=sizes)
    if isinstance(begun, Failure):
        return FedBeside(refusal=begun)
    read = () if model.encoder is None else fed_to_encoder(model.encoder, batch)
    if isinstance(read, Failure):
        return FedBeside(refusal=read)
    return FedBeside(encoder_inputs=read, first_inputs=begun, sound_s=sound_seconds(read))


def refuse_several_files(case: Case) -> Failure | None:
    """Return why a request that runs several files can't be measured; ``None`` if it can."""
    first, asked = case.model.first_step, case.generation
    if case.encoder_inputs:
        unsent = refuse_encoder(case.runtime)
        if unsent is not None:
            return unsent
    if first is None or asked is None:
        return None
    if not case.runtime.shares_files:
        return case_failure(
            f"this decoder is in two files, and {Path(first.path).name} is read from the disk of "
            f"this machine, which runtime {case.runtime.label!r} can't see",
            f"Use --ort-runtimes=current. To measure in {case.runtime.label!r}, merge the two "
            f"files with: {_merge(case.model)}",
            phase="files",
        )
    if case.variant.path != case.model.path or case.variant.recipe:
        return case_failure(
            f"a decoder in two files can't be converted to {case.variant.precision}",
            f"To measure {case.variant.precision}, merge the two files with: {_merge(case.model)}. "
            "Then measure the merged file",
        )
    if asked.depth and _takes_one_token(case.model):
        return case_failure(
            "this model reads one token at a time once there are earlier tokens, so it can't read "
            f"a prompt after the {asked.depth} tokens of --ort-depth",
            "Use --ort-depth=0",
        )
    return None


def _merge(model: Model) -> str:
    first = model.first_step
    return "" if first is None else how_to_merge(Path(first.path), Path(model.path))


def _takes_one_token(model: Model) -> bool:
    """Whether a later step takes one token and no other number."""
    ids = "" if model.decoder is None else model.decoder.ids
    shapes = (info.shape for info in model.inputs if info.name == ids)
    return any(shape is not None and shape[1] == 1 for shape in shapes)


def _noted(model: Model, note: str) -> Model:
    return replace(model, notes=(*model.notes, note))
