"""Secrets of the configuration reach nothing that a run or a command writes or prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .runs import QUICK, started, write_model

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(sys.platform == "win32", reason="needs a command env"),
]

_MARK = "s3cr3t"
_PYTHON = json.dumps(sys.executable)
_CONFIGURATION = f"""
[runtimes.lab]
command = ["env", "API_TOKEN={_MARK}A", "A=Authorization: Bearer {_MARK}B", {_PYTHON}]
[runtimes.lab.environment]
GITHUB_TOKEN = "{_MARK}C"
DEPLOY = "-----BEGIN PRIVATE KEY-----\\n{_MARK}D\\n-----END PRIVATE KEY-----"
"""
_OUTPUTS = ("--ort-html=out.html", "--ort-json=out.json", "--ort-prometheus=out.prom")


def _leaks(folder: Path, printed: str) -> list[str]:
    """Return where the mark of a secret stands: files, or the terminal."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".toml"]
    found = [str(path) for path in files if _MARK.encode() in path.read_bytes()]
    return [*found, *(["terminal"] if _MARK in printed else [])]


def _printed(folder: Path, *arguments: str, module: str = "pytest") -> str:
    with started(folder, arguments, module=module) as run:
        return run.end()


def test_nothing_of_a_run_holds_a_secret(tmp_path: Path) -> None:
    write_model(tmp_path / "m.onnx")
    (tmp_path / "ortbench.toml").write_text(_CONFIGURATION)
    arguments = ["m.onnx", "-k", "latency", "-v", "--ort-runtimes=lab", "--junitxml=j.xml"]
    printed = _printed(tmp_path, *arguments, *_OUTPUTS, *QUICK)
    (case,) = json.loads((tmp_path / "out.json").read_text())["cases"]
    assert case["status"] == "measured", printed
    assert case["case"]["runtime"]["environment"] == {"GITHUB_TOKEN": "***", "DEPLOY": "***"}
    assert _leaks(tmp_path, printed) == []


@pytest.mark.parametrize(
    "option",
    [
        f"--ort-runtimes=https://ann:{_MARK}@127.0.0.1:1/x.whl",
        f"--ort-provider-option=cpu:password={_MARK}",
        f"--ort-stages=https://host/stages.py?access_token={_MARK}",
    ],
)
def test_an_option_that_is_refused_is_told_without_its_secret(tmp_path: Path, option: str) -> None:
    write_model(tmp_path / "m.onnx")
    printed = _printed(tmp_path, "m.onnx", "-k", "latency", option, *QUICK)
    assert option.partition("=")[0] in printed
    assert _leaks(tmp_path, printed) == []


def test_a_list_of_runtimes_shows_no_secret(tmp_path: Path) -> None:
    (tmp_path / "ortbench.toml").write_text(_CONFIGURATION)
    printed = _printed(tmp_path, "runtimes", module="pytest_ortbench.cli")
    assert "API_TOKEN=***" in printed
    assert _leaks(tmp_path, printed) == []
