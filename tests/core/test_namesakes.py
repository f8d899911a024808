"""Something of a project that Python imports in place of a library."""

import importlib
import sys
from pathlib import Path

import pytest

from pytest_ortbench.core.namesakes import namesake_of

LIBRARIES = ("numpy", "onnx", "onnxruntime", "matplotlib", "jinja2")


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("file", ["{}/__init__.py", "{}.py"])
@pytest.mark.parametrize("imported", [False, True])
def test_what_hides_a_library_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, file: str, *, imported: bool
) -> None:
    path = tmp_path / file.format(name)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    with monkeypatch.context() as patch:  # the guard of the tests needs the libraries soon
        patch.syspath_prepend(tmp_path)
        # What was there before comes back, be it nothing.
        patch.setitem(sys.modules, name, sys)
        del sys.modules[name]
        if imported:
            importlib.import_module(name)
        hidden = namesake_of(name)
    assert hidden.startswith(str(tmp_path / name))
    assert f"the library {name}:" in hidden


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_libraries_themselves_hide_nothing(name: str) -> None:
    assert namesake_of(name) == ""


def test_a_library_that_was_imported_before_is_the_one_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    (tmp_path / "numpy.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "numpy", np)
    assert namesake_of(*LIBRARIES) == ""


def test_a_folder_without_init_hides_nothing_that_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "onnx").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert namesake_of("onnx") == ""
