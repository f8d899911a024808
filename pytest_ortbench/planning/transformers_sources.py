"""Which folder of transformers an ONNX decoder was exported from, where a framework runs such."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.errors import ModelError, UsageError, did_you_mean, why_unreadable
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.engines.engine_kind import EngineKind
from pytest_ortbench.engines.registry import engine_kind
from pytest_ortbench.models.transformers_folder import (
    LIBRARY,
    TransformersFolder,
    folder_at,
    folder_beside,
)
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
        UsageError: for a folder of a model that is not there, and for one that is not loaded.
    """
    for path in request.sources.values():
        folder = folder_at(Path(path))
        if folder.refusal:
            raise UsageError(
                f"{path!r} can't be loaded as a model of transformers: {folder.refusal}",
                place="--ort-source",
                hint=folder.remedy or "Name the folder that model.save_pretrained wrote",
            )
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
        what, hint = why_unreadable(error)
        if isinstance(error, PermissionError):
            hint = (
                "Allow your user to read every file of the folder, e.g. chmod -R u+rX "
                f"{shlex.quote(str(folder.path))}"
            )
        raise ModelError(
            f"{str(error.filename or folder.path)!r} {what}", place=str(folder.path), hint=hint
        ) from error


def _folder_of(model: Model, request: PlanRequest) -> TransformersFolder | None:
    named = request.sources.get(model.name, request.sources.get(""))
    return folder_beside(Path(model.path)) if named is None else folder_at(Path(named))


def writes_alone(model: Model) -> bool:
    """Return whether a model writes text by itself: one file, and no encoder."""
    decoder = model.decoder
    is_alone = model.encoder is None and model.first_step is None
    return decoder is not None and is_alone and not decoder.heard


def why_no_folder(case: Case, kind: EngineKind) -> Failure:
    """Return why a framework can't run a language model that is there as an ONNX file alone.

    Args:
        case: Its model was exported from no folder that is known.
        kind: The framework.
    """
    library = kind.libraries[0]
    if not writes_alone(case.model):
        has = "several ONNX files" if case.model.first_step is not None else "an encoder"
        return case_failure(
            f"the model has {has}, and pytest-ortbench compares {kind.title} only with a language "
            "model that is one ONNX file without an encoder",
            f"Leave {case.provider.alias} out of --ort-providers",
        )
    hint = (
        f"Write --ort-source=FOLDER, with the path of the {library} folder that the file was "
        f"exported from in place of FOLDER. If you do not have it, leave {case.provider.alias} out "
        "of --ort-providers"
    )
    folder = folder_beside(Path(case.model.path))
    if folder is not None and folder.refusal:
        return case_failure(
            f"{kind.title} can't load the {library} folder {folder.path.name!r}, which the ONNX "
            f"file lies in: {folder.refusal}",
            folder.remedy or hint,
        )
    return case_failure(
        f"{kind.title} needs the {library} folder that the ONNX file was exported from, and no "
        "such folder lies beside the file",
        hint,
    )
