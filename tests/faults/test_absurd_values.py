"""Values that nobody would write give one line each, before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from .runs import BARE, started, write_model

pytestmark = pytest.mark.live

_LONG = "a" * 5000
_DEEP = "a = " + "[" * 5000 + "]" * 5000


def _line(folder: Path, *options: str) -> str:
    """Return what a run says of its options: one line."""
    write_model(folder / "m.onnx")
    arguments = ["m.onnx", "-k", "latency", "--collect-only", *BARE, *options]
    with started(folder, arguments) as run:
        printed = run.end()
    assert run.process.returncode == pytest.ExitCode.USAGE_ERROR, printed
    (line,) = [line for line in printed.splitlines() if line.startswith("ERROR: ")]
    assert len(line) < 1100
    return line


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--ort-json", f"{_LONG}/run.json"),
        ("--ort-stages", _LONG),
        ("--ort-baseline", _LONG),
        ("--ort-threads", "2147483648"),
        ("--ort-workers", "2147483648"),
        ("--ort-memory-limit", "1e308"),
    ],
)
def test_an_absurd_option_is_refused_in_one_line(tmp_path: Path, option: str, value: str) -> None:
    assert option in _line(tmp_path, f"{option}={value}")


def test_a_run_of_days_is_refused_in_one_line(tmp_path: Path) -> None:
    days = (
        "--ort-time=40000",
        "--ort-timeout=120000",
        "--ort-batch-sizes=1,2,3",
        "--ort-yardstick=off",
    )
    write_model(tmp_path / "m.onnx")
    with started(tmp_path, ["m.onnx", "-k", "latency", *BARE, *days]) as run:
        printed = run.end()
    assert run.process.returncode == pytest.ExitCode.USAGE_ERROR, printed
    assert "3 cases would take about 33 h" in printed
    assert run.results() == []


@pytest.mark.parametrize("name", ["ortbench.toml", "models/catalogue.toml"])
def test_a_file_that_is_nested_too_deeply_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(_DEEP)
    assert name in _line(tmp_path)
