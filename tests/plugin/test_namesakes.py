"""A project with a package that is called like a library of ours."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import QUICK

ModelFile = Callable[..., Path]


def _failure(pytester: pytest.Pytester) -> dict[str, str]:
    (document,) = pytester.path.glob("results/*/run.json")
    (case,) = json.loads(document.read_text())["cases"]
    failure: dict[str, str] = case["failure"]
    return failure


def test_a_package_beside_conftest_is_named_as_the_cause(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.mkpydir("onnx")
    pytester.makeconftest("")
    result = pytester.runpytest_subprocess("mlp.onnx", "-k", "latency", *QUICK)
    result.assert_outcomes(failed=1)
    failure = _failure(pytester)
    assert failure["phase"] == "inputs"
    assert f"{pytester.path / 'onnx'} hides the library onnx" in failure["message"]


@pytest.mark.parametrize("name", ["onnxruntime", "numpy"])
def test_a_package_on_the_path_of_a_worker_is_named_as_the_cause(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    model_file()
    folder = pytester.mkpydir(f"src_{name}").parent
    (folder / f"src_{name}" / name).mkdir()
    (folder / f"src_{name}" / name / "__init__.py").touch()
    path = os.pathsep.join([str(folder / f"src_{name}"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    # In this process, which has imported the libraries already.
    result = pytester.runpytest("mlp.onnx", "-k", "latency", *QUICK)
    result.assert_outcomes(failed=1)
    failure = _failure(pytester)
    assert (failure["kind"], failure["phase"]) == ("unavailable", "import")
    assert f"{folder / f'src_{name}' / name} hides the library {name}" in failure["message"]
