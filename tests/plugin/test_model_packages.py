"""A model inside a Python package is measured without importing the package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import QUICK as KEPT

ModelFile = Callable[..., Path]
QUICK = (*KEPT, "--ort-no-results", "-k", "latency or own")

#: Leaves a trace when it is imported, and then fails.
NOTE = """
with open("imported.txt", "a") as trace:
    trace.write(__name__ + " ")
"""
BROKEN = {
    "missing": NOTE + "import a_framework_that_is_not_here\n",
    "raises": NOTE + "raise RuntimeError('no')\n",
    "exits": NOTE + "raise SystemExit(3)\n",
    "syntax": "def broken(:\n",
    "skips": NOTE + "import pytest\npytest.skip('no')\n",
    "fine": NOTE,
    "set up": NOTE + "def setup_module(): raise RuntimeError('no')\n",
}

OWN = "def test_own(): pass"


@pytest.fixture(autouse=True)
def _drawn(drawn_numbers: None) -> None:
    pass


def _write(pytester: pytest.Pytester, **files: str) -> None:
    for name, text in files.items():
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _imported(pytester: pytest.Pytester) -> list[str]:
    trace = pytester.path / "imported.txt"
    return trace.read_text().split() if trace.exists() else []


@pytest.mark.parametrize("init", list(BROKEN))
def test_an_init_that_is_not_to_be_imported(
    pytester: pytest.Pytester, model_file: ModelFile, init: str
) -> None:
    model_file("src/pkg/data/m.onnx")
    _write(pytester, **{"src/pkg/__init__.py": BROKEN[init]})
    result = pytester.runpytest("src/pkg/data/m.onnx", *QUICK)
    result.assert_outcomes(passed=1, deselected=5)
    assert _imported(pytester) == []


@pytest.mark.parametrize(
    ("arguments", "ini"),
    [
        (("--import-mode=importlib",), ""),
        (("--import-mode=append",), ""),
        (("--rootdir=src",), ""),
        (("--doctest-modules",), ""),
        ((), "python_files = *.py"),
        ((), "pythonpath = src"),
        ((), "consider_namespace_packages = true"),
        ((), "collect_imported_tests = false"),
    ],
)
def test_however_pytest_imports_tests(
    pytester: pytest.Pytester, model_file: ModelFile, arguments: tuple[str, ...], ini: str
) -> None:
    model_file("src/pkg/data/m.onnx")
    model_file("src/pkg/n.onnx")
    init = BROKEN["raises"]
    _write(pytester, **{"src/pkg/__init__.py": init, "src/pkg/data/__init__.py": init})
    pytester.makeini(f"[pytest]\n{ini}")
    result = pytester.runpytest("src/pkg/data/m.onnx", "src/pkg/n.onnx", *arguments, *QUICK)
    result.assert_outcomes(passed=2, deselected=10)
    assert _imported(pytester) == []


def test_its_own_tests_import_the_package_whichever_come_first(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("src/pkg/data/m.onnx")
    _write(
        pytester,
        **{
            "src/pkg/__init__.py": 'STATE = []\ndef setup_module(): STATE.append("set up")\n',
            "src/pkg/test_own.py": (
                "import sys\ndef test_own(): assert sys.modules['pkg'].STATE == ['set up']\n"
            ),
        },
    )
    for arguments in (
        ("src/pkg/data/m.onnx", "src/pkg/test_own.py"),
        ("src/pkg/test_own.py", "src/pkg/data/m.onnx"),
    ):
        result = pytester.runpytest(*arguments, *QUICK)
        assert result.parseoutcomes()["passed"] == 2


@pytest.mark.parametrize("first", [True, False])
def test_a_package_that_fails_fails_its_own_tests_only(
    pytester: pytest.Pytester, model_file: ModelFile, first: bool
) -> None:
    model_file("src/pkg/data/m.onnx")
    _write(
        pytester,
        **{"src/pkg/__init__.py": BROKEN["set up"], "src/pkg/tests/test_own.py": OWN},
    )
    arguments = ["src/pkg/data/m.onnx", "src/pkg/tests/test_own.py"]
    result = pytester.runpytest(*(arguments if first else arguments[::-1]), *QUICK)
    result.assert_outcomes(passed=1, errors=1, deselected=5)


def test_conftest_files_work_as_ever(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    model_file("src/pkg/data/m.onnx")
    _write(
        pytester,
        **{
            "src/pkg/__init__.py": "",
            "src/pkg/conftest.py": """
import pytest

@pytest.fixture(scope="package", autouse=True)
def whole():
    yield "package"
    print("package is over")

@pytest.fixture(autouse=True)
def each(whole, request):
    print("each of", request.node.name, "in", whole)

def pytest_runtest_setup(item):
    print("hook of the package")
""",
            "src/pkg/data/conftest.py": """
import pytest

@pytest.fixture(autouse=True)
def below(each): print("below")
""",
        },
    )
    result = pytester.runpytest("src/pkg/data/m.onnx", "-s", *QUICK)
    result.assert_outcomes(passed=1, deselected=5)
    result.stdout.fnmatch_lines(
        [
            "*hook of the package",
            "each of test_latency[[]*m/native/cpu/b1] in package",
            "below",
            "*package is over",
        ]
    )


def test_all_models_of_a_project_that_collects_them(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file("src/pkg/data/m.onnx")
    model_file("src/pkg/n.onnx")
    _write(pytester, **{"src/pkg/__init__.py": BROKEN["exits"]})
    pytester.makeini("[pytest]\nort_collect = true")
    result = pytester.runpytest("src", *QUICK)
    result.assert_outcomes(passed=2, deselected=10)
    assert _imported(pytester) == []
