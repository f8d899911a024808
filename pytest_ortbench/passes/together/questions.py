"""What the host asks where other models run in the process of a case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pytest_ortbench.core.samples import Block
from pytest_ortbench.schema.question import CaseQuestion, CaseToMeasure


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideBlock:
    """A block of the case, and what ran beside it.

    Attributes:
        block: The inferences of the case.
        neighbour_runs: Inferences that the least busy neighbour finished meanwhile.
    """

    block: Block
    neighbour_runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBeside(CaseQuestion[None]):
    """Make the session of another case in this process, and run it until it is warm.

    Attributes:
        case: The neighbour.
        budget_s: What its warm-up takes at most.
    """

    opens_session: ClassVar[bool] = True

    case: CaseToMeasure
    budget_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBeside(CaseQuestion[BesideBlock]):
    """Time so many inferences while all neighbours of this process run."""

    iterations: int
