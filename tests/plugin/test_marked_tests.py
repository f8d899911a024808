"""The marker measures, or it is an error that says what to write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench import plugin

from .conftest import QUICK as KEPT
from .conftest import told

ModelFile = Callable[..., Path]
QUICK = (*KEPT, "--ort-no-results", "--ort-json=run.json")

HEAD = """
import unittest
import pytest
M = pytest.mark.ortbench(models="mlp.onnx")
"""

ARGUMENT = "*Add 'ortbench' to its arguments*"
UNITTEST = "*ortbench does not work with unittest.TestCase*"


@pytest.fixture(autouse=True)
def _drawn(drawn_numbers: None, model_file: ModelFile) -> None:
    model_file()


@pytest.mark.parametrize(
    ("body", "errors", "passed", "said"),
    [
        ("@M\ndef test_it(): pass", 1, 0, ARGUMENT),
        ("@M\ndef test_it(tmp_path): pass\ndef test_other(): pass", 1, 1, ARGUMENT),
        ("@M\n@pytest.mark.parametrize('n', [1, 2])\ndef test_it(n): pass", 2, 0, ARGUMENT),
        ("@M\nasync def test_it(): pass", 1, 0, ARGUMENT),
        ("class TestIt:\n    @M\n    def test_it(self): pass", 1, 0, ARGUMENT),
        ("@M\nclass TestIt:\n    def test_it(self): pass", 1, 0, ARGUMENT),
        ("pytestmark = M\ndef test_it(): pass\ndef test_other(): pass", 2, 0, ARGUMENT),
        (
            "pytestmark = M\ndef test_it(): pass\n@M\ndef test_own(): pass\n"
            "def test_takes(ortbench): pass",
            1,
            2,
            "*::test_own: *",
        ),
        (
            "pytestmark = M\nclass TestIt(unittest.TestCase):\n    def test_it(self): pass\n"
            "def test_takes(ortbench): pass",
            0,
            2,
            "*",
        ),
        ("class TestIt(unittest.TestCase):\n    @M\n    def test_it(self): pass", 1, 0, UNITTEST),
        ("@M\nclass TestIt(unittest.TestCase):\n    def test_it(self): pass", 1, 0, UNITTEST),
        (
            "@pytest.mark.usefixtures('ortbench')\n@M\nclass TestIt(unittest.TestCase):\n"
            "    def test_it(self): pass",
            1,
            0,
            UNITTEST,
        ),
        (
            "class TestIt(unittest.IsolatedAsyncioTestCase):\n    @M\n"
            "    async def test_it(self): pass",
            1,
            0,
            UNITTEST,
        ),
        ("@M\n@pytest.mark.skip\ndef test_it(): pass\ndef test_other(): pass", 0, 1, "*"),
    ],
)
def test_a_marker_without_the_fixture(
    pytester: pytest.Pytester, body: str, errors: int, passed: int, said: str
) -> None:
    pytester.makepyfile(test_it=HEAD + body)
    result = pytester.runpytest(*QUICK)
    outcomes = result.parseoutcomes()
    assert (outcomes.get("errors", outcomes.get("error", 0)), outcomes.get("passed", 0)) == (
        errors,
        passed,
    )
    assert (result.ret != pytest.ExitCode.OK) == bool(errors)
    result.stdout.fnmatch_lines([said])


@pytest.mark.parametrize(
    "body",
    [
        "@M\ndef test_it(ortbench): pass",
        "@M\n@pytest.mark.usefixtures('ortbench')\ndef test_it(): pass",
        "@pytest.fixture\ndef mine(ortbench): return 1\n@M\ndef test_it(mine): pass",
        "@pytest.fixture(autouse=True)\ndef mine(ortbench): return 1\n@M\ndef test_it(): pass",
        "@M\ndef test_it(request): request.getfixturevalue('ortbench')",
        "@pytest.fixture\ndef mine(request): return request.getfixturevalue('ortbench')\n"
        "@M\ndef test_it(mine): pass",
        "@pytest.fixture\ndef ortbench(ortbench): return 'wrapped'\n"
        "@M\ndef test_it(ortbench): assert ortbench == 'wrapped'",
        "@M\nclass TestIt:\n    def test_it(self, ortbench): pass",
        "pytestmark = [M, pytest.mark.usefixtures('ortbench')]\ndef test_it(): pass",
    ],
)
def test_whoever_takes_the_fixture_measures_and_is_held_to_limits(
    pytester: pytest.Pytester, body: str
) -> None:
    pytester.makepyfile(test_it=HEAD + body)
    result = pytester.runpytest(*QUICK, "--ort-limits=latency_p50 <= 1 ns")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*latency_p50 *<= 1*ns*"])
    cases = json.loads((pytester.path / "run.json").read_text())["cases"]
    assert [case["status"] for case in cases] == ["measured"]


def test_xfail_does_not_excuse_a_misplaced_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=f"{HEAD}@M\n@pytest.mark.xfail\ndef test_it(): pass")
    result = pytester.runpytest(*QUICK)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(told(result, "test_it.py::test_it")) == 1


def test_a_marker_on_something_that_is_no_function(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        class Item(pytest.Item):
            def runtest(self): pass

        class File(pytest.File):
            def collect(self):
                item = Item.from_parent(self, name="one")
                item.add_marker(pytest.mark.ortbench(models="mlp.onnx"))
                return [item]

        def pytest_collect_file(file_path, parent):
            return File.from_parent(parent, path=file_path) if file_path.suffix == ".x" else None
        """
    )
    (pytester.path / "a.x").touch()
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["* not on a Item"])


ON_A_PARAMETER = """
@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.ortbench({keyword})), 2])
@M
def test_it(ortbench, n): pass
"""


@pytest.mark.parametrize(
    ("keyword", "errors"),
    [("models='other.onnx'", 1), ("batch_sizes=[4]", 1), ("limits=['latency_p50 <= 1 s']", 0)],
)
def test_axes_on_a_parameter_are_an_error_and_limits_count(
    pytester: pytest.Pytester, keyword: str, errors: int
) -> None:
    pytester.makepyfile(HEAD + ON_A_PARAMETER.replace("{keyword}", keyword))
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(passed=2 - errors, errors=errors)
    if errors:
        axis = keyword.partition("=")[0]
        result.stdout.fnmatch_lines([f"*{axis} of *marker*"])


def test_axes_that_are_added_after_collection_are_an_error(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.ortbench(models="other.onnx"))
        """
    )
    pytester.makepyfile(f"{HEAD}@M\ndef test_it(ortbench): pass")
    pytester.runpytest(*QUICK).assert_outcomes(errors=1)


def test_another_fixture_of_the_same_name_measures_nothing_and_fails(
    pytester: pytest.Pytester,
) -> None:
    body = "@pytest.fixture\ndef ortbench({}): return 5\n@M\ndef test_it(ortbench): pass"
    pytester.makepyfile(HEAD + body.format(""))
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*fixture*'ortbench'*"])
    pytester.makepyfile(HEAD + body.format("ortbench"))
    pytester.runpytest(*QUICK).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("arguments", "own", "are_models_measured"),
    [
        (("-m", "ortbench"), ["test_bare"], True),
        (("-m", "not ortbench"), ["test_other"], False),
        (("-m", "ortbench and slow"), ["test_bare"], False),
        (("-k", "ortbench"), ["test_bare"], True),
    ],
)
def test_whoever_takes_the_fixture_is_selected_by_the_marker(
    pytester: pytest.Pytester, arguments: tuple[str, ...], own: list[str], are_models_measured: bool
) -> None:
    pytester.makeini("[pytest]\nmarkers = slow\nort_models = mlp.onnx")
    pytester.makepyfile(
        test_it=f"{HEAD}@pytest.mark.slow\ndef test_bare(ortbench): pass\ndef test_other(): pass"
    )
    run = ("--collect-only", "-q", "--strict-markers", "--ort-providers=cpu", *arguments)
    items = pytester.runpytest(*run, "test_it.py", "mlp.onnx").outlines
    names = [line.partition("::")[2] for line in items if line.startswith("test_it.py::")]
    assert [name.partition("[")[0] for name in names] == own
    assert any(line.startswith("mlp.onnx::") for line in items) == are_models_measured


def test_a_choice_by_the_marker_that_leaves_nothing_is_named(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = -m 'not ortbench'")
    assert told(pytester.runpytest("mlp.onnx", *QUICK))[0].endswith(" by -m 'not ortbench'")
    result = pytester.runpytest("mlp.onnx", "-m", "ortbench", "-k", "latency", *QUICK)
    result.assert_outcomes(passed=1)


def test_an_older_pytest_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest, "version_tuple", (8, 3, 5))
    with pytest.raises(pytest.UsageError, match=r"needs pytest 8\.4 or newer"):
        plugin.pytest_addoption(pytest.Parser(_ispytest=True))
