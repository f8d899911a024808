"""Trials of the gate's self-tests: one line each, kept by machine in the user's state folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, TypeVar

import msgspec
import platformdirs

from pytest_ortbench.core.errors import (
    DocumentError,
    first_line,
    why_unreadable,
    why_unwritable,
)
from pytest_ortbench.core.run import Machine
from pytest_ortbench.gate.numbers.self_test import Trial
from pytest_ortbench.gate.numbers.stored_trials import StoredTrial

T = TypeVar("T")
L = TypeVar("L", bound="_Log[Any]")


class _Log(Generic[T]):
    """Trials of one kind.

    Attributes:
        path: The file; it need not exist yet.

    Args:
        path: Where the trials lie.
    """

    _folder: ClassVar[str]
    _row: type[T]

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls: type[L], machine: Machine, folder: Path | None = None) -> L:
        """Return the log of a machine, told by its stable facts."""
        root = folder or Path(platformdirs.user_state_dir("ortbench")) / cls._folder
        return cls(root / f"{_digest(machine.stable)}.jsonl")

    def read(self) -> tuple[T, ...]:
        """Return all trials, the oldest first; a torn last line is left out.

        Raises:
            DocumentError: if another line can't be read.
        """
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return ()
        except OSError as error:
            fault, hint = why_unreadable(error)
            raise DocumentError(f"the file {fault}", place=str(self.path), hint=hint) from error
        trials = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            kind = _trial_kind(line)
            if kind not in (None, self._row):
                how = "with" if kind is StoredTrial else "without"
                raise DocumentError(
                    f"the file was written by 'ortbench gate --self-test' {how} --stored",
                    place=str(self.path),
                    hint="Name another file, e.g. "
                    f"--file={shlex.quote(f'{self.path.stem}-2{self.path.suffix}')}",
                )
            try:
                trials.append(msgspec.json.decode(line, type=self._row))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if number == len(lines):
                    continue
                place = f"{self.path}, line {number}"
                hint = "Remove this line. The results of the other lines stay"
                message = f"the line is not a result of a self-test ({first_line(error)})"
                raise DocumentError(message, place=place, hint=hint) from error
        return tuple(trials)

    def append(self, trial: T) -> None:
        """Add a trial.

        Raises:
            DocumentError: if it can't be stored.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as file:
                _drop_torn_line(file)
                file.write(msgspec.json.encode(trial) + b"\n")
        except OSError as error:
            raise DocumentError(
                f"the file {why_unwritable(error, self.path)}",
                place=str(self.path),
                hint="Name a file that you may write, on a disk with free space, e.g. "
                "--file=self-test.jsonl",
            ) from error


class TrialLog(_Log[Trial]):
    """The calibration of one machine: what two sides of one run resolve there."""

    _folder = "gate-self-test"
    _row = Trial


class StoredTrialLog(_Log[StoredTrial]):
    """Runs of the same code on one machine: how far they differ there."""

    _folder = "stored-self-test"
    _row = StoredTrial


def _trial_kind(line: bytes) -> type[object] | None:
    """Which of the self-tests wrote a line; ``None``: neither. One of the first fits both."""
    for row in (Trial, StoredTrial):
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            return type(msgspec.json.decode(line, type=row))
    return None


def _drop_torn_line(file: BinaryIO) -> None:
    """Remove what a process that was killed while it wrote left behind the last whole line."""
    file.seek(0)
    content = file.read()
    if content and not content.endswith(b"\n"):
        file.truncate(content.rfind(b"\n") + 1)


def _digest(stable: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(stable), sort_keys=True).encode()).hexdigest()[:16]
