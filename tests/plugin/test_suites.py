"""The suites that ship, without running them."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

import pytest_ortbench.suites

SHIPPED = Path(pytest_ortbench.suites.__file__).parent
COPIED = Path(__file__).parents[2] / "suites"
NAMES = (
    "accuracy",
    "energy",
    "latency",
    "load",
    "memory",
    "placement",
    "startup",
    "throughput",
)


def test_the_folder_to_copy_from_is_what_is_installed() -> None:
    """To change a suite, change the file in ``suites`` and copy it over the other."""
    shipped = {path.name: path.read_bytes() for path in SHIPPED.glob("test_*.py")}
    copied = {path.name: path.read_bytes() for path in COPIED.glob("test_*.py")}
    assert set(shipped) == {f"test_{name}.py" for name in NAMES}
    assert copied == shipped


@pytest.mark.parametrize("name", NAMES)
def test_a_suite_is_one_short_test_that_takes_the_fixture_statically(name: str) -> None:
    module = importlib.import_module(f"pytest_ortbench.suites.test_{name}")
    tests = {key: value for key, value in vars(module).items() if key.startswith("test_")}
    assert set(tests) == {f"test_{name}"}
    arguments = list(inspect.signature(tests[f"test_{name}"]).parameters)
    # One row a case in pytest-benchmark: the latency suite alone takes its fixture.
    assert arguments == (["ortbench", "benchmark"] if name == "latency" else ["ortbench"])
    assert len(inspect.getsource(module).splitlines()) < 30
