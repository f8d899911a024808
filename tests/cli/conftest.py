from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from pytest_ortbench.cli.application import application, run
from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.run import Run
from pytest_ortbench.store.folder import write_document


@dataclass(frozen=True)
class Ended:
    """What one call of the tool did.

    Attributes:
        code: Exit code.
        out: Standard output.
        err: Standard error.
        raised: The error that ended the call, before it became a line.
    """

    code: int
    out: str
    err: str
    raised: OrtbenchError | click.ClickException | None = None

    @property
    def error(self) -> OrtbenchError:
        """The error of ours that ended the call: place, message and hint are its fields."""
        assert isinstance(self.raised, OrtbenchError)
        return self.raised


@pytest.fixture
def tool(capsys, tmp_path, monkeypatch) -> Callable[..., Ended]:
    """Call the tool in an empty folder: ``tool("show", "latest")``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    raised: list[OrtbenchError | click.ClickException] = []
    main = application.main

    def noting_what_is_raised(*arguments: Any, **options: Any) -> Any:
        try:
            return main(*arguments, **options)
        except (OrtbenchError, click.ClickException) as error:
            raised.append(error)
            raise

    monkeypatch.setattr(application, "main", noting_what_is_raised)

    def call(*arguments: object) -> Ended:
        raised.clear()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err, raised[0] if raised else None)

    return call


@pytest.fixture
def store(tmp_path) -> Callable[[Run], Path]:
    """Store a run in the results folder and return its document's path."""

    def put(run: Run) -> Path:
        path = tmp_path / "results" / run.run_id / "run.json"
        write_document(run, path)
        return path

    return put
