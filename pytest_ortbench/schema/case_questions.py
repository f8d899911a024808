"""What the host asks to measure a case: to open it, and then all that the standard pass needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pytest_ortbench.core.accuracy import Accuracy
from pytest_ortbench.core.measurement import Memory, OutputCheck, Placement, RuntimeInfo, Startup
from pytest_ortbench.core.samples import Block, WarmUp
from pytest_ortbench.schema.question import CaseQuestion, CaseToMeasure, Question, ReadFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The session exists and ran once.

    Attributes:
        info: The interpreter.
        startup: What happened once: import, session creation, first inference.
        threads: Intra-op threads in force.
        threads_source: Why that number.
        cpus: CPUs that the process may use.
        options_in_force: What the session reads back for the asked provider.
        clock_pair_ns: Cost of a pair of clock readings.
        impossible: Why passes can't be carried out there, by their names.
        unconfirmed: Options of session and provider that nothing confirms, and why not.
    """

    info: RuntimeInfo
    startup: Startup
    threads: int
    threads_source: str
    cpus: int
    options_in_force: dict[str, str]
    clock_pair_ns: int
    impossible: dict[str, str] = field(default_factory=dict)
    unconfirmed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(Question[Opened]):
    """Make inputs and session, and run the first inference.

    Attributes:
        case: What to measure.
        engines: Folder for engines that providers build, kept for the other workers of the run;
            empty keeps none.
        why_not: What says why a pass can't be carried out on the provider, by the pass's name.
    """

    opens_session: ClassVar[bool] = True

    case: CaseToMeasure
    engines: str = ""
    why_not: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUpFor(CaseQuestion[WarmUp]):
    """Run untimed work until no trend is left, ``budget_s`` seconds at most."""

    budget_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBlock(CaseQuestion[Block]):
    """Time ``iterations`` single inferences in a row, after ``untimed`` ones."""

    iterations: int
    untimed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutputs(CaseQuestion[OutputCheck]):
    """Look at the outputs of one more, untimed inference. ``run``: first, middle or last."""

    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMemory(CaseQuestion[Memory]):
    """Say how much memory session and runs took; to be asked before a session is profiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePlacement(CaseQuestion[Placement]):
    """Release the measured session and prove in a profiled one what runs where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOrder(CaseQuestion[Placement]):
    """Prove what runs where with the links of the case's chain in another order.

    Attributes:
        order: Places of the links in the case's chain, in the order to try.
    """

    order: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBits:
    """What a product of float32 kept.

    Attributes:
        bits: Of the mantissa, 23 at most; ``None`` where nothing was multiplied.
    """

    bits: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TryProduct(CaseQuestion[KeptBits]):
    """Multiply float32 with the identity on the engine of the case, in a model of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOutputs(CaseQuestion[Accuracy]):
    """Compare outputs with those in the file ``reference``."""

    reference: ReadFile
