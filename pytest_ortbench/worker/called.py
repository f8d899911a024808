"""What is called with inputs and gives outputs, whoever computes these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Declared(Protocol):
    """One declared input or output of a session."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...


class Session(Protocol):
    """What is needed of ``onnxruntime.InferenceSession``."""

    def get_inputs(self) -> Sequence[Declared]: ...

    def get_outputs(self) -> Sequence[Declared]: ...

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, object], /
    ) -> Sequence[object]: ...
