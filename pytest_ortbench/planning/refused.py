"""A combination that can't run as it was asked."""

from __future__ import annotations

from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.outcome import Failure


class Refused(OrtbenchError):
    """A combination that can't run as it was asked; it becomes a row, and the others go on."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message, hint=failure.hint)


def refusal(message: str, *, hint: str = "") -> Refused:
    """Make one of kind ``unsupported`` about the inputs."""
    return Refused(Failure(kind="unsupported", phase="inputs", message=message, hint=hint))
