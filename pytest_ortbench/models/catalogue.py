"""The catalogue: models by name, where each comes from, and what it must be fed.

Two files have the same form: ``catalogue.toml`` of this package (``zoo:NAME``) and
``models/catalogue.toml`` of a project. One table an entry::

    [silero-vad]
    package = "silero-vad==6.2.3"            # or file = …, builder = …, hub = … with hub_file = …
    member = "silero_vad/data/silero_vad.onnx"
    sha256 = "1a15…"                         # of the model file
    licence = "MIT"
    dims = { samples = 576 }                 # sizes of symbolic dimensions
    axes = { input = ["batch", "samples"] }  # names for axes that the model leaves unnamed
    inputs.sr = { kind = "constant", choices = ["16000"], why = "Hz" }
    workloads.prefill = { seq = 128, past = 0 }
    reference = "fp32.onnx"                  # what accuracy is compared with (projects only)
    encoder = "encoder_model.onnx"           # what a decoder listens to (projects only)
    variants.qat = "qat.onnx"                # further files of this model (projects only)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.schema.toml_text import read_toml_file

#: Measured when nobody names a model.
DEFAULT_SET = ("mobilenet_v2", "bert_tiny", "gbdt", "lstm_tagger")

_CATALOGUE = "catalogue.toml"
_SOURCES = ("file", "builder", "package", "hub")
_HINT_KINDS = (
    "normal",
    "uniform",
    "integers",
    "ones",
    "zeros",
    "arange",
    "choice",
    "constant",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """One entry of a catalogue. Exactly one of ``file``, ``builder``, ``package``, ``hub`` is set.

    Attributes:
        name: Its name; short, the first part of case ids.
        place: The file it stands in, for messages.
        file: Path of a model file, relative to the catalogue's folder.
        builder: Name of a builder.
        package: Requirement with a pinned version, ``NAME==VERSION``.
        member: Path of the model file inside the package.
        platform: Platform tag of the package's file, where it has one for each platform; the model
            in it is the same everywhere. Empty for packages that run anywhere.
        hub: Repository on a model hub, ``OWNER/NAME``.
        hub_file: Path of the model file inside that repository.
        hub_extra: Further files that belong to it (external data).
        revision: Revision of that repository, a commit if results should stay comparable.
        sha256: Digest of the model file; with external data see ``ModelFile.digest``.
        size_bytes: Size of the model file.
        download_bytes: Size of what has to be downloaded.
        licence: Licence of the model, as its source states it.
        description: For people, one line.
        tags: Field and task.
        default: Whether it is measured when nobody names a model (projects' catalogues only).
        dims: Sizes of symbolic dimensions.
        axes: By input, names (and sizes) of its axes.
        inputs: By input, the values it must hold.
        workloads: By name, sizes of symbolic dimensions; the first one is the default.
        reference: What stands for the file that is right, relative to the catalogue's folder;
            empty for the entry's own (projects' catalogues only).
        encoder: What stands for the encoder that a decoder listens to, likewise; empty for a file
            beside it.
        variants: By name, further files of the model: a path, or a table with ``file`` and
            ``sqnr_floor`` (projects' catalogues only).
    """

    name: str
    place: str
    file: str = ""
    builder: str = ""
    package: str = ""
    member: str = ""
    platform: str = ""
    hub: str = ""
    hub_file: str = ""
    hub_extra: tuple[str, ...] = ()
    revision: str = "main"
    sha256: str = ""
    size_bytes: int = 0
    download_bytes: int = 0
    licence: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    default: bool = True
    dims: dict[str, int] = field(default_factory=dict)
    axes: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    inputs: dict[str, ValueHint] = field(default_factory=dict)
    workloads: dict[str, dict[str, int]] = field(default_factory=dict)
    reference: str = ""
    encoder: str = ""
    variants: dict[str, str | dict[str, str | float]] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """Paths that it names, relative to the catalogue's folder."""
        others = [
            str(value.get("file", "")) if isinstance(value, dict) else value
            for value in self.variants.values()
        ]
        return tuple(path for path in (self.file, self.reference, self.encoder, *others) if path)

    @property
    def origin(self) -> str:
        """Where the model comes from, for people."""
        if self.package:
            return f"{self.member} of {self.package} in the package registry"
        if self.hub:
            return f"{self.hub_file} of {self.hub} ({self.revision}) on the model hub"
        return f"builder {self.builder}" if self.builder else f"file {self.file}"


def shipped_catalogue() -> dict[str, CatalogueEntry]:
    """Return the entries that come with this package, by name."""
    return read_catalogue(Path(__file__).with_name("catalogue.toml"))


def project_start(root: Path, top: Path) -> Path:
    """Return where to look for what a project configures: where the user is, if within the project.

    Args:
        root: Folder that paths of the user start from.
        top: The project's root directory.
    """
    return root if root.is_relative_to(top) else top


def models_folder(start: Path) -> Path:
    """Return the folder ``models`` of a project: of those above ``start`` the nearest.

    One with a catalogue goes before others; without any it is the one in ``start``.
    """
    folders = []
    for folder in (start, *start.parents):
        folders.append(folder / "models")
        if (folder / "pyproject.toml").is_file():
            # A project ends here; what lies above is another one.
            break
    listed = [folder for folder in folders if (folder / _CATALOGUE).is_file()]
    there = [folder for folder in folders if folder.is_dir()]
    return (listed or there or folders)[0]


def project_catalogue(start: Path) -> dict[str, CatalogueEntry]:
    """Return the entries of a project's ``models/catalogue.toml``; empty if it has none.

    Args:
        start: Where to look: there, and in the folders above.

    Raises:
        UsageError: if the file can't be understood.
    """
    path = models_folder(start) / _CATALOGUE
    return read_catalogue(path) if path.is_file() else {}


def read_catalogue(path: Path) -> dict[str, CatalogueEntry]:
    """Read a catalogue.

    Raises:
        UsageError: names the file, the entry, the key, and what is allowed there.
    """
    document = read_toml_file(path)
    return {name: _entry(name, table, path) for name, table in document.items()}


def _entry(name: str, table: object, path: Path) -> CatalogueEntry:
    import msgspec  # only where a catalogue is read

    place = f"{path} [{name}]"
    if not isinstance(table, dict):
        raise UsageError(
            f"{name} is {table!r}, not a table of keys",
            place=str(path),
            hint=f"In place of this line, write [{name}] on one line, and file = "
            f"{json.dumps(table)} on the next"
            if isinstance(table, str)
            else "Remove this line: each entry of the catalogue is a model",
        )
    known = [item.name for item in fields(CatalogueEntry) if item.name not in ("name", "place")]
    _check_keys(table, known, place)
    hints = table.get("inputs")
    for input_name, hint in hints.items() if isinstance(hints, dict) else ():
        _check_hint(input_name, hint, place)
    try:
        entry = msgspec.convert({**table, "name": name, "place": str(path)}, CatalogueEntry)
    except msgspec.ValidationError:
        key, value, kind = _wrong_part(table, CatalogueEntry)
        last = key.rpartition(".")[2]
        rule, value_of_kind = _OF_TYPE.get(
            kind, ("a table of keys", _OF_TABLE.get(key, "{ sequence = 128 }"))
        )
        raise UsageError(
            f"{key} is {value!r}, not {rule}",
            place=place,
            hint=f"Write e.g. {last} = {value_of_kind}",
        ) from None
    _check_source(entry, place)
    return entry


#: By the type of a value, what it is called and an example; what is not here is a table.
_OF_TYPE: dict[Any, tuple[str, str]] = {
    str: ("text", '"TEXT"'),
    int: ("a whole number", "128"),
    float: ("a number", "0"),
    bool: ("true or false", "false"),
    tuple[str, ...]: ("a list of texts", '["TEXT"]'),
    tuple[int | str, ...]: ("a list of names and sizes", '["batch", 128]'),
    str | dict[str, str | float]: ("a path or a table with the key file", '"model-int8.onnx"'),
}
#: A value of a key that is a table.
_OF_TABLE = {
    "dims": "{ sequence = 128 }",
    "axes": '{ input_ids = ["batch", "sequence"] }',
    "inputs": '{ input_ids = { kind = "normal" } }',
    "workloads": "{ short = { sequence = 128 } }",
    "variants": '{ int8 = "model-int8.onnx" }',
}


def _wrong_part(table: Mapping[str, object], kind: Any) -> tuple[str, object, Any]:
    """Return the first value in a table that has a wrong type: its path, itself, and its type."""
    import msgspec

    types = get_type_hints(kind) if is_dataclass(kind) else dict.fromkeys(table, get_args(kind)[1])
    for key, value in table.items():
        try:
            msgspec.convert(value, types[key])
        except msgspec.ValidationError:
            if not isinstance(value, dict) or types[key] in _OF_TYPE:
                return key, value, types[key]
            path, part, type_of_part = _wrong_part(value, types[key])
            return f"{key}.{path}", part, type_of_part
    raise ValueError("every value has its type")


def _check_hint(name: str, hint: object, place: str) -> None:
    place = f"{place} inputs.{name}"
    if not isinstance(hint, dict):
        raise UsageError(
            f"the value is {hint!r}, not a table",
            place=place,
            hint=f"Write e.g. {_like(hint)}",
        )
    _check_keys(hint, [item.name for item in fields(ValueHint)], place)
    kind = hint.get("kind")
    if kind not in _HINT_KINDS:
        raise UsageError(
            "the key 'kind' is missing" if kind is None else f"{kind!r} is not a value of kind",
            place=place,
            hint=_adding_kind(hint) if kind is None else did_you_mean(str(kind), _HINT_KINDS),
        )
    if kind in ("choice", "constant") and not hint.get("choices"):
        raise UsageError(
            f"kind {kind!r} needs the key 'choices' with its values",
            place=place,
            hint='Write e.g. { kind = "constant", choices = ["0"] }'
            if kind == "constant"
            else 'Write e.g. { kind = "choice", choices = ["0", "1"] }',
        )


def _like(value: object) -> str:
    """Return an example of a hint that is near to what the user wrote."""
    if value in _HINT_KINDS:
        return f'{{ kind = "{value}" }}'
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'{{ kind = "constant", choices = ["{value}"] }}'
    return '{ kind = "normal" }'


def _adding_kind(hint: Mapping[str, object]) -> str:
    """Return how a hint gets its kind, by the keys that it has."""
    bounds = [hint[key] for key in ("low", "high") if key in hint]
    whole = len(bounds) == 2 and all(isinstance(bound, int) for bound in bounds)
    of_bounds = "integers" if whole else "uniform"
    kind = "choice" if "choices" in hint else of_bounds if bounds else "normal"
    others = ", ".join(sorted({*_HINT_KINDS} - {kind}))
    return f'Add kind = "{kind}", or another kind: {others}'


def _check_keys(table: Mapping[str, object], known: list[str], place: str) -> None:
    for key in table:
        if key not in known:
            raise UsageError(
                f"the key {key!r} is not known", place=place, hint=did_you_mean(key, known)
            )


#: How a key is written that says where a model comes from.
_OF_SOURCE = {
    "member": 'Add the path of the model in the package, e.g. member = "{package}/model.onnx"',
    "hub_file": 'Add the path of the model in its repository, e.g. hub_file = "onnx/model.onnx"',
    "sha256": "Run 'sha256sum FILE' on the model file, and add sha256 = \"DIGITS\" with the digits "
    "that are printed",
}


def _check_source(entry: CatalogueEntry, place: str) -> None:
    given = [name for name in _SOURCES if getattr(entry, name)]
    if len(given) != 1:
        raise UsageError(
            f"the entry says in {len(given)} keys where its model comes from ({', '.join(given)})"
            if given
            else "the entry does not say where its model comes from",
            place=place,
            hint=f"Keep one of these keys, e.g. {given[0]}"
            if given
            else 'For a file of your own, write e.g. file = "model.onnx". For a built-in model, '
            'write e.g. builder = "resnet50". For a model out of a Python package or out of the '
            "Hugging Face Hub, write the key package or hub",
        )
    needs = {"package": ("member", "sha256"), "hub": ("hub_file", "sha256")}
    for key in needs.get(given[0], ()):
        if not getattr(entry, key):
            raise UsageError(
                f"the key {key!r} is missing: an entry with {given[0]!r} needs it",
                place=place,
                hint=_OF_SOURCE[key].format(package=_distribution_of(entry.package)),
            )
    if entry.package and "==" not in entry.package:
        raise UsageError(
            f"package is {entry.package!r}, without an exact version",
            place=place,
            hint=f'Write e.g. package = "{exact}"'
            if (exact := _exact(entry.package))
            else f"Run 'pip index versions {entry.package}', and add == with one of the versions "
            "that are printed",
        )
    if entry.sha256 and not _is_digest(entry.sha256):
        raise UsageError(
            f"sha256 is {entry.sha256!r}, not 64 hexadecimal digits in lower case",
            place=place,
            hint=f'Write sha256 = "{plain}"'
            if _is_digest(plain := entry.sha256.lower().removeprefix("sha256:").strip())
            else "Run 'sha256sum FILE' on the model file, and copy the digits that are printed",
        )
    tables = {f"workloads.{name}": sizes for name, sizes in entry.workloads.items()}
    for key, sizes in {"dims": entry.dims, **tables}.items():
        for symbol, size in sizes.items():
            if size < 0:
                raise UsageError(
                    f"{key}.{symbol} is {size}, but a size can't be below 0",
                    place=place,
                    hint=f"Write a size, e.g. {symbol} = 1, or leave {symbol} out",
                )


def _distribution_of(package: str) -> str:
    """The name in front of a version: ``rapidocr`` of ``rapidocr>=1.0``."""
    return re.split(r"[^\w.-]", package, maxsplit=1)[0]


def _exact(package: str) -> str:
    """A requirement of one version, the first one that is named: ``rapidocr==1.0`` of ``>=1.0``.

    Empty where none is named.
    """
    named = re.search(r"[=<>~]\s*(\d[\w.]*)", package)
    return f"{_distribution_of(package)}=={named[1]}" if named else ""


def _is_digest(text: str) -> bool:
    return re.fullmatch("[0-9a-f]{64}", text) is not None
