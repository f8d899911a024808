"""A failure in one call, and the error that carries it out of a worker or a plan."""

from __future__ import annotations

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failure import Failure


def case_failure(
    message: str, hint: str = "", *, kind: str = "unsupported", phase: str = "inputs"
) -> Failure:
    """Return why a case gives no number; unless told otherwise it can't be fed what was asked.

    Args:
        message: One line in plain words.
        hint: The next step, empty where none is known.
        kind: A key of :data:`~pytest_ortbench.core.failure.FAILURE_KINDS`.
        phase: A key of :func:`~pytest_ortbench.core.failure.phases`.
    """
    return Failure(kind=kind, phase=phase, message=message, hint=hint)


def case_error(
    message: str, hint: str = "", *, kind: str = "unsupported", phase: str = "inputs"
) -> WorkerError:
    """Return the error that carries such a failure.

    Args:
        message: One line in plain words.
        hint: The next step, empty where none is known.
        kind: A key of :data:`~pytest_ortbench.core.failure.FAILURE_KINDS`.
        phase: A key of :func:`~pytest_ortbench.core.failure.phases`.
    """
    return WorkerError(case_failure(message, hint, kind=kind, phase=phase))
