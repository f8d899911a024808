"""``--ort-against=model:FOLDER``: which of its files stands on the other side of which model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.model import Model


def stand_ins(models: Iterable[Model], baselines: Iterable[Model], folder: str) -> dict[str, str]:
    """Return the names of the models that files of a folder stand against, by the files' paths.

    A file stands against the model whose path ends as its own path inside the folder does:
    ``old/det/model.onnx`` against ``models/det/model.onnx``. Of several such files the one with
    most folders in common counts, whatever else was asked for.

    Args:
        models: What was asked for.
        baselines: What the folder holds.
        folder: Place of the folder, relative to the run's root as the places of models are.

    Raises:
        UsageError: if a file could stand against either of two models.
    """
    inside = {_parts(_relative(model, folder)): model for model in baselines}
    claims: dict[tuple[str, ...], list[Model]] = {}
    for model in {model.path: model for model in models}.values():
        parts = _parts(PurePosixPath(model.place or f"{model.name}.onnx"))
        ends = (parts[start:] for start in range(len(parts)))
        end = next((end for end in ends if end in inside), None)
        if end is not None:
            claims.setdefault(end, []).append(model)
    return {inside[end].path: _only(end, claimed, folder).name for end, claimed in claims.items()}


def _only(end: tuple[str, ...], claimed: list[Model], folder: str) -> Model:
    """The model that a file stands against: one with just its path goes before longer ones."""
    exact = [model for model in claimed if _parts(PurePosixPath(model.place)) == end]
    if len(exact) == 1 or len(claimed) == 1:
        return (exact or claimed)[0]
    file = "/".join((*end[:-1], f"{end[-1]}.onnx"))
    both = " and ".join(model.name for model in claimed[:2])
    raise UsageError(
        f"{folder}/{file} could stand against {both}",
        place="--ort-against",
        hint=f"Give it the folder of one of them, e.g. {folder}/{claimed[0].place}",
    )


def _relative(model: Model, folder: str) -> PurePosixPath:
    place = PurePosixPath(model.place)
    return place.relative_to(folder) if place.is_relative_to(folder) else place


def _parts(place: PurePosixPath) -> tuple[str, ...]:
    return (*place.parts[:-1], place.name.removesuffix(".onnx"))
