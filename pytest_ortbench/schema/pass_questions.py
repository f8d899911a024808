"""What the host asks in the passes beside the standard one."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.profile import OperatorProfile
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.startup.facts import FurtherShape, StartTrial
from pytest_ortbench.schema.question import (
    CaseQuestion,
    CaseToMeasure,
    Question,
    WrittenFile,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOperators(CaseQuestion[OperatorProfile]):
    """Release the measured session and say where the time goes in a profiled one.

    Attributes:
        keep: Where the profiler's trace goes; empty to keep none.
    """

    keep: WrittenFile = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakFor(CaseQuestion[Soak]):
    """Run on and on, and watch resident memory.

    Attributes:
        seconds: How long.
        shapes: Inputs that are fed in turn, from one caller; empty for the case's own.
    """

    seconds: float
    shapes: tuple[tuple[InputSpec, ...], ...] = ()


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

    case: CaseToMeasure
    engines: str = ""
    page_cache: str = "warm"
    external_files: tuple[str, ...] = ()
    shapes: tuple[FurtherShape, ...] = ()
