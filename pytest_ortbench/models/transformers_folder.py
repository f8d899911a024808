"""Folders of transformers: which one an ONNX decoder was exported from, and whether it is loaded.

Nothing of it is loaded here. Weights count only as safetensors: other files are pickles.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path, PurePath

from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.model_spec import (
    CONFIG,
    GENAI_CONFIG,
    MAIN_ONNX,
    ONNX_FILES,
    ONNX_FOLDER,
)
from pytest_ortbench.core.source import Source
from pytest_ortbench.models.files_beside import folders_beside, object_in

#: The library, and the framework that it loads models for.
LIBRARY, FRAMEWORK = "transformers", "torch"
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")
#: Small files that a tokenizer and a configuration consist of.
_SUFFIXES = (".json", ".jinja", ".txt", ".model")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformersFolder:
    """A folder that a model of transformers was saved into.

    Attributes:
        path: The folder.
        files: What is read of it.
        refusal: Why its model is not loaded; empty if it can be tried.
        remedy: What to do then, where that is not to name another folder.
    """

    path: Path
    files: tuple[Path, ...] = ()
    refusal: str = ""
    remedy: str = ""

    def source(self) -> Source:
        """Return it as what a model was exported from.

        Raises:
            OSError: if a file can't be read.
        """
        contents = [(file.name, file_digest(file)) for file in self.files]
        digest = hashlib.sha256(json.dumps(contents).encode("utf-8", "backslashreplace"))
        return Source(
            path=str(self.path),
            digest=digest.hexdigest(),
            framework=FRAMEWORK,
            files=tuple(map(str, self.files)),
            library=LIBRARY,
        )


def folder_at(path: Path) -> TransformersFolder:
    """Return the folder at a path, with the reason if its model is not loaded.

    Args:
        path: A folder, or anything else.
    """
    if not path.is_dir():
        what = "this is a file, not a folder" if path.exists() else "the folder does not exist"
        return TransformersFolder(path=path, refusal=what)
    config = object_in(path / CONFIG)
    names = config.get("architectures")
    if not isinstance(names, list) or not names:
        return TransformersFolder(
            path=path, refusal=f"the folder has no {CONFIG} that names the architecture of a model"
        )
    if config.get("is_encoder_decoder") is True:
        return TransformersFolder(
            path=path,
            refusal=f"{names[0]} has an encoder, and pytest-ortbench runs such a model only as "
            "ONNX files",
            remedy="Measure the ONNX files without --ort-source, on a provider of ONNX Runtime, "
            "e.g. --ort-providers=cpu",
        )
    weights, reason = _weights(path)
    if reason and _is_pickled(path):
        again = (
            "In Python, save the model as safetensors: "
            f"model.save_pretrained({str(path)!r}, safe_serialization=True)"
        )
        return TransformersFolder(path=path, refusal=reason, remedy=again)
    if reason:
        return TransformersFolder(
            path=path,
            refusal=reason,
            remedy="Fetch the missing file, e.g. by repeating the download" if weights else "",
        )
    beside = sorted(
        file
        for file in path.iterdir()
        if file.suffix in _SUFFIXES and file.name != GENAI_CONFIG and file.is_file()
    )
    return TransformersFolder(path=path, files=(*beside, *weights))


def folder_beside(model: Path) -> TransformersFolder | None:
    """Return the folder of transformers that an ONNX file lies in, or in ``onnx`` below.

    Args:
        model: The ONNX file.

    Returns:
        ``None`` where no folder beside it has weights, whether they are loaded or not.
    """
    for path in folders_beside(model):
        if any((path / name).is_file() for name in (_WEIGHTS, _INDEX, *_PICKLED)):
            return folder_at(path)
    return None


def is_saved_model(path: Path) -> bool:
    """Return whether a folder is one that a model of transformers was saved into.

    Args:
        path: Anything.
    """
    config = object_in(path / CONFIG)
    return isinstance(config.get("model_type"), str) or bool(config.get("architectures"))


def exported_in(path: Path) -> Path | None:
    """Return what stands for the ONNX model of a folder of transformers, in it or in ``onnx``.

    Args:
        path: The folder.

    Returns:
        The file, or the configuration of onnxruntime-genai beside it; ``None`` where there is no
        file, and where several are and none is called ``model.onnx``.
    """
    for folder in (path / ONNX_FOLDER, path):
        if (folder / GENAI_CONFIG).is_file():
            return folder / GENAI_CONFIG
        files = sorted(folder.glob(ONNX_FILES))
        if files:
            named = [file for file in files if file.name == MAIN_ONNX] or files
            return named[0] if len(named) == 1 else None
    return None


def _weights(path: Path) -> tuple[tuple[Path, ...], str]:
    """Return the files of weights, or why there are none."""
    if (path / _WEIGHTS).is_file():
        return (path / _WEIGHTS,), ""
    if (path / _INDEX).is_file():
        told = object_in(path / _INDEX).get("weight_map")
        names = sorted(set(map(str, told.values()))) if isinstance(told, dict) else []
        if not names or any(PurePath(name).name != name for name in names):
            return (), f"{_INDEX} does not name files of the folder"
        missing = [name for name in names if not (path / name).is_file()]
        return tuple(path / name for name in names), (
            f"{_INDEX} names {missing[0]}, which does not exist" if missing else ""
        )
    if _is_pickled(path):
        return (), f"its weights are a pickle ({_PICKLED[0]})"
    return (), f"it has no weights ({_WEIGHTS})"


def _is_pickled(path: Path) -> bool:
    has_others = any((path / name).is_file() for name in (_WEIGHTS, _INDEX))
    return not has_others and any((path / name).is_file() for name in _PICKLED)
