"""Where the outputs lie that answers of a service are compared with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError


def path_of_reference(case: Case, reference: Callable[[Case], Path] | None) -> str:
    """Return the file of reference outputs of a case that asks a service; empty if it has none.

    Args:
        case: The case; one that writes texts has no outputs to compare.
        reference: Gives the file, or raises a ``WorkerError``; ``None`` for none.
    """
    if reference is None or not case.provider.is_endpoint or case.generation is not None:
        return ""
    try:
        return str(reference(case))
    except WorkerError:
        return ""
