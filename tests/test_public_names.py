"""What users may import from the package itself, and that their annotations are checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pytest_ortbench
from pytest_ortbench.plugin.fixture import OrtBench

EXAMPLE = """
import pytest

from pytest_ortbench import OrtBench


@pytest.mark.ortbench(models="m.onnx", limits=["latency_p90 <= 30 ms"])
def test_latency(ortbench: OrtBench) -> None:
    assert ortbench.latency().p50 < 0.010
    assert ortbench.throughput().value > 10
    assert ortbench.result.status == "measured"


def name_of(ortbench: OrtBench) -> str:
    return ortbench.name
"""


def test_the_public_names_are_these():
    assert pytest_ortbench.__all__ == ["Measured", "OrtBench", "__version__"]


@pytest.mark.parametrize("name", pytest_ortbench.__all__)
def test_every_public_name_is_there(name):
    assert getattr(pytest_ortbench, name)


def test_the_class_of_the_fixture_is_the_one_that_annotations_name():
    assert pytest_ortbench.OrtBench is OrtBench


def test_another_name_is_an_error():
    with pytest.raises(AttributeError, match="OrtBenches"):
        pytest_ortbench.OrtBenches  # noqa: B018


@pytest.mark.live
def test_a_users_annotations_are_checked_strictly(tmp_path):
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(EXAMPLE)
    wrong.write_text(EXAMPLE.replace("-> str", "-> int"))
    command = [sys.executable, "-m", "mypy", "--strict", "--no-color-output"]
    command += ["--cache-dir", str(tmp_path / "cache"), "--python-version", "3.10"]
    checked = subprocess.run(
        [*command, right.name, wrong.name],
        cwd=tmp_path,
        env={
            "PATH": "",
            "MYPYPATH": "",
            "PYTHONPATH": str(Path(pytest_ortbench.__file__).parents[1]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in checked.stdout.splitlines() if ": error:" in line]
    assert [error.partition(":")[0] for error in errors] == ["wrong.py"], checked.stdout
    assert errors[0].endswith("[return-value]")
