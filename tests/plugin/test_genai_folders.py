"""Folders with ``genai_config.json`` on the command line: one model, and its own tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.generation.folders import write_folder

LATENCY = "llm/genai_config.json::test_latency[llm/native/cpu/b1/workload:{}]"


def collected(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    result = pytester.runpytest(
        *arguments, "--collect-only", "-q", "-k", "latency or mine", "--ort-generate=off"
    )
    return [line for line in result.outlines if "::" in line]


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    return write_folder(pytester.path / "llm")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("argument", ["llm", "llm/", "llm/genai_config.json", "./llm/../llm"])
def test_a_named_folder_is_one_model(argument: str, pytester: pytest.Pytester) -> None:
    tests = collected(pytester, argument)
    assert tests == [LATENCY.format("decode"), LATENCY.format("prefill")]
    assert collected(pytester, tests[0]) == tests[:1]


def test_its_own_tests_are_collected_as_well(pytester: pytest.Pytester, folder: Path) -> None:
    (folder / "test_own.py").write_text("def test_mine(): pass")
    tests = collected(pytester, "llm")
    assert tests[-1] == "llm/test_own.py::test_mine"
    assert len(tests) == 3
    # Nobody named the folder.
    assert collected(pytester) == ["llm/test_own.py::test_mine"]
    assert collected(pytester, ".") == ["llm/test_own.py::test_mine"]


@pytest.mark.usefixtures("folder")
def test_where_all_models_are_collected_a_named_folder_is_still_one(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\nort_collect = true")
    assert len(collected(pytester, "llm")) == 2
    assert [test.split("::")[0] for test in collected(pytester, ".")] == ["llm/model.onnx"] * 2


def test_the_folder_that_pytest_is_called_in(
    pytester: pytest.Pytester, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert collected(pytester) == []
    assert len(collected(pytester, ".")) == 2


def test_a_wrong_configuration_fails_with_one_message(
    pytester: pytest.Pytester, folder: Path
) -> None:
    (folder / "model.onnx").unlink()
    result = pytester.runpytest("llm", "-k", "latency", "--ort-time=0.1")
    assert result.parseoutcomes() == {"failed": 1, "deselected": 5}
    assert "'model.onnx'" in result.stdout.str()


def test_a_folder_above_it_says_that_the_folder_is_named(
    pytester: pytest.Pytester, folder: Path
) -> None:
    (folder / "other.onnx").write_bytes(b"")
    above = pytester.path / "all" / "deep"
    above.mkdir(parents=True)
    folder.rename(above / "llm")
    for argument in ("all", "all/deep"):
        result = pytester.runpytest(argument)
        assert re.search(r"pytest all/deep/llm\. ", result.stdout.str())
    (above / "net.onnx").write_bytes(b"")
    assert re.search(r" 2 models", pytester.runpytest("all").stdout.str())
