"""A model that was asked for but can't be read."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.model import Model
from pytest_ortbench.core.outcome import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableModel:
    """A model that can't be read; it becomes one failed row a target.

    Attributes:
        name: What it is called.
        path: Its file.
        message: What is wrong.
        place: As that of a model.
        is_made: Whether a test made it.
        failure: What happened where a worker failed on it; ``None`` otherwise.
    """

    name: str
    path: str
    message: str
    place: str = ""
    is_made: bool = False
    failure: Failure | None = None

    @property
    def stand_in(self) -> Model:
        """What a case of it says of the model: where it lies, and nothing of its content."""
        return Model(
            name=self.name,
            path=self.path,
            source=f"test:{self.name}" if self.is_made else "file",
            digest="",
            size_bytes=0,
            place="" if self.is_made else self.place,
            is_made=self.is_made,
        )
