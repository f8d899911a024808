"""What a worker holds between two questions, whether a case is open or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from pytest_ortbench.worker import runtime

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


class OpenCase(Protocol):
    """The case that is open, as far as a refusal tells of it."""

    session: InferenceSession | None
    feeds: Mapping[str, object]


class WorkerState:
    """What handlers of questions share.

    Attributes:
        enter: Called with each phase as it begins.
        measured: The case that is open; ``None`` before.
        kept: What handlers keep from one question to the next, by a name of theirs.
        at_end: What is to be done when the worker ends; safe to repeat.

    Args:
        enter: Called with each phase as it begins.
    """

    def __init__(self, enter: Callable[[str], None]) -> None:
        self.enter = enter
        self.measured: OpenCase | None = None
        self.kept: dict[str, object] = {}
        self.at_end: list[Callable[[], None]] = []

    def import_runtime(self) -> None:
        """Import ONNX Runtime, in a phase of its own."""
        self.enter("import")
        runtime.load()

    def end(self) -> None:
        """Leave nothing behind; safe to repeat."""
        for undo in self.at_end:
            undo()
