"""A callable can't be exported: the ONNX file that does the same is named by its entry function."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from pytest_ortbench.engines.entry import LoadedSource, Made
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.worker.user_code import class_of

_SHAPE = (
    "Return a model of a framework, e.g. a torch.nn.Module. If you have the ONNX file of the "
    "model already, return three values: a callable that computes the same, a dictionary of "
    "example inputs and the file, e.g. return compute, {'x': array}, {'onnx': 'net.onnx'}"
)


def export_callable(loaded: LoadedSource, path: Path, _settings: Mapping[str, str]) -> Made:
    """Copy the named file, or write its bytes.

    Raises:
        EngineRefusal: if the function returned something else, or the file is not there.
    """
    if not callable(loaded.model):
        raise EngineRefusal(
            f"the function returned a value of type {class_of(loaded.model)}, which is neither a "
            "model of a known framework nor a callable",
            kind="error",
            hint=_SHAPE,
        )
    onnx = loaded.settings.get("onnx")
    read: tuple[Path, ...] = ()
    if onnx is None:
        raise EngineRefusal(
            f"the function returned a callable of type {type(loaded.model).__qualname__}, which "
            "can't be exported to ONNX",
            kind="error",
            hint=_SHAPE,
        )
    if isinstance(onnx, bytes):
        path.write_bytes(onnx)
    else:
        named = (loaded.path.parent / Path(onnx)).absolute()
        if not named.is_file():
            raise EngineRefusal(
                f"the function names the ONNX file {str(onnx)!r}, but there is no file {named}",
                kind="error",
                hint="Correct the path in the function. A relative path starts at "
                f"{loaded.path.parent}",
            )
        shutil.copyfile(named, path)
        read = (named,)
    if loaded.example is not None and not isinstance(loaded.example, Mapping):
        raise EngineRefusal(
            f"the example inputs are of type {type(loaded.example).__qualname__}, not a dictionary",
            kind="error",
            hint="Return, as the second value, a dictionary of arrays by input name, e.g. "
            "{'x': array}",
        )
    return Made(exporter="named by the entry function", feeds=loaded.example or {}, files=read)
