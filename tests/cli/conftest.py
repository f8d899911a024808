from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_ortbench.cli.application import run
from pytest_ortbench.core.run import Run
from pytest_ortbench.store.folder import write_document


@dataclass(frozen=True)
class Ended:
    """What one call of the tool did."""

    code: int
    out: str
    err: str


@pytest.fixture
def tool(capsys, tmp_path, monkeypatch) -> Callable[..., Ended]:
    """Call the tool in an empty folder: ``tool("show", "latest")``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: object) -> Ended:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ended(code=code, out=captured.out, err=captured.err)

    return call


@pytest.fixture
def store(tmp_path) -> Callable[[Run], Path]:
    """Store a run in the results folder and return its document's path."""

    def put(run: Run) -> Path:
        path = tmp_path / "results" / run.run_id / "run.json"
        write_document(run, path)
        return path

    return put
