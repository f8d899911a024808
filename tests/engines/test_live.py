"""A real engine from another package, through everything that walks over cases."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engines.made_engine import ALIAS, TITLE, write_package
from tests.plugin.conftest import QUICK, model_file

__all__ = ["model_file"]


@pytest.fixture
def run(
    pytester: pytest.Pytester, model_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, Any]]:
    """Run pytest in a process of its own on a small model, with the engine installed."""
    package = write_package(pytester.path / "installed")
    monkeypatch.setenv("PYTHONPATH", str(package), prepend=os.pathsep)
    path = model_file()

    def measured(*options: str) -> dict[str, Any]:
        result = pytester.runpytest_subprocess(
            path, "-k", "latency", *QUICK, "--ort-batch-sizes=4", "--ort-json=run.json", *options
        )
        assert result.ret == pytest.ExitCode.OK
        document: dict[str, Any] = json.loads((pytester.path / "run.json").read_text())
        return document

    return measured


def test_an_engine_goes_through_the_passes_and_never_loads_onnx_runtime(
    run: Callable[..., dict[str, Any]],
) -> None:
    document = run(
        f"--ort-providers=cpu,{ALIAS}", "--ort-startup", "--ort-profile", "--ort-sessions=2"
    )
    reference, engine = document["cases"]
    assert [case["status"] for case in document["cases"]] == ["measured"] * 2
    assert engine["case"]["provider"]["role"] == "engine"
    assert engine["case"]["provider"]["name"] == TITLE
    assert engine["placement"] is None
    assert (engine["product_bits"], reference["product_bits"]) == (23, None)
    assert engine["profile"]["reason"]
    assert not reference["profile"]["reason"]
    first = engine["measurements"][0]
    assert first["runtime"]["engine"] == ALIAS
    assert first["runtime"]["engine_version"]
    assert first["startup"]["compiled_bytes"] > 0
    states = [trial["engines"] for trial in engine["start_ups"]["trials"]]
    assert states == ["cold", "cold", "warm"]
    assert engine["accuracy"]["outputs"][0]["finite"]
