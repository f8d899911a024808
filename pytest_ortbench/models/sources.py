"""Sources among model specifications: what a framework exports, and what nothing may load.

Nothing of a source is run or loaded here. Whether a file is pickled is told by its suffix and its
first bytes, and by what members a zip archive has.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ortbench.core.errors import ModelError
from pytest_ortbench.core.home_folder import in_home
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.model_spec import PYTHON, function_file, is_model_file
from pytest_ortbench.core.source import KeptExport, Source
from pytest_ortbench.engines.registry import framework_of_file, marked_folder
from pytest_ortbench.models.graph import read_model

_RUNS_CODE = "and loading it could run any code in it"
_TORCH_SAVE = f"torch.save wrote this file, {_RUNS_CODE}"
_HDF5_FILE = f"this is an HDF5 file, {_RUNS_CODE}"
_PYTHON_PICKLE = f"this is a pickle of Python, {_RUNS_CODE}"
#: Why nothing loads files that run whatever they say, or that hold weights without a model, by
#: suffix.
_PICKLES: dict[str, str] = {
    ".pth": _TORCH_SAVE,
    ".pt": _TORCH_SAVE,
    ".ckpt": f"this is a pickled checkpoint, {_RUNS_CODE}",
    ".pkl": _PYTHON_PICKLE,
    ".pickle": _PYTHON_PICKLE,
    ".joblib": f"this is a pickle of joblib, {_RUNS_CODE}",
    ".h5": _HDF5_FILE,
    ".hdf5": _HDF5_FILE,
    ".safetensors": "this file holds weights without a model",
}
_MAKE_ONNX = "Export the original model to ONNX, and name the ONNX file"
_WITH_FUNCTION = (
    "Write a function that loads the file and returns the model and example rows, and name the "
    "function, e.g. net.py:build"
)
_FROM_ONNX = "Name the ONNX file that this file was made from"
#: Models that nothing here runs or exports, by suffix: what each is, and what to do.
_FOREIGN: dict[str, tuple[str, str]] = {
    ".gguf": ("this is a model of llama.cpp, which can't be measured", _MAKE_ONNX),
    ".ggml": ("this is a model of llama.cpp, which can't be measured", _MAKE_ONNX),
    ".mlmodel": ("this is a model of Core ML, which can't be measured", _MAKE_ONNX),
    ".mlpackage": ("this is a model of Core ML, which can't be measured", _MAKE_ONNX),
    ".mnn": ("this is a model that MNN's converter made, which can't be measured", _FROM_ONNX),
    ".engine": ("this is an engine of TensorRT, which can't be measured", _FROM_ONNX),
    ".plan": ("this is an engine of TensorRT, which can't be measured", _FROM_ONNX),
    ".trt": ("this is an engine of TensorRT, which can't be measured", _FROM_ONNX),
    ".caffemodel": ("this file has weights of Caffe, which can't be measured", _MAKE_ONNX),
    ".ubj": ("this is a booster of XGBoost without example rows", _WITH_FUNCTION),
    ".bst": ("this is a booster without example rows", _WITH_FUNCTION),
    ".cbm": ("this is a model of CatBoost, which can't be measured", _MAKE_ONNX),
    ".pdmodel": (
        "this is a model of PaddlePaddle, which can't be measured",
        "Convert the model with paddle2onnx, and name the ONNX file",
    ),
    ".pb": (
        "this is a graph of TensorFlow that says nothing of its inputs and outputs",
        "Name the folder of a SavedModel, or convert the file: python -m tf2onnx.convert "
        "--graphdef FILE --inputs NAME:0 --outputs NAME:0 --output net.onnx",
    ),
}
#: First bytes of a pickle of protocol 2 and above.
_PICKLE = b"\x80"
_PROTOCOLS = b"\x02\x03\x04\x05"
_HDF5 = b"\x89HDF\r\n"
_ZIP = b"PK\x03\x04"


#: Exports a source: its path and the name of the function; raises ModelError.
Export = Callable[[Path, str], KeptExport]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """A source as it was named.

    Attributes:
        path: The Python file, or the file or folder of a framework.
        function: The function in the Python file; empty for others.
        refusal: Why nothing loads it, and what to do instead; empty where that can be tried.
    """

    path: Path
    function: str = ""
    refusal: str = ""

    @property
    def text(self) -> str:
        """As it is written."""
        return Source(path=str(self.path), function=self.function).text


def names_function(path: Path) -> SourceSpec | None:
    """Return the source that ``FILE.py:FUNCTION`` names; ``None`` where there is no such file.

    Args:
        path: The whole text as a path, which leads to nothing.
    """
    python = Path(function_file(str(path)))
    if not python.is_file():
        return None
    return SourceSpec(path=python, function=str(path).rpartition(":")[2])


def named_source(spec: str, root: Path) -> SourceSpec | None:
    """Return the source that a specification names; ``None`` if it names none.

    Args:
        spec: As written.
        root: Folder that relative paths start at.
    """
    path = Path(os.path.abspath(root / in_home(spec)))  # noqa: PTH100  # follows no link
    return source_at(path) if path.exists() else names_function(path)


def source_at(path: Path) -> SourceSpec | None:
    """Return the source at a path; ``None`` for what is no source.

    Args:
        path: A file or folder that is there.
    """
    is_device_or_pipe = path.exists() and not (path.is_file() or path.is_dir())
    # Whoever opened a named pipe would wait for a writer.
    if is_model_file(path) or is_device_or_pipe:
        return None
    if path.suffix.lower() == PYTHON and path.is_file():
        return SourceSpec(path=path, refusal=_which_function(path))
    reason = pickled_weights(path)
    if reason:
        return SourceSpec(path=path, refusal=recipe(path, reason))
    path = marked_folder(path)
    if framework_of_file(path) is not None:
        return SourceSpec(path=path)
    foreign = _FOREIGN.get(path.suffix.lower())
    return None if foreign is None else SourceSpec(path=path, refusal=". ".join(foreign))


def pickled_weights(path: Path) -> str:
    """Return why nothing may load a file as it is; empty for any other one."""
    suffix = path.suffix.lower()
    try:
        with path.open("rb") as stream:
            head = stream.read(8)
    except OSError:
        return ""
    if head.startswith(_ZIP):
        members = _members(path)
        if any(name.endswith("/data.pkl") or name == "data.pkl" for name in members):
            is_program = any("/code/" in f"/{name}" for name in members)
            return "" if is_program else _PICKLES[".pth"]
    elif head[:1] == _PICKLE and head[1:2] in [bytes([number]) for number in _PROTOCOLS]:
        return _PICKLES.get(suffix, _PICKLES[".pkl"])
    elif head.startswith(_HDF5):
        return _PICKLES[".h5"]
    return "" if suffix in (".pt", ".h5") else _PICKLES.get(suffix, "")


def _members(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return []


def recipe(path: Path, reason: str) -> str:
    """Say why a file is not loaded, and how its model is measured."""
    return (
        f"{reason}. Write a function that builds the model, loads {path.name} and returns (model, "
        "example inputs), and name the function, e.g. --ort-models=net.py:build"
    )


def _which_function(path: Path) -> str:
    return (
        "this is a Python file, not a model. Name the function in it that returns the model and "
        f"example inputs, e.g. {path.name}:build"
    )


def read_source(source: SourceSpec, *, name: str, export: Export | None) -> Model:
    """Export a source, and read the ONNX file under the name of the source.

    Args:
        source: The source, by an absolute path.
        name: What the model is called.
        export: Exports it; ``None`` where that can't be done.

    Raises:
        ModelError: if it can't be exported, or must not be loaded.
    """
    if source.refusal:
        raise ModelError(source.refusal, place=source.path.name)
    if export is None:
        raise ModelError(
            "this is code that makes a model, not an ONNX file",
            place=source.text,
            hint=f"Export the model first: 'ortbench convert {source.text} --output=net.onnx'. "
            "Then name net.onnx",
        )
    kept = export(source.path, source.function)
    model = read_model(kept.path, name=name, source=f"export:{name}")
    return replace(model, exported_from=kept.source, notes=(*model.notes, *kept.notes))
