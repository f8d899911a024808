"""``genai_config.json``: what onnxruntime-genai's builder writes beside a model, and what it names.

The same file in another folder, or another file in the same folder, is not what it speaks of.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import ModelError, why_no_json
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.model_spec import GENAI_CONFIG

#: A configuration is a page of text.
_MOST_BYTES = 4 * 2**20
_COPY_AGAIN = "Copy the file again from where the model came from"
#: No decoder has as many layers.
_MOST_LAYERS = 1_000
#: Templates of inputs of a cache, each with that of the outputs that go on with them, and what
#: the library takes where a configuration has none.
_TEMPLATES = (
    ("past_key_names", "present_key_names", "present.%d.key"),
    ("past_value_names", "present_value_names", "present.%d.value"),
    ("past_names", "present_names", ""),
)
#: Names of all of them.
CACHE_TEMPLATES = frozenset(name for names in _TEMPLATES for name in names[:2])


@dataclass(frozen=True, slots=True, kw_only=True)
class GenaiConfig:
    """What a ``genai_config.json`` says of the files that lie beside it.

    Attributes:
        folder: Where it lies.
        files: Names of model files, by the part of the model that each is.
        model: Its section ``model``.
        decoder: Therein the section ``decoder``.
        search: Its section ``search``, whatever it holds.
        has_byte_order_mark: Whether the file begins with one.
    """

    folder: Path
    files: dict[str, str]
    model: Mapping[str, Any] = field(default_factory=dict)
    decoder: Mapping[str, Any] = field(default_factory=dict)
    search: object = None
    has_byte_order_mark: bool = False

    @property
    def decoder_file(self) -> Path:
        """The file that writes text."""
        return self.folder / self.files["decoder"]

    def name_of(self, what: str) -> str:
        """Return how it calls an input or an output of the decoder; empty where it does not say.

        Args:
            what: ``input_ids``, ``attention_mask``, ``position_ids`` or ``logits``.
        """
        section = self.decoder.get("outputs" if what == "logits" else "inputs")
        name = section.get(what) if isinstance(section, dict) else None
        return name if isinstance(name, str) else ""

    @property
    def cache_names(self) -> tuple[tuple[str, str], ...]:
        """Names of inputs and outputs of the cache, written out layer by layer."""
        return tuple(pair for rows in self._cache_by_kind() for pair in rows)

    def refuse_misnamed(self, model: Model) -> None:
        """Refuse names of inputs and outputs that the decoder does not have.

        Some layers may have no cache; a kind of which none has one is misnamed.

        Args:
            model: The decoder as it was read.

        Raises:
            ModelError: for the first of them.
        """
        inputs = {info.name for info in model.inputs}
        outputs = {info.name for info in model.outputs}
        named = [("input", self.name_of("input_ids"), inputs)]
        named.append(("output", self.name_of("logits"), outputs))
        for rows in self._cache_by_kind():
            for index, kind, known in ((0, "input", inputs), (1, "output", outputs)):
                if rows and not any(row[index] in known for row in rows):
                    named.append((kind, rows[0][index], known))
        for kind, name, known in named:
            if name and name not in known:
                raise ModelError(
                    f"model.decoder.{kind}s gives {name!r} as the name of an {kind}, but "
                    f"{self.files['decoder']} has no such {kind}",
                    place=str(self.folder / GENAI_CONFIG),
                    hint=f"Write the name of an {kind} of that model: {', '.join(sorted(known))}",
                )

    def _cache_by_kind(self) -> list[list[tuple[str, str]]]:
        before, after = self.decoder.get("inputs"), self.decoder.get("outputs")
        layers = self.decoder.get("num_hidden_layers")
        if not isinstance(before, dict) or not isinstance(after, dict):
            return []
        if not isinstance(layers, int) or not 0 < layers <= _MOST_LAYERS:
            return []
        kinds = []
        for past, present, usual in _TEMPLATES:
            templates = before.get(past), after.get(present, usual)
            if all(isinstance(text, str) and text.count("%d") == 1 for text in templates):
                kinds.append([str(text) for text in templates])
        return [
            [(past.replace("%d", str(n)), present.replace("%d", str(n))) for n in range(layers)]
            for past, present in kinds
        ]


def has_genai_config(folder: Path) -> bool:
    """Return whether a folder holds a model of onnxruntime-genai."""
    return (folder / GENAI_CONFIG).is_file()


def read_genai_config(folder: Path) -> GenaiConfig:
    """Read the configuration in a folder, and compare it with the files that are there.

    Raises:
        ModelError: if it can't be read, is no JSON, lacks what names the model, or names a file
            that is not there.
    """
    place = folder / GENAI_CONFIG
    content, has_mark = _read(place)
    model = _section(content, "model", place, GENAI_CONFIG)
    decoder = _section(model, "decoder", place, "its section 'model'")
    files = {
        part: _filename(section["filename"], part, folder)
        for part, section in model.items()
        if isinstance(section, dict) and section.get("filename") is not None
    }
    if not files.get("decoder"):
        pipeline = isinstance(decoder.get("pipeline"), list)
        raise ModelError(
            "the decoder is a pipeline of several files, which can't be measured as one model"
            if pipeline
            else "model.decoder.filename is missing, so no model file is named",
            place=str(place),
            hint=f"Measure its files one by one, e.g. {_command(folder)}"
            if pipeline
            else f'Write "filename": "{_first(folder)}" into the section model.decoder',
        )
    for part, name in files.items():
        if name and not _is_file(folder / name):
            raise ModelError(
                f"model.{part}.filename is {name!r}, but this folder has no such file",
                place=str(place),
                hint=_beside(folder) or f"Put {name} into {folder}, or correct the name",
            )
    return GenaiConfig(
        folder=folder,
        files=files,
        model=model,
        decoder=decoder,
        search=content.get("search"),
        has_byte_order_mark=has_mark,
    )


def _filename(value: object, part: str, folder: Path) -> str:
    """Return the name of a file.

    Raises:
        ModelError: if it is no text.
    """
    if isinstance(value, str):
        return value
    raise ModelError(
        f"model.{part}.filename is {json.dumps(value)[:40]}, not the name of a file",
        place=str(folder / GENAI_CONFIG),
        hint=f'Write text, e.g. "filename": "{_first(folder)}"',
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for the system, or a zero byte
        return False


def _beside(folder: Path) -> str:
    names = sorted(path.name for path in folder.glob("*.onnx"))
    return f"Write the name of a file that is there: {', '.join(names)}" if names else ""


def _first(folder: Path) -> str:
    """Return the name of a model file in a folder, or one for an example."""
    return min((path.name for path in folder.glob("*.onnx")), default="model.onnx")


def _command(folder: Path) -> str:
    """Return the command that measures a model file in a folder."""
    return f"'pytest {folder / _first(folder)}'"


def _without(place: Path) -> str:
    """Return how to measure a file although its configuration is damaged."""
    return f"To measure without it, name a model file, e.g. {_command(place.parent)}"


def _read(place: Path) -> tuple[Mapping[str, Any], bool]:
    """Return what the file holds, and whether it begins with a byte order mark."""
    try:
        if place.stat().st_size > _MOST_BYTES:
            raise ModelError(
                f"the file is larger than {_MOST_BYTES >> 20} MiB, the most that a configuration "
                "may have",
                place=str(place),
                hint=f"{_COPY_AGAIN}. {_without(place)}",
            )
        data = place.read_bytes()
        value = json.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise ModelError(
            f"the file can't be read ({error.strerror})",
            place=str(place),
            hint="Make the file readable",
        ) from None
    except UnicodeDecodeError:
        raise ModelError(
            "the file is not written in UTF-8", place=str(place), hint="Save the file as UTF-8"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"the file {why_no_json(error)}",
            place=str(place),
            hint=f"Correct the file. {_without(place)}",
        ) from None
    if not isinstance(value, dict):
        raise ModelError(
            "the file does not contain a JSON object ({…})",
            place=str(place),
            hint=f"{_COPY_AGAIN}. {_without(place)}",
        )
    return value, data.startswith(codecs.BOM_UTF8)


def _section(value: Mapping[str, Any], name: str, place: Path, where: str) -> Mapping[str, Any]:
    section = value.get(name)
    if not isinstance(section, dict):
        raise ModelError(
            f"{where} has no section {name!r}",
            place=str(place),
            hint=f"Write the file again with onnxruntime-genai's model builder. {_without(place)}",
        )
    return section
