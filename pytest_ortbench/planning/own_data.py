"""A user's own files as inputs, calibration and labels: photos, WAV files, lines of text.

They are read once for each model and size, and kept in the user's cache as arrays under a digest of
everything that decides them. What follows (feeding, calibrating, scoring) reads arrays only.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import InputSpec, PreparationStep
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.model import Model
from pytest_ortbench.models.cache import cache_folder
from pytest_ortbench.planning import audio_data, image_data, text_data
from pytest_ortbench.planning.audio_data import AudioReader, audio_input
from pytest_ortbench.planning.image_data import ImageReader, image_input
from pytest_ortbench.planning.label_file import PLACE as LABELS_PLACE
from pytest_ortbench.planning.label_file import class_numbers, read_column, read_labels
from pytest_ortbench.planning.preparation import Settings, settings_of
from pytest_ortbench.planning.real_inputs import ABOUT
from pytest_ortbench.planning.text_data import TextReader, token_inputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLACE = "--ort-inputs"
DATA_FOLDER = "own-data"
#: Examples that calibrate at most.
_CALIBRATING = 64
#: Bytes of all arrays of one model at most: they lie in the cache.
_MOST_BYTES = 16 * 2**30
_KINDS = {
    "images": image_data.SUFFIXES,
    "audio": audio_data.SUFFIXES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnData:
    """Files of the user's, and what they are.

    Attributes:
        path: The folder, or the text file.
        kind: ``images``, ``audio`` or ``text``.
        labels: File of their labels; ``None`` without.
        settings: What was set with ``--ort-preprocess``.
    """

    path: Path
    kind: str
    labels: Path | None = None
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What became of own data for one model at one set of sizes.

    Attributes:
        inputs: Archive of the first examples, as many as the batch.
        calibration: Folder of archives, one an input set.
        labelled: Archive of all labelled examples with their labels; ``None`` without labels.
        steps: How values came about.
    """

    inputs: Path
    calibration: Path
    labelled: Path | None
    steps: tuple[PreparationStep, ...]


def kind_of(path: Path) -> str:
    """Return what own data a path is: a key of kinds, empty for stored arrays and anything else."""
    if path.is_file():
        return "text" if path.suffix.lower() in text_data.SUFFIXES else ""
    if not path.is_dir():
        return ""
    suffixes = {file.suffix.lower() for file in _files(path)}
    if suffixes & {".npz", ".npy", ".pb"}:
        return ""
    return next((kind for kind, known in _KINDS.items() if suffixes & set(known)), "")


def own_data(path: Path | None, labels: Path | None, settings: Mapping[str, str]) -> OwnData | None:
    """Return the user's own files that a path stands for; ``None`` where it holds stored arrays.

    Raises:
        UsageError: for labels and settings without files that they are about.
    """
    kind = "" if path is None else kind_of(path)
    if path is not None and kind:
        return OwnData(path=path, kind=kind, labels=labels, settings=dict(settings))
    if labels is not None:
        raise UsageError(
            f"{str(labels)!r} labels files, and "
            + ("none are named" if path is None else f"{str(path)!r} holds none that it could"),
            place=LABELS_PLACE,
            hint="Name a folder of JPEG, PNG or WAV files, or a text file: --ort-inputs=photos/",
        )
    if settings:
        raise UsageError(
            "it says how photos, sounds and texts are read, and none are named",
            place="--ort-preprocess",
            hint="Name a folder of them: --ort-inputs=photos/",
        )
    return None


def prepare(data: OwnData, model: Model, specs: Sequence[InputSpec], batch: int) -> Prepared:
    """Read own data as a model takes it, or find what was read before.

    Args:
        data: The files.
        model: The model.
        specs: Its inputs as they would be drawn.
        batch: Examples of one inference.

    Raises:
        UsageError: for what can't be read or does not fit, with one clear message.
    """
    settings = settings_of(model.path, data.settings)
    examples = _examples(data)
    reader = _Reader(data, model, specs, settings, examples)
    names = [name for name, _ in examples]
    labels = _labels(data, names, model, settings)
    steps = (
        PreparationStep(name=data.kind, value=f"{len(examples)} in {data.path.name}", origin=PLACE),
        *settings.steps.values(),
        *(
            [
                PreparationStep(
                    name="labels",
                    value=f"{len(labels)} in {data.labels.name}",
                    origin=LABELS_PLACE,
                )
            ]
            if data.labels is not None and labels is not None
            else []
        ),
    )
    decides = {
        "files": [(name, _digest(content)) for name, content in examples],
        "steps": [asdict(step) for step in steps],
        "inputs": [(spec.name, spec.type, spec.shape) for spec in specs],
        "labels": labels,
        "batch": batch,
    }
    key = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:24]
    folder = cache_folder() / DATA_FOLDER / key
    name = f"{data.path.stem or 'data'}.npz"
    if not folder.is_dir():
        _write(folder, name, reader, examples, labels, steps, batch)
    return Prepared(
        inputs=folder / name,
        calibration=folder / "calibration",
        labelled=folder / "labelled" / name if labels is not None else None,
        steps=steps,
    )


def _files(folder: Path) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in found if not path.name.startswith("."))


def _examples(data: OwnData) -> list[tuple[str, Path | str]]:
    """Name and content of every example, in the order of their names or lines."""
    if data.kind == "text":
        try:
            lines = data.path.read_text("utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{str(data.path)!r} can't be read ({error})", place=PLACE) from None
        found: list[tuple[str, Path | str]] = [
            (str(number), line) for number, line in enumerate(lines, 1) if line.strip()
        ]
        if not found:
            raise UsageError(
                f"{str(data.path)!r} holds no line", place=PLACE, hint="Write one example a line"
            )
        return found
    return [
        (path.relative_to(data.path).as_posix(), path)
        for path in _files(data.path)
        if path.suffix.lower() in _KINDS[data.kind]
    ]


def _digest(content: Path | str) -> str:
    if isinstance(content, Path):
        return file_digest(content)
    return hashlib.sha256(content.encode()).hexdigest()


def _labels(
    data: OwnData, names: Sequence[str], model: Model, settings: Settings
) -> dict[str, int | str] | None:
    """The label of each labelled example, as the model's output has it."""
    if data.labels is None:
        return None
    if data.kind == "text":
        written = dict(zip(names, read_column(data.labels, len(names)), strict=True))
    else:
        written = read_labels(data.labels, names)
    if any("string" in info.type for info in model.outputs):
        return dict(written)
    beside = (data.labels.parent, data.path if data.path.is_dir() else data.path.parent)
    numbers = class_numbers(
        list(written.values()),
        model=Path(model.path),
        beside=beside,
        metadata=settings.metadata,
    )
    return dict(zip(written, numbers, strict=True))


class _Reader:
    """Reads examples of any kind as arrays by the name of the input."""

    def __init__(
        self,
        data: OwnData,
        model: Model,
        specs: Sequence[InputSpec],
        settings: Settings,
        examples: Sequence[tuple[str, Path | str]],
    ) -> None:
        self._tokens: TextReader | None = None
        self._files: ImageReader | AudioReader | None = None
        self._name = ""
        self._shared: dict[str, int] = {}
        self.has_batch: dict[str, bool] = {}
        if data.kind == "text":
            taken = token_inputs(specs)
            if not taken:
                raise _no_input(data, model)
            chosen = [spec for spec in specs if spec.name in taken]
            self._tokens = TextReader(chosen, settings, Path(model.path))
            self.has_batch = {spec.name: len(spec.shape) > 1 for spec in chosen}
            return
        spec = image_input(specs) if data.kind == "images" else audio_input(specs)
        if spec is None:
            raise _no_input(data, model)
        self._name = spec.name
        if data.kind == "images":
            self._files = ImageReader(spec, settings)
            self.has_batch = {spec.name: len(spec.shape) == 4}
            return
        paths = [content for _, content in examples if isinstance(content, Path)]
        audio = AudioReader(spec, settings, paths)
        self._files = audio
        self.has_batch = {spec.name: len(spec.shape) > 1}
        self._shared = {other.name: audio.rate for other in specs if audio.is_rate(other)}
        self.shared_types = {other.name: other for other in specs}

    def read(self, content: Path | str) -> dict[str, NDArray[Any]]:
        if isinstance(content, str):
            assert self._tokens is not None
            return self._tokens.read(content)
        assert self._files is not None
        return {self._name: self._files.read(content)}

    def shared(self) -> dict[str, NDArray[Any]]:
        """Values that are the same for every example: the rate of audio."""
        import numpy as np

        made = {}
        for name, value in self._shared.items():
            spec = self.shared_types[name]
            kind = "int32" if "int32" in spec.type else "int64"
            made[name] = np.full(spec.shape, value, dtype=kind)
        return made


def _no_input(data: OwnData, model: Model) -> UsageError:
    inputs = ", ".join(f"{info.name} {info.type} {list(info.shape or ())}" for info in model.inputs)
    wants = {
        "images": "three or four axes, one of which counts 1 or 3 channels",
        "audio": "floats with one long axis",
        "text": "integers named input_ids",
    }[data.kind]
    return UsageError(
        f"no input of model {model.name!r} takes {data.kind} ({wants}); its inputs: {inputs}",
        place=PLACE,
        hint="Give arrays in an .npz file, or write an entry point: --ort-dataset=FILE.py:FUNCTION",
    )


def _write(
    folder: Path,
    name: str,
    reader: _Reader,
    examples: Sequence[tuple[str, Path | str]],
    labels: Mapping[str, int | str] | None,
    steps: Sequence[PreparationStep],
    batch: int,
) -> None:
    """Write all archives into a folder that is there whole, or not at all."""
    import numpy as np

    folder.parent.mkdir(parents=True, exist_ok=True)
    about = json.dumps([asdict(step) for step in steps], sort_keys=True)
    wanted = max(batch, min(len(examples), _CALIBRATING))
    arrays = [reader.read(content) for _, content in examples[:wanted]]
    total = sum(array.nbytes for array in arrays[0].values()) * len(labels or ())
    if total > _MOST_BYTES:
        raise UsageError(
            f"the labelled examples would take {total / 2**30:.1f} GiB as arrays, and the most are "
            f"{_MOST_BYTES / 2**30:.0f} GiB",
            place=LABELS_PLACE,
            hint="Label fewer of them; a thousand tell 99 % of the metric",
        )
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="making-") as made:
        place = Path(made) / "data"
        (place / "calibration").mkdir(parents=True)
        for number, rows in enumerate(_batches(arrays, batch)):
            together = _together(rows, reader)
            if not number:
                _archive(place / name, together, about)
            _archive(place / "calibration" / f"{number:04}.npz", together, about)
        if labels is not None:
            (place / "labelled").mkdir()
            chosen = [content for known, content in examples if known in labels]
            scored: dict[str, NDArray[Any]] = {}
            for index, content in enumerate(chosen):
                for input_name, array in reader.read(content).items():
                    every = scored.setdefault(
                        input_name, np.empty((len(chosen), *array.shape), array.dtype)
                    )
                    every[index] = array
            values = np.asarray(list(labels.values()))
            _archive(place / "labelled" / name, {**scored, "labels": values}, about)
        try:
            place.replace(folder)
        except OSError:
            if not folder.is_dir():
                raise
            shutil.rmtree(place, ignore_errors=True)  # another run has made the same


def _batches(
    arrays: Sequence[dict[str, NDArray[Any]]], batch: int
) -> Iterator[list[dict[str, NDArray[Any]]]]:
    """Examples in batches; of fewer than one batch they are taken again from the first."""
    count = max(1, len(arrays) // batch)
    for number in range(count):
        yield [arrays[(number * batch + row) % len(arrays)] for row in range(batch)]


def _together(rows: Sequence[dict[str, NDArray[Any]]], reader: _Reader) -> dict[str, NDArray[Any]]:
    import numpy as np

    values = {
        name: np.stack([row[name] for row in rows]) if reader.has_batch[name] else rows[0][name]
        for name in rows[0]
    }
    return {**values, **reader.shared()}


def _archive(path: Path, arrays: Mapping[str, NDArray[Any]], about: str) -> None:
    import zipfile

    import numpy as np

    with path.open("wb") as stream:
        np.savez(stream, **dict(arrays))  # type: ignore[arg-type]  # names are free
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(zipfile.ZipInfo(ABOUT), about)
