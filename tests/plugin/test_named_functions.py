"""Functions that return models, as arguments of pytest: ``net.py:build``, ``net.py::build``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.plugin.named_functions import take_typed, tell_worker

_CODE = """
import unittest
import numpy as np
import pytest

def build():
    return (lambda feeds: [feeds["x"]]), {"x": np.ones((4, 3), np.float32)}, {"onnx": "d.onnx"}

def lost():
    raise RuntimeError("the weights are gone")

@pytest.fixture
def given():
    pass

def test_own():
    pass

class Checks(unittest.TestCase):
    def runTest(self):
        pass
"""
ModelFile = Callable[..., Path]


@pytest.fixture
def net(pytester: pytest.Pytester) -> Path:
    file = pytester.path / "net.py"
    file.write_text(_CODE)
    return file


def ids(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    result = pytester.runpytest(*arguments, "--collect-only", "-q", "-k", "latency or own")
    return [line for line in result.outlines if "::" in line]


LOST = "net.py::lost::test_latency[net.py:lost/native/cpu/b1]"


@pytest.mark.usefixtures("net")
@pytest.mark.parametrize("argument", ["net.py:lost", "net.py::lost", LOST])
def test_a_function_is_a_model_however_it_is_written(
    pytester: pytest.Pytester, argument: str
) -> None:
    assert ids(pytester, argument) == [LOST]
    assert "net" not in sys.modules


@pytest.mark.usefixtures("net")
def test_what_may_be_a_test_is_left_to_pytest(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("net.py::test_own", "net.py::Checks")
    assert result.parseoutcomes() == {"passed": 2}
    for argument in ("net.py::nope", "net.py::given", "net.py:test_own"):
        assert pytester.runpytest(argument).ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.usefixtures("net")
def test_a_misspelt_file_is_told_its_neighbour(pytester: pytest.Pytester) -> None:
    refused = pytester.runpytest("nte.py:build")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*nte.py*'net.py'*"])
    pytester.makeini("[pytest]\npython_functions = lo* test")
    assert pytester.runpytest("net.py::lost").parseoutcomes() == {"failed": 1}


@pytest.mark.usefixtures("net")
def test_tests_of_the_file_that_are_named_as_well_are_collected(pytester: pytest.Pytester) -> None:
    own = "net.py::test_own"
    assert ids(pytester, "net.py::lost", own) == [LOST, own]
    assert ids(pytester, own, "net.py:lost") == [own, LOST]
    assert set(ids(pytester, "net.py", "net.py:lost")) == {own, LOST}


@pytest.mark.usefixtures("net")
def test_a_function_that_is_not_there_is_a_row_that_says_so(pytester: pytest.Pytester) -> None:
    options = ("-k", "latency", "--ort-no-results", "--ort-json=run.json")
    result = pytester.runpytest("net.py:biuld", "net.py:lost", *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    cases = json.loads((pytester.path / "run.json").read_text())["cases"]
    assert [case["case"]["model"]["name"] for case in cases] == ["net.py:biuld", "net.py:lost"]
    assert [case["failure"]["phase"] for case in cases] == ["export", "export"]


def test_a_file_that_is_called_so_goes_first(pytester: pytest.Pytester, net: Path) -> None:
    (net.parent / "net.py:lost").write_bytes(b"")
    config: Any = SimpleNamespace(
        args=["net.py:lost", "other.py:lost", "net.py:build", "net.py:"],
        getini=lambda _: ["test", "Test"],
        stash=pytest.Stash(),
        invocation_params=SimpleNamespace(dir=pytester.path),
    )
    take_typed(config)
    assert config.args == ["net.py:lost", "other.py:lost", "net.py::build", "net.py:"]
    node: Any = SimpleNamespace(workerinput={}, config=config)
    tell_worker(node)
    assert list(node.workerinput.values()) == [["net.py::build"]]


def test_a_package_around_the_file_is_not_imported(pytester: pytest.Pytester, net: Path) -> None:
    package = pytester.mkpydir("package")
    (package / "__init__.py").write_text("raise RuntimeError")
    net.rename(package / "net.py")
    assert len(ids(pytester, "package/net.py::lost")) == 1
