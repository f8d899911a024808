"""The suites that ship, without running them."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
from pathlib import Path

import pytest

import pytest_ortbench.suites

SHIPPED = Path(pytest_ortbench.suites.__file__).parent
WAY_IN = Path(__file__).parents[2] / "suites"
NAMES = (
    "accuracy",
    "energy",
    "export",
    "generation",
    "latency",
    "load",
    "memory",
    "placement",
    "startup",
    "throughput",
)


def test_all_suites_ship() -> None:
    assert {path.name for path in SHIPPED.glob("test_*.py")} == {
        f"test_{name}.py" for name in NAMES
    }


def test_what_a_suite_says_of_a_case_comes_without_a_traceback() -> None:
    """An assertion with a message would print its own source, which no user wrote."""
    told = [
        f"{path.name}:{node.lineno}"
        for path in SHIPPED.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Assert) and node.msg is not None)
        or (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "pytest.fail"
            and not any(word.arg == "pytrace" for word in node.keywords)
        )
    ]
    assert told == []


def test_the_folder_of_this_repository_runs_the_shipped_suites() -> None:
    for name in NAMES:
        path = WAY_IN / f"test_{name}.py"
        spec = importlib.util.spec_from_file_location(f"way_in_{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        shipped = importlib.import_module(f"pytest_ortbench.suites.test_{name}")
        assert getattr(module, f"test_{name}") is getattr(shipped, f"test_{name}")
    assert {path.stem for path in WAY_IN.glob("*.py")} == {f"test_{name}" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_suite_is_one_short_test_that_takes_the_fixture_statically(name: str) -> None:
    module = importlib.import_module(f"pytest_ortbench.suites.test_{name}")
    tests = {key: value for key, value in vars(module).items() if key.startswith("test_")}
    assert set(tests) == {f"test_{name}"}
    arguments = list(inspect.signature(tests[f"test_{name}"]).parameters)
    # One row a case in pytest-benchmark: the latency suite alone takes its fixture.
    assert arguments == (["ortbench", "benchmark"] if name == "latency" else ["ortbench"])
    assert len(inspect.getsource(module).splitlines()) < 30
