"""Labelled data as an input of cases: what was asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Labelled data as it was asked for.

    Attributes:
        path: Absolute path of an ``.npz`` file, or of a Python file.
        function: Name of the function in the Python file; empty for an ``.npz`` file.
    """

    path: str
    function: str = ""

    @property
    def label(self) -> str:
        """For people: ``digits.npz``, ``digits.py:validation``."""
        name = PurePath(self.path).name
        return f"{name}:{self.function}" if self.function else name
