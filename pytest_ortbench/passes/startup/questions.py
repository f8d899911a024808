"""What the host asks in the start-up pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pytest_ortbench.passes.startup.facts import FurtherShape, StartTrial
from pytest_ortbench.schema.question import CaseToMeasure, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUp(Question[StartTrial]):
    """Open a case under known conditions, then run every further shape for the first time.

    Attributes:
        case: What to start.
        engines: Folder of engines that the provider builds; empty keeps none.
        page_cache: State of the model's files: ``cold`` or ``warm``.
        external_files: External data of the model, relative to its folder.
        shapes: Further shapes.
    """

    opens_session: ClassVar[bool] = True

    case: CaseToMeasure
    engines: str = ""
    page_cache: str = "warm"
    external_files: tuple[str, ...] = ()
    shapes: tuple[FurtherShape, ...] = ()
