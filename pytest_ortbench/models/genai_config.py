"""``genai_config.json``: what onnxruntime-genai's builder writes beside a model, and what it names.

The same file in another folder, or another file in the same folder, is not what it speaks of.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import (
    ModelError,
    did_you_mean,
    nearest,
    why_no_json,
    why_unreadable,
)
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.model_spec import GENAI_CONFIG

#: A configuration is a page of text.
_MOST_BYTES = 4 * 2**20
#: Files of a folder that a message names.
_MOST_NAMED = 8
#: No decoder has as many layers.
_MOST_LAYERS = 1_000
#: Templates of inputs of a cache, each with that of the outputs that go on with them, and what
#: the library takes where a configuration has none.
_TEMPLATES = (
    ("past_key_names", "present_key_names", "present.%d.key"),
    ("past_value_names", "present_value_names", "present.%d.value"),
    ("past_names", "present_names", ""),
)
_AS_TEMPLATE = "Write it as {key}, with %d in place of the number of the layer"
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
        return tuple(pair for _, _, rows in self._cache_by_kind() for pair in rows)

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
        told: list[tuple[str, str, str, str, set[str]]] = []
        for kind, key, known in (("input", "input_ids", inputs), ("output", "logits", outputs)):
            name = self.name_of(key)
            told.append((kind, key, name, name, known))
        for keys, templates, rows in self._cache_by_kind():
            for index, kind, known in ((0, "input", inputs), (1, "output", outputs)):
                if rows and not any(row[index] in known for row in rows):
                    told.append((kind, keys[index], templates[index], rows[0][index], known))
        for kind, key, written, name, known in told:
            if not name or name in known:
                continue
            section = self.decoder.get(f"{kind}s")
            is_usual = not isinstance(section, dict) or key not in section
            file = self.files["decoder"]
            misnamed = {key: written} if written != name else {}
            if misnamed and is_usual:
                misnamed |= {
                    other: template
                    for of, other, template, first, _ in told
                    if of == kind
                    and template != first not in known
                    and other not in (section or {})
                }
            entries = _entries(misnamed, known)
            raise ModelError(
                f"model.decoder.{kind}s has no {key!r}, and {file} has no {kind} of the usual name "
                f"{name!r}"
                if is_usual
                else f"model.decoder.{kind}s.{key} is {written!r}, but {file} has no {kind} "
                f"{name!r}",
                place=str(self.folder / GENAI_CONFIG),
                hint=f"Write {entries} into model.decoder.{kind}s"
                if entries
                else did_you_mean(name, known, _AS_TEMPLATE.format(key=key) if misnamed else ""),
            )

    def _cache_by_kind(
        self,
    ) -> list[tuple[tuple[str, str], tuple[str, str], list[tuple[str, str]]]]:
        """Return keys of each kind of cache, its two templates, and its names by layers."""
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
                kinds.append(((past, present), (str(templates[0]), str(templates[1]))))
        return [
            (
                keys,
                (inside, outside),
                [
                    (inside.replace("%d", str(n)), outside.replace("%d", str(n)))
                    for n in range(layers)
                ],
            )
            for keys, (inside, outside) in kinds
        ]


def _entries(templates: Mapping[str, str], known: Collection[str]) -> str:
    """Return the entries of a section that name the nearest of known names, for each layer.

    Args:
        templates: By their keys, with %d for the layer.
        known: Names of inputs or outputs.

    Returns:
        Empty where one has nothing near.
    """
    written = []
    for key, template in templates.items():
        near = nearest(template.replace("%d", "0"), known)
        before, digit, after = near.partition("0")
        if not digit or "0" in after:
            return ""
        written.append(f'"{key}": "{before}%d{after}"')
    return ", ".join(written)


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
    model = _section(content, "model", place, "the file")
    decoder = _section(model, "decoder", place, "the section 'model'")
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
            else f"model.decoder.filename is {'empty' if 'decoder' in files else 'missing'}, so no "
            "model file is named",
            place=str(place),
            hint=f"Measure its files one by one, e.g. {_command(folder)}"
            if pipeline
            else _missing_filename(folder),
        )
    for part, name in files.items():
        if name and not _is_file(folder / name):
            raise ModelError(
                f"model.{part}.filename is {name!r}, but this folder has no such file",
                place=str(place),
                hint=_missing_file(name, folder),
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
        hint=f'Write the name of a file in quotes, e.g. "filename": "{_first(folder)}"',
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for the system, or a zero byte
        return False


def _beside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.onnx"))


def _missing_file(name: str, folder: Path) -> str:
    names = _beside(folder)
    near = nearest(name, names)
    if near:
        return f"Did you mean {near!r}?"
    there = f". This folder has {', '.join(names[:_MOST_NAMED])}" if names else ""
    return f"If the name is right, put the file into {folder}. If not, correct the name{there}"


def _missing_filename(folder: Path) -> str:
    names = _beside(folder)
    if not names:
        return (
            f"Copy the .onnx file of the decoder into {folder}, and write its name into the "
            f'section model.decoder, e.g. "filename": "{_first(folder)}"'
        )
    if len(names) < 2:
        return f'Write "filename": "{_first(folder)}" into the section model.decoder'
    return (
        f'Write the file of the decoder into the section model.decoder, e.g. "filename": '
        f'"{names[0]}". This folder has {", ".join(names[:_MOST_NAMED])}'
    )


def _first(folder: Path) -> str:
    """Return the name of a model file in a folder, or one for an example."""
    return min(_beside(folder), default="model.onnx")


def _command(folder: Path) -> str:
    """Return the command that measures a model file in a folder."""
    return f"'pytest {folder / _first(folder)}'"


def _without(place: Path) -> str:
    """Return, behind another step, how to measure a file although its configuration is damaged."""
    if not _beside(place.parent):
        return ""
    return (
        f". To measure a model file without {GENAI_CONFIG}, name the file, e.g. "
        f"{_command(place.parent)}"
    )


def _copy_again(place: Path) -> str:
    what = "file" if _beside(place.parent) else "whole folder"
    return f"Copy the {what} again from where the model came from{_without(place)}"


def _read(place: Path) -> tuple[Mapping[str, Any], bool]:
    """Return what the file holds, and whether it begins with a byte order mark."""
    try:
        size = place.stat().st_size
        if size > _MOST_BYTES:
            raise ModelError(
                f"the file has {size / 2**20:.1f} MiB, but a configuration may have at most "
                f"{_MOST_BYTES >> 20} MiB",
                place=str(place),
                hint=_copy_again(place),
            )
        data = place.read_bytes()
        value = json.loads(data.decode("utf-8-sig"))
    except OSError as error:
        why, step = why_unreadable(error)
        raise ModelError(f"the file {why}", place=str(place), hint=step) from None
    except UnicodeDecodeError:
        raise ModelError(
            "the file is not written in UTF-8", place=str(place), hint="Save the file as UTF-8"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"the file {why_no_json(error)}",
            place=str(place),
            hint=f"Correct the file{_without(place)}",
        ) from None
    if not isinstance(value, dict):
        raise ModelError(
            "the file contains JSON, but not an object ({…})",
            place=str(place),
            hint=_copy_again(place),
        )
    return value, data.startswith(codecs.BOM_UTF8)


def _section(value: Mapping[str, Any], name: str, place: Path, where: str) -> Mapping[str, Any]:
    section = value.get(name)
    if not isinstance(section, dict):
        raise ModelError(
            f"{name!r} in {where} is {json.dumps(value[name])[:40]}, not a section ({{…}})"
            if name in value
            else f"{where} has no section {name!r}",
            place=str(place),
            hint=f"Measure its files one by one, e.g. {_command(place.parent)}"
            if name == "decoder" and name not in value and _beside(place.parent)
            else "Write the file again with the model builder of onnxruntime-genai "
            f"(python -m onnxruntime_genai.models.builder){_without(place)}",
        )
    return section
