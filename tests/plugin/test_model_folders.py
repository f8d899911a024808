"""Folders of language models and of frameworks on the command line: each is one model."""

from __future__ import annotations

import re
from collections.abc import Callable
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


@pytest.mark.parametrize("argument", ["hf/", "hf/onnx"])
def test_a_folder_of_transformers_is_the_model_that_was_exported_from_it(
    pytester: pytest.Pytester, folder: Path, argument: str
) -> None:
    (pytester.path / "hf").mkdir()
    (pytester.path / "hf" / "config.json").write_text('{"model_type": "llama"}')
    folder.rename(pytester.path / "hf" / "onnx")
    tests = collected(pytester, argument)
    assert [test.split("::")[0] for test in tests] == ["hf/onnx/genai_config.json"] * 2
    assert collected(pytester, tests[0]) == tests[:1]


def test_a_folder_of_transformers_with_several_files_is_the_main_one(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    for name in ("model", "model_fp16"):
        model_file(f"hf/onnx/{name}.onnx")
    (pytester.path / "hf" / "config.json").write_text('{"model_type": "bert"}')
    assert [test.split("::")[0] for test in collected(pytester, "hf")] == ["hf/onnx/model.onnx"]
    ignored = pytester.runpytest("hf", "--ignore=hf/onnx")
    assert ignored.ret == pytest.ExitCode.USAGE_ERROR
    # Nothing in the folder is taken where pytest comes across it.
    assert collected(pytester, ".") == []


def test_a_folder_of_transformers_without_a_file_says_what_is_missing(
    pytester: pytest.Pytester,
) -> None:
    (pytester.path / "hf").mkdir()
    (pytester.path / "hf" / "config.json").write_text('{"model_type": "bert"}')
    result = pytester.runpytest("hf")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["ortbench: hf *"])
    (pytester.path / "hf" / "test_own.py").write_text("def test_mine(): pass")
    pytester.runpytest("hf").stdout.no_fnmatch_line("ortbench: *")


@pytest.mark.parametrize("argument", ["saved/", "saved/saved_model.pb"])
def test_a_folder_of_a_saved_model_is_one_model_where_it_is_named(
    pytester: pytest.Pytester, argument: str
) -> None:
    (pytester.path / "saved").mkdir()
    (pytester.path / "saved" / "saved_model.pb").write_bytes(b"")
    tests = collected(pytester, argument)
    assert tests == ["saved/saved_model.pb::test_latency[saved/native/cpu/b1]"]
    # A program is not loaded because pytest comes across it.
    assert collected(pytester, ".") == []


def test_a_folder_of_another_format_is_a_row_that_says_so(pytester: pytest.Pytester) -> None:
    (pytester.path / "net.mlpackage").mkdir()
    (tests,) = [collected(pytester, "net.mlpackage")]
    assert tests == ["net.mlpackage::test_latency[net.mlpackage/native/cpu/b1]"]
