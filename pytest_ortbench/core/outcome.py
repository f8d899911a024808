"""What came out of a case: raw facts only. Percentiles, ratios and verdicts are derived elsewhere.

Times are integers of nanoseconds from a monotonic clock, sizes are bytes. ``None`` means "not
measured", and the reason stands beside it; zero always means zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.core.accuracy import Accuracy as Accuracy
from pytest_ortbench.core.accuracy import OutputAccuracy as OutputAccuracy
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.failure import CHANGED_FILE as CHANGED_FILE
from pytest_ortbench.core.failure import FAILURE_KINDS as FAILURE_KINDS
from pytest_ortbench.core.failure import Failure as Failure
from pytest_ortbench.core.failure import phases
from pytest_ortbench.core.measurement import CACHE_STATES as CACHE_STATES
from pytest_ortbench.core.measurement import Measurement as Measurement
from pytest_ortbench.core.measurement import Memory as Memory
from pytest_ortbench.core.measurement import OutputCheck as OutputCheck
from pytest_ortbench.core.measurement import Placement as Placement
from pytest_ortbench.core.measurement import RuntimeInfo as RuntimeInfo
from pytest_ortbench.core.measurement import Startup as Startup
from pytest_ortbench.core.precision import Floor
from pytest_ortbench.core.samples import Block as Block
from pytest_ortbench.core.samples import OrderStatistic as OrderStatistic
from pytest_ortbench.core.samples import Samples as Samples
from pytest_ortbench.core.samples import WarmUp as WarmUp
from pytest_ortbench.core.yardstick import YardstickTurns as YardstickTurns
from pytest_ortbench.passes.endurance.facts import Endurance
from pytest_ortbench.passes.energy.facts import Energy
from pytest_ortbench.passes.export_check.facts import ExportCheck
from pytest_ortbench.passes.generation.facts import GenerationCheck
from pytest_ortbench.passes.load.facts import Load
from pytest_ortbench.passes.processes.facts import ProcessPoint
from pytest_ortbench.passes.profile.facts import OperatorProfile
from pytest_ortbench.passes.served.facts import ServiceUse
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.stages.facts import Stages
from pytest_ortbench.passes.startup.facts import StartUps
from pytest_ortbench.passes.task.facts import TaskAccuracy
from pytest_ortbench.passes.together.facts import Together
from pytest_ortbench.passes.transfers.facts import Transfers

#: What a worker may be doing, as it stands after "while".
PHASES: dict[str, str] = phases()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A reason to trust a number less; names and advice stand in :mod:`core.flags`."""

    name: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What both sides answered on the same inputs: raw facts.

    Attributes:
        floor: What the outputs must keep: the looser one of the two sides' precisions.
        compared: The contender's outputs with the baseline's as the reference, or why there are
            none.
        baseline_outputs: Type by name of each output of the baseline, in order.
        contender_outputs: Likewise of the contender.
        baseline_accuracy: The baseline's outputs against its own reference; where the sides differ
            by more than the floor, with how far that reference differs from itself.
        contender_accuracy: Likewise of the contender.
        task: The contender's scores on labelled data, with the baseline's as the reference;
            ``None`` where no data was named.
        random_ops: Operators that draw random numbers, so that no two answers are alike.
        retyped: Whether the precisions of the sides differ, and so may the width of their floats.
        plain: Whether both sides run an fp32 file on the CPU, in fp32.
        drawn: Whether the values of an input that both sides were fed were drawn at random.
    """

    floor: Floor
    compared: Accuracy
    baseline_outputs: dict[str, str] = field(default_factory=dict)
    contender_outputs: dict[str, str] = field(default_factory=dict)
    baseline_accuracy: Accuracy | None = None
    contender_accuracy: Accuracy | None = None
    task: TaskAccuracy | None = None
    random_ops: tuple[str, ...] = ()
    retyped: bool = False
    plain: bool = False
    drawn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShare:
    """What a case had of the time of a run with ``--ort-budget``.

    Attributes:
        given_s: Seconds that it was given when its turn came, for everything; 0 where even the
            least did not fit any more.
        workers: Workers that finished.
        timed_s: Timed seconds that they had together.
        outrun: Whether it got the least because another variant is faster by far.
        ended: Whether it was ended because the run had no more time for it.
    """

    given_s: float
    workers: int = 0
    timed_s: float = 0.0
    outrun: bool = False
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What became of one case.

    Attributes:
        case: What was asked.
        status: ``measured`` or the kind of the failure.
        measurements: One entry a worker that finished.
        placement: Proof of what ran where.
        accuracy: Outputs against the reference.
        product_bits: Bits of the mantissa of float32, 23 at most, that a product keeps on an engine
            that runs ONNX files; ``None`` where it could not be tried, for a model in another
            precision, and on execution providers, whose placement tells it.
        energy: The energy pass, if it was asked for, or why it can't be had.
        profile: Where the time goes by operator, if that was asked for.
        soak: Memory over a long run, if that was asked for.
        endurance: What a service lost under a steady load, likewise.
        loads: What became of each load that was asked for.
        served: What the service of the case takes for a request, if the run started it.
        processes: The case in several processes at a time, one entry a number of them.
        together: The case beside other models, one entry a way to run them.
        transfers: Its values on the host and on the device in turns, if that was asked for.
        start_ups: Starts from fresh processes under known conditions, if asked for.
        stages: The user's stages around inference, if a file of them was given.
        task: Scores on labelled data, if some was named.
        generation: What a language model writes, if it was looked at.
        export_check: The model against the source that it was exported from, if there is one.
        failure: Why there is no number; kept beside measurements that finished before it.
        flags: Reasons to trust the number less.
        started_at: UTC, ISO 8601.
        wall_s: Seconds that the case took altogether.
        other_run: Another run of this package that measured on the machine at the same time; empty
            if there was none.
        budget: What it had of the time of the run; ``None`` where no budget was set.
        shard: Name of the shard that it is of; empty where one machine measured all.
    """

    case: Case
    status: str
    measurements: tuple[Measurement, ...] = ()
    placement: Placement | None = None
    accuracy: Accuracy | None = None
    product_bits: int | None = None
    energy: Energy | None = None
    profile: OperatorProfile | None = None
    soak: Soak | None = None
    endurance: Endurance | None = None
    loads: tuple[Load, ...] = ()
    served: ServiceUse | None = None
    processes: tuple[ProcessPoint, ...] = ()
    together: tuple[Together, ...] = ()
    transfers: Transfers | None = None
    start_ups: StartUps | None = None
    stages: Stages | None = None
    task: TaskAccuracy | None = None
    generation: GenerationCheck | None = None
    export_check: ExportCheck | None = None
    failure: Failure | None = None
    flags: tuple[Flag, ...] = ()
    started_at: str = ""
    wall_s: float = 0.0
    other_run: str = ""
    budget: BudgetShare | None = None
    shard: str = ""

    @property
    def lacks_time(self) -> bool:
        """Whether it gave no number because the budget of the run had no time for it."""
        share = self.budget
        return self.failure is not None and share is not None and (share.ended or not share.given_s)

    @property
    def kept_bits(self) -> int | None:
        """Bits of float32 that products keep, on whatever runs it; ``None`` where none are told."""
        return self.product_bits if self.placement is None else self.placement.product_bits

    @property
    def software_devices(self) -> tuple[str, ...]:
        """What computes in the place of its device; empty for hardware, and where nothing tells."""
        found = {worker.runtime.software_device for worker in self.measurements}
        return tuple(sorted(filter(None, found)))

    @property
    def output_checks(self) -> list[OutputCheck]:
        """What was seen of the outputs, of all workers."""
        return [check for worker in self.measurements for check in worker.output_checks]
