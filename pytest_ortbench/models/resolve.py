"""From what a user typed to models."""

from __future__ import annotations

import glob
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pytest_ortbench.core.errors import (
    ModelError,
    NoModelError,
    OrtbenchError,
    UsageError,
    class_and_line,
    says,
)
from pytest_ortbench.core.home_folder import in_home
from pytest_ortbench.core.model import Model, ValueHint
from pytest_ortbench.core.model_spec import (
    GENAI_CONFIG,
    ONNX,
    ONNX_FILES,
    ORT,
    is_model_file,
    is_onnx_file,
)
from pytest_ortbench.core.namesakes import HOW_TO_MEND, namesake_of
from pytest_ortbench.models.builders.registry import BUILDERS, NAMED_ONLY
from pytest_ortbench.models.cache import cache_folder
from pytest_ortbench.models.catalogue import (
    DEFAULT_SET,
    CatalogueEntry,
    models_folder,
    project_catalogue,
    project_start,
    shipped_catalogue,
)
from pytest_ortbench.models.decoders import decoder_of
from pytest_ortbench.models.fetch import Notify, fetch_model, wrong_digest
from pytest_ortbench.models.genai_config import has_genai_config, read_genai_config
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.models.language_config import language_config
from pytest_ortbench.models.missing import advice_on, advice_on_pattern, advice_on_shipped
from pytest_ortbench.models.naming import Naming
from pytest_ortbench.models.ort_file import is_ort_file, read_ort_file
from pytest_ortbench.models.sources import (
    Export,
    SourceSpec,
    names_function,
    read_source,
    source_at,
)

_OPTION = "--ort-models"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenModel:
    """A model that was asked for and can't be had. The others go on.

    Attributes:
        name: The name it would have.
        path: Its file, or ``zoo:NAME`` for one that could not be fetched.
        error: What is wrong; one line that names the file.
        place: As that of a model.
    """

    name: str
    path: str
    error: ModelError
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """One model that a specification stands for, not yet read."""

    name: str
    path: str
    read: Callable[[], Model]
    place: str = ""


def resolve_models(
    specs: Sequence[str],
    *,
    root: Path,
    notify: Notify | None = None,
    naming: Naming | None = None,
    place: str = _OPTION,
    export: Export | None = None,
) -> list[Model | BrokenModel]:
    """Find and read the models that specifications stand for.

    A specification is a file, a glob (``**`` included), a folder (with ``genai_config.json`` the
    model that this names, else all ``.onnx`` files in it and below, sorted), ``zoo:NAME``,
    ``zoo:all``, ``builtin:NAME``, ``builtin:all``, or the name of an entry of the project's
    ``models/catalogue.toml``. A path that exists wins over a name. A source is exported first:
    ``FILE.py:FUNCTION``, or a file or folder of a framework's own.

    Args:
        specs: What was typed; empty for the default set: mobilenet_v2, bert_tiny, gbdt and
            lstm_tagger, and what the project's ``models/`` holds.
        root: Folder that relative paths start from, and whose ``models/`` is the project's.
        notify: Told before anything is downloaded; ``None`` tells nobody.
        naming: Gives names to files; ``None`` for names that start at ``root``.
        place: Where the specifications were typed, for messages.
        export: Exports a source; ``None`` where that can't be done, and a source is broken.

    Returns:
        One entry a model, in the order asked, each file once. A file is called by its path, an
        entry of a catalogue by its name there; what else was asked for changes neither.

    Raises:
        UsageError: if a specification stands for nothing: no such file, an empty glob or folder, an
            unknown name.
    """
    if naming is None:
        naming = Naming(root=root, taken=(*shipped_names(), *project_catalogue(root)))
    resolver = _Resolver(
        root=root, notify=notify or _silent, place=place, naming=naming, export=export
    )
    found: dict[str, _Found] = {}
    for spec in specs or resolver.defaults():
        for item in resolver.find(spec):
            found.setdefault(item.path, item)
    return [_read(item) for item in found.values()]


def shipped_names() -> tuple[str, ...]:
    """Return the names of all models that come with this package."""
    return (*BUILDERS, *shipped_catalogue())


def models_of_project(start: Path) -> tuple[str, ...]:
    """Return specifications of what the project's ``models/`` offers to all who name no model."""
    entries = project_catalogue(start).values()
    folder = models_folder(start)
    listed = {os.path.normpath(folder / file) for entry in entries for file in entry.files}
    files = [str(file) for file in sorted(folder.glob(ONNX_FILES))]
    return (
        *(entry.name for entry in entries if entry.default),
        *(file for file in files if os.path.normpath(file) not in listed),
    )


def _silent(_text: str) -> None:
    return


class _Resolver:
    """Knows the catalogues and the folder that paths start from."""

    def __init__(
        self, *, root: Path, notify: Notify, place: str, naming: Naming, export: Export | None
    ) -> None:
        self._root = root
        self._export = export
        self._naming = naming
        self._place = place
        self._notify = notify
        self._start = project_start(root, naming.root)
        self._project = project_catalogue(self._start)

    def defaults(self) -> list[str]:
        """The default set: builtin networks and what the project's ``models/`` holds."""
        return [*(f"builtin:{name}" for name in DEFAULT_SET), *models_of_project(self._start)]

    def find(self, spec: str) -> Iterator[_Found]:
        """Yield the models of one specification."""
        kind, colon, name = spec.partition(":")
        if kind == "zoo" and colon:
            yield from self._named(spec, name, shipped_catalogue(), "zoo")
        elif kind == "builtin" and colon:
            yield from self._named(spec, name, _builtin_entries(), "builtin")
        elif not spec.strip():
            raise UsageError(
                "the name of a model is empty",
                place=self._place,
                hint="Name a model file, or a model as 'ortbench models' lists it",
            )
        else:
            yield from self._by_path(spec)

    def _named(
        self, spec: str, name: str, entries: Mapping[str, CatalogueEntry], kind: str
    ) -> Iterator[_Found]:
        if name == "all":
            for entry in entries.values():
                if NAMED_ONLY.intersection(entry.tags):
                    continue
                yield self._from_entry(entry, f"{kind}:{entry.name}")
        elif name in entries:
            yield self._from_entry(entries[name], spec)
        else:
            raise UsageError(
                f"there is no model {spec!r}",
                place=self._place,
                hint=advice_on_shipped(kind, name),
            )

    def _by_path(self, spec: str) -> Iterator[_Found]:
        path = self._root / in_home(spec)
        exists = _exists(path)
        source = source_at(path) if exists else names_function(path)
        if source is not None:
            yield self._from_source(source)
        elif exists and path.is_dir() and not is_onnx_file(path):
            yield from self._in_folder(spec, path)
        elif exists and path.name == GENAI_CONFIG:
            yield from self._in_genai_folder(path.parent)
        elif exists:
            yield self._from_file(path)
        elif spec in self._project:
            entry = self._project[spec]
            yield self._from_entry(entry, "file" if entry.file else f"project:{spec}")
        elif glob.has_magic(spec):
            yield from self._matching(spec, path)
        else:
            raise NoModelError(
                f"{spec!r} is not a file, a folder or a model name",
                spec=spec,
                place=self._place,
                hint=advice_on(spec, path, self._project),
            )

    def _in_genai_folder(self, folder: Path) -> Iterator[_Found]:
        """The decoder, under the name of its folder; where there are other parts, each file."""
        folder = Path(os.path.abspath(folder))  # noqa: PTH100  # resolve() would follow links
        name = self._naming.name_of_folder(folder)
        try:
            config = read_genai_config(folder)
        except ModelError:
            # Read again where what is wrong becomes a row.
            place = folder / GENAI_CONFIG
            yield _Found(
                name=name, path=str(place), read=partial(_read_genai_folder, folder, name=name)
            )
            return
        if len(set(config.files.values())) > 1:
            for file in dict.fromkeys(config.files.values()):
                yield self._from_file(folder / file)
            return
        yield _Found(
            name=name,
            path=os.path.abspath(config.decoder_file),  # noqa: PTH100
            read=partial(_read_genai_folder, folder, name=name),
            place=self._naming.place_of(config.decoder_file),
        )

    def _in_folder(self, spec: str, folder: Path) -> Iterator[_Found]:
        if has_genai_config(folder):
            yield from self._in_genai_folder(folder)
            return
        files = [file for file in sorted(folder.rglob(ONNX_FILES)) if not _hidden(file, folder)]
        if not files:
            message = f"the folder {spec!r} contains no {ONNX} file"
            hint = "Name a model file, or a folder that contains one"
            if any(folder.rglob(f"*{ORT}")):
                hint = f"Name its {ORT} files with a pattern: '{spec.rstrip('/')}/**/*{ORT}'"
            raise NoModelError(message, spec=spec, place=self._place, hint=hint)
        for file in files:
            yield self._from_file(file)

    def _matching(self, spec: str, path: Path) -> Iterator[_Found]:
        matches = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207  # absolute patterns too
        files = [file for file in matches if is_model_file(Path(file))]
        if not files:
            other, hint = advice_on_pattern(spec, path, matches)
            message = f"the pattern {spec!r} matches no model file ({ONNX} or {ORT}){other}"
            raise NoModelError(message, spec=spec, place=self._place, hint=hint)
        for file in files:
            yield self._from_file(Path(file))

    def _from_entry(self, entry: CatalogueEntry, source: str) -> _Found:
        path, place = source, ""
        if entry.file:
            path = os.path.abspath(Path(entry.place).parent / entry.file)  # noqa: PTH100
            place = self._naming.place_of(Path(path))
        return _Found(
            name=entry.name,
            path=path,
            read=partial(_read_entry, entry, source, self._notify),
            place=place,
        )

    def _from_source(self, source: SourceSpec) -> _Found:
        absolute = Path(os.path.abspath(source.path))  # noqa: PTH100  # resolve() would follow links
        source = replace(source, path=absolute)
        name = self._naming.name_of_source(absolute, source.function)
        return _Found(
            name=name,
            path=source.text,
            read=partial(read_source, source, name=name, export=self._export),
        )

    def _from_file(self, path: Path) -> _Found:
        absolute = Path(os.path.abspath(path))  # noqa: PTH100  # resolve() would follow links
        name = self._naming.name_of(absolute)
        reader = read_ort_file if is_ort_file(path) else _read_file
        return _Found(
            name=name,
            path=str(absolute),
            read=partial(reader, absolute, name=name, source="file"),
            place=self._naming.place_of(absolute),
        )


def _read_file(path: Path, *, name: str, source: str) -> Model:
    """Read a file; one that the shipped catalogue knows by its digest is fed as it says."""
    model = read_model(path, name=name, source=source)
    entry = next((e for e in shipped_catalogue().values() if e.sha256 == model.digest), None)
    if entry is None:
        return model
    known = read_model(
        path,
        name=name,
        source=source,
        default_dims=entry.dims,
        axes=entry.axes,
        hints=entry.inputs,
        described_in=f"{entry.place} [{entry.name}]",
    )
    note = f"the file of zoo:{entry.name} (same SHA-256), fed as the catalogue says"
    return replace(known, workloads=entry.workloads, notes=(*known.notes, note))


def _read_genai_folder(folder: Path, *, name: str) -> Model:
    """Read the decoder that a folder's ``genai_config.json`` names, and hold the two together."""
    config = read_genai_config(folder)
    model = _read_file(config.decoder_file, name=name, source="file")
    config.refuse_misnamed(model)
    if model.decoder is not None:
        return model
    told = language_config(config.decoder_file)
    reason = decoder_of(model.inputs, model.outputs, sizes=model.implied_dims, told=told).reason
    note = (
        f"{GENAI_CONFIG} lies beside the model, but the model was not recognised as a language "
        f"model: {reason}"
    )
    return replace(model, notes=(*model.notes, note))


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except (OSError, ValueError):  # too long for the system, or a zero byte: no such file
        return False
    return True


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


#: What builtin networks take for a picture: their weights are drawn so that it gets through.
_BELL = ValueHint(kind="normal", why="mean 0, deviation 1, as its weights are made for")


def _builtin_entries() -> dict[str, CatalogueEntry]:
    return {
        info.name: CatalogueEntry(
            name=info.name,
            place="builtin",
            builder=info.name,
            sha256=info.digest,
            description=info.description,
            tags=info.tags,
            dims=info.default_dims,
            workloads=info.workloads,
            inputs={"image": _BELL} if "vision" in info.tags else {},
        )
        for info in BUILDERS.values()
    }


def _read_entry(entry: CatalogueEntry, source: str, notify: Notify) -> Model:
    file = Path(entry.place).parent / entry.file
    if entry.file and not _exists(file):
        raise ModelError(
            f"the file {entry.file!r} does not exist in the folder of the catalogue",
            place=f"{entry.place} [{entry.name}]",
            hint=f"If the path is wrong, correct 'file' there. If not, put the model at {file}",
        )
    path = fetch_model(entry, cache=cache_folder(), notify=notify)
    if is_ort_file(path):
        return _read_ort_entry(entry, path, source)
    built = BUILDERS[entry.builder].default_dims if entry.builder else {}
    model = read_model(
        path,
        name=entry.name,
        source=source,
        default_dims={**built, **entry.dims},
        axes=entry.axes,
        hints=entry.inputs,
        described_in=f"{entry.place} [{entry.name}]",
    )
    if entry.sha256 and model.digest != entry.sha256:
        if not entry.file:
            raise wrong_digest(entry, model.digest)
        raise ModelError(
            f"the file has SHA-256 {model.digest}, but the catalogue says {entry.sha256}",
            place=str(path),
            hint=f'If you changed it on purpose, write sha256 = "{model.digest}" in {entry.place} '
            f"[{entry.name}]. If not, put the original file at {path}",
        )
    return replace(model, workloads=entry.workloads)


def _read_ort_entry(entry: CatalogueEntry, path: Path, source: str) -> Model:
    """Only a session knows the inputs of such a file, so nothing can be said of them beforehand."""
    keys = [name for name in ("axes", "inputs") if getattr(entry, name)]
    if keys:
        raise ModelError(
            f"the catalogue describes {' and '.join(keys)} of this file, which is not possible for "
            "a file in ONNX Runtime's own format (.ort)",
            place=str(path),
            hint=f"Remove {' and '.join(map(repr, keys))} from {entry.place} [{entry.name}]",
        )
    model = read_ort_file(path, name=entry.name, source=source)
    return replace(model, default_dims=entry.dims, workloads=entry.workloads)


def _read(found: _Found) -> Model | BrokenModel:
    try:
        hidden = namesake_of("onnx", "numpy")
        if hidden:
            raise ModelError(
                f"the file can't be read: {hidden}", place=found.path, hint=HOW_TO_MEND
            )
        return replace(found.read(), place=found.place)
    except ModelError as error:
        broken = error
    except OrtbenchError:
        raise
    except Exception as error:  # noqa: BLE001  # a file can break the rules of ONNX in any place
        broken = ModelError(
            f"the graph can't be read ({says('Python', class_and_line(error))})",
            place=found.path,
            hint=_checking(found.path),
        )
    return BrokenModel(name=found.name, path=found.path, error=broken, place=found.place)


def _checking(path: str) -> str:
    """Return how to see what is wrong with a model, where it is a file of the user's."""
    if not os.path.isfile(path):  # noqa: PTH113 - a name may be too long for a path
        return "Please open an issue in the repository of pytest-ortbench, with this message"
    checking = f"import onnx; onnx.checker.check_model({json.dumps(path)}, full_check=True)"
    return (
        f"Run: {shlex.join(['python', '-c', checking])}. If that tells a fault, correct it where "
        "the model is made. If not, please open an issue in the repository of pytest-ortbench, "
        "with this message"
    )
