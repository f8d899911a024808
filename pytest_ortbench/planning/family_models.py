"""Models with their references and own variants: what the project configured, read from disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pytest_ortbench.core.errors import ModelError, OrtbenchError, UsageError
from pytest_ortbench.core.model import Model, Reference
from pytest_ortbench.core.precision import precision_of
from pytest_ortbench.models.naming import Naming
from pytest_ortbench.models.ort_file import hinted_by, is_ort_file
from pytest_ortbench.models.resolve import BrokenModel, resolve_models
from pytest_ortbench.models.sources import Export
from pytest_ortbench.planning.encoders import with_encoder
from pytest_ortbench.planning.exports import ExportError
from pytest_ortbench.planning.families import Family, Member
from pytest_ortbench.planning.first_steps import with_first_step
from pytest_ortbench.planning.unreadable import UnreadableModel
from pytest_ortbench.planning.variants import OwnVariant

#: Returns a model with the interface that its session has; raises ModelError.
Describe = Callable[[Model], Model]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Models of one request.

    Attributes:
        models: In the order asked.
        own: Own variants by the name of their model.
    """

    models: list[Model | UnreadableModel]
    own: dict[str, list[OwnVariant]]


def resolve(
    specs: Sequence[str],
    known: Mapping[str, Family],
    *,
    root: Path,
    notify: Callable[[str], None],
    naming: Naming | None = None,
    describe: Describe | None = None,
    export: Export | None = None,
) -> Resolved:
    """Find the models that specifications stand for, families among them.

    A family is meant by its name or by its file; a path that exists wins over a name.

    Args:
        specs: As typed.
        known: The project's families.
        root: Folder that paths start at.
        notify: Told what is fetched.
        naming: Gives names to files; ``None`` for names that start at ``root``.
        describe: Completes a model that only ONNX Runtime can read; ``None`` leaves it as it is.
        export: Exports a source; ``None`` where none is exported.

    Raises:
        UsageError: if a specification stands for nothing.
    """
    asked = [
        known[spec].file
        if spec in known and not known[spec].listed and not (root / spec).exists()
        else spec
        for spec in specs
    ]
    models: list[Model | UnreadableModel] = []
    own: dict[str, list[OwnVariant]] = {}
    for read in resolve_models(asked, root=root, notify=notify, naming=naming, export=export):
        found = _described(read, describe)
        if isinstance(found, BrokenModel):
            models.append(_unreadable(found, found.name, found.error))
            continue
        family = _family_of(found, known)
        try:
            found = _with_files_beside(found, family, root, notify, describe)
        except OrtbenchError as error:
            models.append(_unreadable(found, found.name if not family else family.name, error))
            continue
        if family is None:
            models.append(found)
            continue
        try:
            named = replace(found, name=family.name)
            models.append(_with_reference(named, family, root, notify, describe))
        except OrtbenchError as error:
            models.append(_unreadable(found, family.name, error))
            continue
        own[family.name] = [
            _own(key, member, family, root, notify, describe)
            for key, member in family.variants.items()
        ]
    return Resolved(models=models, own=own)


def _with_files_beside(
    model: Model,
    family: Family | None,
    root: Path,
    notify: Callable[[str], None],
    describe: Describe | None,
) -> Model:
    """Return a model with the files that its requests run as well: a first step, an encoder."""
    named = Family(name="", place="", file="") if family is None else family

    def place(key: str) -> str:
        return f"{named.place} {key}" if named.place else ""

    def reader(key: str) -> Callable[[str], Model]:
        return partial(_one, place=place(key), root=root, notify=notify, describe=describe)

    first, encoder = "first_step", "encoder"
    begun = with_first_step(model, named.first_step, reader(first), place(first))
    return with_encoder(begun, named.encoder, reader(encoder), place(encoder))


def _unreadable(model: Model | BrokenModel, name: str, error: OrtbenchError) -> UnreadableModel:
    failure = error.failure if isinstance(error, ExportError) else None
    return UnreadableModel(
        name=name, path=model.path, message=str(error), place=model.place, failure=failure
    )


def _family_of(model: Model, known: Mapping[str, Family]) -> Family | None:
    for family in known.values():
        if model.source == family.file or os.path.normpath(family.file) == model.path:
            return family
    return None


def _with_reference(
    model: Model,
    family: Family,
    root: Path,
    notify: Callable[[str], None],
    describe: Describe | None,
) -> Model:
    if not family.reference:
        return model
    found = _one(family.reference, f"{family.place} reference", root, notify, describe)
    return replace(
        hinted_by(model, found) if is_ort_file(Path(model.path)) else model,
        reference=Reference(
            name=Path(found.path).name,
            path=found.path,
            digest=found.digest,
            precision=precision_of(found),
            external_files=found.external_files,
            input_types={info.name: info.type for info in found.inputs},
        ),
    )


def _own(
    name: str,
    member: Member,
    family: Family,
    root: Path,
    notify: Callable[[str], None],
    describe: Describe | None,
) -> OwnVariant:
    try:
        found = _one(member.spec, f"{family.place} variants.{name}", root, notify, describe)
    except OrtbenchError as error:
        return OwnVariant(name=name, model=None, error=str(error))
    return OwnVariant(name=name, model=found, sqnr_floor_db=member.sqnr_floor_db)


def _described(found: Model | BrokenModel, describe: Describe | None) -> Model | BrokenModel:
    """The model with its interface, if its file does not say it and a session can."""
    if describe is None or isinstance(found, BrokenModel) or not is_ort_file(Path(found.path)):
        return found
    try:
        return describe(found)
    except ModelError as error:
        return BrokenModel(name=found.name, path=found.path, error=error, place=found.place)


def _one(
    spec: str,
    place: str,
    root: Path,
    notify: Callable[[str], None],
    describe: Describe | None,
) -> Model:
    try:
        found = resolve_models([spec], root=root, notify=notify)
    except UsageError as error:
        raise UsageError(error.message, place=place, hint=error.hint) from error
    if len(found) != 1:
        raise UsageError(
            f"{spec!r} stands for {len(found)} models ({found[0].name}, {found[1].name}"
            f"{', …' if len(found) > 2 else ''}), but one is needed here",
            place=place,
            hint=f"Name the file of one of them, e.g. {found[0].path}",
        )
    model = _described(found[0], describe)
    if isinstance(model, BrokenModel):
        raise model.error
    return model
