"""Folders and files of a project that Python imports in place of a library of the same name.

A project keeps its export scripts in ``onnx/``; once its root is on Python's path, ``import onnx``
is that folder, and what fails later says nothing of it.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path

#: What each library has had in its folder in every version, and no project would have.
_PARTS = {
    "numpy": "matrixlib",
    "onnx": "onnx_ml_pb2.py",
    "onnxruntime": "capi",
    "matplotlib": "figure.py",
    "jinja2": "environment.py",
}

#: Folders of installed packages: what lies there is the library, though it may be a broken one.
_INSTALLED = ("site-packages", "dist-packages")

HOW_TO_MEND = (
    "Rename this file or folder. If its name must stay, run 'pytest --import-mode=importlib', "
    "not 'python -m pytest', and leave the folder above it out of PYTHONPATH"
)


def namesake_of(*names: str) -> str:
    """Say what Python imports in place of one of some libraries; empty if nothing hides them.

    Args:
        names: Libraries, as they are imported.
    """
    for name in names:
        place = _place_of_another(name)
        if place:
            return f"{place} hides the library {name}: Python imports it under that name"
    return ""


def _place_of_another(name: str) -> str:
    module = sys.modules.get(name)
    spec = PathFinder.find_spec(name) if module is None else getattr(module, "__spec__", None)
    if spec is None:
        return ""
    folders = spec.submodule_search_locations
    places = [Path(place) for place in ([spec.origin or ""] if folders is None else folders)]
    if not places or any(place.parent.name in _INSTALLED for place in places):
        return ""
    is_library = any((place / _PARTS[name]).exists() for place in places)
    return "" if is_library else str(places[0])
