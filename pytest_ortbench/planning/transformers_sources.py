"""Which folder of transformers an ONNX decoder was exported from, where a framework runs such."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.errors import ModelError, UsageError, did_you_mean
from pytest_ortbench.core.model import Model
from pytest_ortbench.engines.registry import engine_kind
from pytest_ortbench.models.transformers_folder import (
    LIBRARY,
    TransformersFolder,
    folder_at,
    folder_beside,
)
from pytest_ortbench.planning.engines import writes_alone
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.unreadable import UnreadableModel


def with_transformers(
    models: Sequence[Model | UnreadableModel],
    request: PlanRequest,
    providers: Iterable[Provider],
) -> list[Model | UnreadableModel]:
    """Return the models, decoders with the folder that they were exported from.

    Weights are read for it, so it is done only where a provider is a framework that loads them.

    Args:
        models: As they were read.
        request: What was asked for: folders by the name of the model.
        providers: What runs them.

    Raises:
        UsageError: for a folder of a model that is not there, and for one that can't be read.
    """
    named = [name for name in request.sources if name]
    for name in named:
        if name not in (known := [model.name for model in models]):
            raise UsageError(
                f"no model of this run is called {name!r}",
                place="--ort-source",
                hint=did_you_mean(name, known),
            )
    kinds = [engine_kind(provider.alias) for provider in providers if provider.role == "framework"]
    if not any(kind is not None and LIBRARY in kind.libraries for kind in kinds):
        return list(models)
    return [_with_folder(model, request) if isinstance(model, Model) else model for model in models]


def _with_folder(model: Model, request: PlanRequest) -> Model:
    if model.exported_from is not None or not writes_alone(model):
        return model
    folder = _folder_of(model, request)
    if folder is None or folder.refusal:
        return model
    try:
        return replace(model, exported_from=folder.source())
    except OSError as error:
        raise ModelError(
            f"a file of it can't be read: {error.strerror or error}", place=str(folder.path)
        ) from error


def _folder_of(model: Model, request: PlanRequest) -> TransformersFolder | None:
    named = request.sources.get(model.name, request.sources.get(""))
    return folder_beside(Path(model.path)) if named is None else folder_at(Path(named))
