"""A model that was asked for but can't be read."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableModel:
    """A model that can't be read; it becomes one failed row a target."""

    name: str
    path: str
    message: str
    place: str = ""
    is_made: bool = False

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
