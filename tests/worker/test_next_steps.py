"""Next steps of what a worker refuses, by what it knows of its situation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.engines.registry import engine_kind
from pytest_ortbench.worker.element_types import unreadable_input
from pytest_ortbench.worker.entry import _check_settings, _supply
from pytest_ortbench.worker.generation import genai_model
from pytest_ortbench.worker.sample_file import _damaged
from pytest_ortbench.worker.user_code import load_file

pytestmark = pytest.mark.unit


def test_a_folder_in_place_of_a_python_file_is_told_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "ops.py"
    folder.mkdir()
    with pytest.raises(WorkerError) as refused:
        load_file(folder)
    assert "folder" in refused.value.failure.message
    assert ".py" not in refused.value.failure.hint


def test_reference_outputs_that_are_gone_need_not_be_deleted(tmp_path: Path) -> None:
    path = tmp_path / "r.npz"
    gone = _damaged(path, FileNotFoundError()).failure.hint
    path.touch()
    damaged = _damaged(path, ValueError()).failure.hint
    assert ("Delete" in gone, "Delete" in damaged) == (False, True)


def test_an_input_file_that_is_gone_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    gone = unreadable_input(path, FileNotFoundError(2, "gone")).failure.hint
    assert "Correct" not in gone


@pytest.mark.parametrize(
    ("runtime", "requirements", "told"),
    [
        ("current", (), "'pytest-ortbench[genai]'"),
        ("edge", (), "'edge'"),
        ("old", ("onnxruntime==1.30.0",), "'--ort-runtimes=onnxruntime==1.30.0+onnxruntime-genai'"),
    ],
)
def test_genai_is_supplied_where_it_is_lacking(
    runtime: str,
    requirements: tuple[str, ...],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(genai_model, "load", lambda: None)
    monkeypatch.setitem(sys.modules, "onnxruntime_genai", None)
    genai_model.load_genai.cache_clear()
    with pytest.raises(WorkerError) as refused:
        genai_model.load_genai(runtime, requirements)
    assert told in refused.value.failure.hint


def test_the_package_of_genai_that_is_installed_is_the_one_to_be_installed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owners = {"onnxruntime_genai": ["onnxruntime-genai-cuda"]}
    monkeypatch.setattr(genai_model, "packages_distributions", lambda: owners)
    assert genai_model._supply(ImportError("no DLL"), "current", ()).endswith(
        " " + "".join(*owners.values())
    )


def test_a_setting_of_the_exporter_among_those_of_a_function_is_told_as_one() -> None:
    kind = engine_kind("torch")
    assert kind is not None
    with pytest.raises(WorkerError) as refused:
        _check_settings(Path("net.py"), "build", {"opset": 17}, kind)
    assert "--ort-exporter=opset=17" in refused.value.failure.hint


def test_a_module_that_the_users_code_misses_is_not_supplied_by_installed_packages() -> None:
    error = ModuleNotFoundError("No module named 'einops'", name="einops")
    hints = [_supply(error, packages) for packages in (("pytest",), ("pytest", "no-such-package"))]
    assert ["pip" in hint for hint in hints] == [False, True]
