"""Tests of a model file look like any tests of a module, to fixtures, hooks and other plugins."""

import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from pytest_ortbench.plugin.model_files import keep_from_testmon

from .conftest import QUICK, told

ModelFile = Callable[..., Path]

ORDINARY = """
import pytest

@pytest.fixture(params=["mlp/native/cpu/b1"])
def parameter(request): return request.param

@pytest.mark.filterwarnings("ignore:nothing")
def test_latency(parameter): "What is tested."
"""


def _public(node: object) -> dict[str, object]:
    return {name: getattr(node, name) for name in dir(node) if not name.startswith("_")}


def _pair(pytester: pytest.Pytester) -> list[pytest.Function]:
    """An ordinary test, and one of a model file, both with a parameter."""
    pytester.makepyfile(test_x=ORDINARY)
    items, _ = pytester.inline_genitems("test_x.py", "mlp.onnx")
    pair = [
        item
        for item in items
        if isinstance(item, pytest.Function) and item.originalname == "test_latency"
    ]
    assert [item.path.name for item in pair] == ["test_x.py", "mlp.onnx"]
    return pair


def test_public_attributes_are_those_of_an_ordinary_test(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    path = model_file()
    ordinary, ours = _pair(pytester)
    expected, have = _public(ordinary), _public(ours)
    assert have.keys() == expected.keys()
    for name in have.keys() - {"parent", "reportinfo"}:
        assert type(have[name]) is type(expected[name]), name
    assert isinstance(ours.parent, pytest.Module)
    assert ours.cls is None
    assert ours.instance is None
    assert ours.function is ours.obj
    assert ours.originalname == "test_latency"
    assert ours.name == f"test_latency[{ours.callspec.id}]"
    assert {name: repr(value) for name, value in ours.callspec.params.items()} == {
        "ortbench": "mlp/native/cpu/b1+current"
    }
    assert ours.path == path
    assert ours.location == ("mlp.onnx", 0, ours.name)
    assert ours.reportinfo() == (path, 0, ours.name)
    assert {"mlp.onnx", "filterwarnings", ours.name} <= set(ours.keywords)
    assert [type(node) for node in ours.listchain()[:-2]] == [
        type(node) for node in ordinary.listchain()[:-2]
    ]


def test_the_module_is_the_model_file(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    path = model_file()
    expected, ours = (item.module for item in _pair(pytester))
    assert isinstance(ours, ModuleType)
    assert ours.__file__ == str(path)
    assert ours.__name__ == "mlp.onnx"
    assert ours.__package__ == expected.__package__
    assert ours.__spec__.origin == str(path)
    assert ours.test_latency.__module__ == ours.__name__


def test_what_testmon_notes_of_a_report_leaves_model_files_out() -> None:
    lines = {"nets/B.ONNX::test_latency[b1]": {"nets/B.ONNX": {1}}, "test_x.py::test_it": {}}
    report = SimpleNamespace(nodes_files_lines=dict(lines))
    keep_from_testmon(cast("pytest.TestReport", report))
    assert list(report.nodes_files_lines) == ["test_x.py::test_it"]
    keep_from_testmon(cast("pytest.TestReport", SimpleNamespace()))


CONFTEST = """
import pathlib, sys, pytest

def pytest_collection_modifyitems(items):
    for item in items:
        assert pathlib.Path(item.module.__file__) == item.path
        assert item.getparent(pytest.Module).obj is item.module

@pytest.fixture(autouse=True)
def data(request):
    assert pathlib.Path(request.module.__file__) == request.path
    assert request.function.__name__ == request.node.originalname
    assert request.cls is None and request.instance is None
    assert getattr(request.module, "data_folder", "none") == "none"
"""


def test_fixtures_hooks_and_reports_of_others_find_what_they_expect(
    pytester: pytest.Pytester, model_file: ModelFile, drawn_numbers: None
) -> None:
    model_file("nets/a.onnx")
    shutil.copy("nets/a.onnx", "nets/b.onnx")
    pytester.makeconftest(CONFTEST)
    result = pytester.runpytest(
        "nets/a.onnx", "nets/b.onnx", "-v", "--junitxml=j.xml", "-o", "junit_family=xunit1",
        "-k", "latency or memory", *QUICK,
    )  # fmt: skip
    result.assert_outcomes(passed=4)
    result.stdout.no_fnmatch_line("*<- *")
    cases = list(ElementTree.parse("j.xml").iter("testcase"))
    assert {(case.get("classname"), case.get("file"), case.get("line")) for case in cases} == {
        ("nets.a.onnx", "nets/a.onnx", "0"),
        ("nets.b.onnx", "nets/b.onnx", "0"),
    }


def test_a_mark_skips_a_test_of_a_model_at_the_model(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makeconftest(
        """
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.skip(reason="not today"))
        """
    )
    result = pytester.runpytest("mlp.onnx", "-k", "latency", "-rs", *QUICK)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines("SKIPPED [[]1[]] mlp.onnx*: not today")


@pytest.mark.parametrize("name", ["B.ONNX", "b.Onnx", "net.v2.oNNX"])
def test_a_model_file_is_one_in_any_letter_case(
    pytester: pytest.Pytester, model_file: ModelFile, drawn_numbers: None, name: str
) -> None:
    model_file(f"nets/{name}")
    (pytester.path / "models").mkdir()
    (pytester.path / "models/catalogue.toml").write_text(f'[listed]\nfile = "../nets/{name}"\n')
    pytester.makepyfile(
        test_x=f"""
        import pytest
        asked = pytest.mark.ortbench

        @asked(models="nets/{name}")
        def test_file(ortbench): pass

        @asked(models="nets")
        def test_folder(ortbench): pass

        @asked(models="nets/*")
        def test_pattern(ortbench): pass

        @asked(models="listed")
        def test_listed(ortbench): pass
        """
    )
    for arguments in ([f"nets/{name}"], ["nets", "-o", "ort_collect=true"]):
        result = pytester.runpytest(*arguments, "-k", "latency", *QUICK)
        result.assert_outcomes(passed=1)
    pytester.runpytest("test_x.py", *QUICK).assert_outcomes(passed=4)


@pytest.mark.parametrize(
    ("arguments", "folders"),
    [
        (["nets"], ["nets"]),
        (["nets", "tests"], ["nets"]),
        (["nets/deep", "tests"], ["nets/deep"]),
        (["tests"], []),
        ([], []),
        (["nets", "-o", "ort_collect=true"], []),
        (["nets", "nets/a.onnx"], []),
    ],
)
def test_a_folder_of_models_alone_says_how_they_are_measured(
    pytester: pytest.Pytester, model_file: ModelFile, arguments: list[str], folders: list[str]
) -> None:
    model_file("nets/a.onnx")
    model_file("nets/deep/B.ONNX")
    pytester.makepyfile(**{"tests/test_x": "def test_it(): pass"})
    result = pytester.runpytest("--collect-only", "-q", *arguments)
    hints = [line for line in told(result) if "ort_collect=true" in line]
    assert [line.split()[0] for line in hints] == folders
    first = "nets/deep/B.ONNX" if folders == ["nets/deep"] else "nets/a.onnx"
    assert all(f"pytest {first}." in line for line in hints)


def test_a_run_that_finds_nothing_but_models_says_how_they_are_measured(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("nets/a.onnx")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert len(told(result)) == 1
