"""What a run suggests to do next, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.core.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """One suggestion.

    Attributes:
        kind: ``workers``, ``turns``, ``idle``, ``time``, ``accuracy``, ``inputs``, ``threads``,
            ``profile``, ``precision`` or ``gate``.
        why: What of the run suggests it, for people.
        options: What is added to the command line of the run, by flag; empty for a profile, for the
            errors of nodes, and where the same is measured again.
        case_id: The case that is profiled; empty for others.
        wrong: The case whose nodes are compared with those of its reference; ``None`` for others.
    """

    kind: str
    why: str
    options: dict[str, str] = field(default_factory=dict)
    case_id: str = ""
    wrong: Case | None = None
