"""Conversions in this process, each into a folder of the test."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.convert import memory
from pytest_ortbench.convert.make import convert
from pytest_ortbench.core.recipe import Converted, Recipe

from .conversions import conversion_of


@pytest.fixture(autouse=True)
def _tools_stay_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a worker the process is given up after the conversion; this one goes on.
    monkeypatch.setattr(memory, "_cap", lambda _: None)
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Converted]:
    """Convert a serialised model or a file; the result lies in ``tmp_path / "out"``."""

    def run(source: bytes | Path, recipe: Recipe, **changed: Any) -> Converted:
        path = source if isinstance(source, Path) else tmp_path / "in" / "m.onnx"
        if isinstance(source, bytes):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(source)
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        for left in out.iterdir():
            left.unlink()
        return convert(replace(conversion_of(path, recipe), **changed), out, lambda _: None)

    return run
