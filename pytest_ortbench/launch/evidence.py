"""What is known of one refusal, from which a failure is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.schema.protocol import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known about one refusal.

    Attributes:
        refusal: What the worker said.
        log: The native log.
        provider: The asked provider, if there was one.
        custom_ops: Custom operator libraries of the case.
        case: The case, if the question was about one.
    """

    refusal: Refusal
    log: str = ""
    provider: Provider | None = None
    custom_ops: tuple[str, ...] = ()
    case: Case | None = None


#: Recognises one kind of trouble; ``None`` for any other.
Rule = Callable[[Evidence], "Failure | None"]


def failure_of(evidence: Evidence, kind: str, message: str, hint: str = "") -> Failure:
    """Make a failure in the phase of the refusal."""
    return Failure(kind=kind, phase=evidence.refusal.phase, message=message, hint=hint)
