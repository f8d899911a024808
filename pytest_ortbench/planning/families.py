"""Files that belong together: ``[tool.ortbench.models.NAME]`` of the project, or its catalogue.

::

    [tool.ortbench.models.resnet50]
    file = "resnet50.onnx"                    # what ``native`` is; by default the reference
    reference = "resnet50.onnx"               # what accuracy is compared with; by default the file
    variants.qat = "resnet50_qat.onnx"
    variants.pruned = { file = "resnet50_pruned.onnx", sqnr_floor = 12 }

    [tool.ortbench.models.whisper]
    file = "decoder_model_merged.onnx"
    encoder = "encoder_model.onnx"            # runs once before the decoder writes; found beside it

    [tool.ortbench.models.llm]
    file = "decode.onnx"                      # of a decoder in two files, that of the later steps
    first_step = "prefill.onnx"               # decoder_model.onnx is found beside it

An entry of ``models/catalogue.toml`` takes ``reference``, ``encoder`` and ``variants`` too, with
paths that start at its folder.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.model_spec import SCHEMES
from pytest_ortbench.core.precision import PRECISIONS
from pytest_ortbench.models.catalogue import CatalogueEntry, project_catalogue
from pytest_ortbench.runtimes.project_file import ProjectTable, project_table

_KEYS = ("file", "reference", "encoder", "first_step", "variants")
_VARIANT_KEYS = ("file", "sqnr_floor")
_EXAMPLE = 'Add the path of the model, e.g. file = "model.onnx"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file that the user calls a variant.

    Attributes:
        spec: What stands for it: a path, or ``builtin:NAME`` and the like.
        sqnr_floor_db: Its accuracy floor, ``None`` for the default one.
    """

    spec: str
    sqnr_floor_db: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One model with its files.

    Attributes:
        name: Of the model.
        place: Where it is configured, for messages.
        file: What stands for the file that is ``native``.
        reference: What stands for the file that is right; empty for ``file``.
        encoder: What stands for the encoder that a decoder listens to; empty for a file beside it.
        first_step: What stands for the file of a decoder's first step, likewise.
        variants: Further files by name.
        listed: Whether it is an entry of the catalogue, which is found by its name there.
    """

    name: str
    place: str
    file: str
    reference: str = ""
    encoder: str = ""
    first_step: str = ""
    variants: dict[str, Member] = field(default_factory=dict)
    listed: bool = False


def families(root: Path) -> dict[str, Family]:
    """Return the models that are configured in ``root``, by name.

    A table goes before an entry of the catalogue.

    Raises:
        UsageError: for a configuration that breaks a rule.
    """
    found = {
        entry.name: _of_entry(entry)
        for entry in project_catalogue(root).values()
        if entry.variants or entry.reference or entry.encoder
    }
    table = project_table(root, "models")
    if table is not None:
        found |= {name: _family(name, entry, table) for name, entry in table.entries.items()}
    return found


def _of_entry(entry: CatalogueEntry) -> Family:
    folder, place = Path(entry.place).parent, f"{entry.place} [{entry.name}]"
    other = entry.reference if entry.reference != entry.file else ""
    return Family(
        name=entry.name,
        place=place,
        file=str(folder / entry.file) if entry.file else f"project:{entry.name}",
        reference=_rebased(other, folder) if other else "",
        encoder=_rebased(entry.encoder, folder) if entry.encoder else "",
        variants={
            name: _member(name, value, place, folder) for name, value in entry.variants.items()
        },
        listed=True,
    )


def variant_names(root: Path) -> tuple[str, ...]:
    """Return the names of all own variants of the project's models."""
    names = [name for family in families(root).values() for name in family.variants]
    return tuple(dict.fromkeys(names))


def _family(name: str, entry: object, table: ProjectTable) -> Family:
    place = table.place(name)
    keys = _table(entry, _KEYS, place)
    reference = _text(keys, "reference", place)
    file = _text(keys, "file", place) or reference
    if not file:
        raise UsageError("the key 'file' is missing", place=place, hint=_EXAMPLE)
    variants = keys.get("variants", {})
    if not isinstance(variants, Mapping):
        raise UsageError(
            f"variants is {variants!r}, not a table",
            place=place,
            hint='Write e.g. variants.qat = "qat.onnx"',
        )
    folder = table.file.parent
    encoder, first = (_text(keys, key, place) for key in ("encoder", "first_step"))
    return Family(
        name=name,
        place=place,
        file=_rebased(file, folder),
        reference=_rebased(reference, folder) if reference and reference != file else "",
        encoder=_rebased(encoder, folder) if encoder else "",
        first_step=_rebased(first, folder) if first else "",
        variants={
            str(key): _member(str(key), value, place, folder) for key, value in variants.items()
        },
    )


def _member(name: str, value: object, place: str, folder: Path) -> Member:
    place = f"{place} variants.{name}"
    if name in PRECISIONS:
        raise UsageError(
            f"{name!r} is already the name of a precision",
            place=place,
            hint=f"Give the variant another name, e.g. variants.my-{name}",
        )
    if isinstance(value, str) and value:
        return Member(spec=_rebased(value, folder))
    if not isinstance(value, Mapping):
        raise UsageError(
            f"the entry is {value!r}, not the path of a model",
            place=place,
            hint=f'Write e.g. variants.{name} = "{name}.onnx"',
        )
    keys = _table(value, _VARIANT_KEYS, place)
    file = _text(keys, "file", place)
    if not file:
        raise UsageError(
            "the key 'file' is missing",
            place=place,
            hint=f'Add the path of the variant, e.g. file = "{name}.onnx"',
        )
    floor = keys.get("sqnr_floor")
    if floor is not None and (
        not isinstance(floor, int | float) or isinstance(floor, bool) or not math.isfinite(floor)
    ):
        raise UsageError(
            f"sqnr_floor is {floor!r}, not a number of decibels",
            place=place,
            hint="Write e.g. sqnr_floor = 12",
        )
    return Member(
        spec=_rebased(file, folder), sqnr_floor_db=None if floor is None else float(floor)
    )


def _table(value: object, known: tuple[str, ...], place: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise UsageError(
            f"the entry is {value!r}, not a table",
            place=place,
            hint="Write the entry as a table, e.g. { file = "
            f"{json.dumps(value if isinstance(value, str) and value else 'model.onnx')} }}",
        )
    for key in value:
        if key not in known:
            raise UsageError(
                f"the key {key!r} is not known", place=place, hint=did_you_mean(key, known)
            )
    return value


def _text(keys: Mapping[str, object], key: str, place: str) -> str:
    value = keys.get(key, "")
    if not isinstance(value, str) or (key in keys and not value.strip()):
        raise UsageError(
            f"{key} is {value!r}, not the name of a model",
            place=place,
            hint=f'Write e.g. {key} = "model.onnx"',
        )
    return value


def _rebased(spec: str, folder: Path) -> str:
    return spec if spec.startswith(SCHEMES) else str(folder / spec)
