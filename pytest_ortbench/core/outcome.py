"""What came out of a case: raw facts only. Percentiles, ratios and verdicts are derived elsewhere.

Times are integers of nanoseconds from a monotonic clock, sizes are bytes. ``None`` means "not
measured", and the reason stands beside it; zero always means zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.core.accuracy import Accuracy as Accuracy
from pytest_ortbench.core.accuracy import OutputAccuracy as OutputAccuracy
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.placing import Place, placed
from pytest_ortbench.core.precision import Floor
from pytest_ortbench.core.samples import Block as Block
from pytest_ortbench.core.samples import OrderStatistic as OrderStatistic
from pytest_ortbench.core.samples import Samples as Samples
from pytest_ortbench.core.samples import WarmUp as WarmUp
from pytest_ortbench.core.yardstick import YardstickTurns as YardstickTurns
from pytest_ortbench.passes.energy.facts import Energy
from pytest_ortbench.passes.export_check.facts import ExportCheck
from pytest_ortbench.passes.generation.facts import GenerationCheck
from pytest_ortbench.passes.load.facts import Load
from pytest_ortbench.passes.processes.facts import ProcessPoint
from pytest_ortbench.passes.profile.facts import OperatorProfile
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.stages.facts import Stages
from pytest_ortbench.passes.startup.facts import StartUps
from pytest_ortbench.passes.task.facts import TaskAccuracy

#: Every way in which a case can fail to give a number.
FAILURE_KINDS: dict[str, str] = {
    "unsupported": "the model, operator set, precision or shape is not supported there",
    "unavailable": "the provider, device or library is not available here",
    "fallback": "the provider exists, but ran no computing node or left the requested device",
    "out_of_memory": "memory ran out",
    "timeout": "the case took longer than --ort-timeout",
    "crash": "the measured process died",
    "error": "anything else",
}

#: The phase in which a file turns out to be another one than was planned; nothing that was
#: measured before is kept.
CHANGED_FILE = "digest"

_STANDARD_PHASES: dict[str, str] = {
    "start": "starting the interpreter",
    "files": "copying files to the runtime",
    CHANGED_FILE: "checking its files",
    "import": "importing ONNX Runtime or another engine",
    "export": "exporting the model",
    "convert": "converting the model",
    "plug-ins": "loading plug-in providers",
    "inputs": "preparing inputs",
    "session": "creating the session",
    "first": "running the first inference",
    "warm-up": "warming up",
    "measure": "measuring",
    "memory": "reading memory",
    "profile": "profiling placement",
    "accuracy": "comparing outputs",
    "reference": "computing the reference",
    "close": "shutting down",
}

#: What a worker is doing, as it stands after "while"; a failure names the phase it happened in.
PHASES: dict[str, str] = dict(
    placed(
        _STANDARD_PHASES.items(),
        [
            (
                Place(after="reference", rank=entry.phase.rank),
                (entry.phase.name, entry.phase.doing),
            )
            for entry in PASSES
            if entry.phase is not None
        ],
        lambda phase: phase[0],
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a case gave no number.

    Attributes:
        kind: A key of :data:`FAILURE_KINDS`.
        phase: A key of :data:`PHASES`.
        message: One line in plain words, with the native message where there is one.
        hint: The next step, empty where none is known.
        exit_code: Exit code of the worker, if it exited.
        signal: Name of the signal that ended it (``SIGSEGV``), empty if none did.
        log_tail: Last lines of what native code printed.
        tells_phase: Whether the message itself says what the worker was doing.
        tells_signal: Whether the message itself names the signal.
    """

    kind: str
    phase: str
    message: str
    hint: str = ""
    exit_code: int | None = None
    signal: str = ""
    log_tail: str = ""
    tells_phase: bool = False
    tells_signal: bool = False

    @property
    def doing(self) -> str:
        """What the worker was doing; empty where the message says so itself."""
        return "" if self.tells_phase else PHASES.get(self.phase, self.phase)


#: States in which a provider, or an engine, may find its own cache of what it compiles.
CACHE_STATES = ("none", "cold", "warm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """What happens once, before steady state.

    Attributes:
        import_ns: Importing ONNX Runtime, or the engine or framework.
        session_create_ns: Creating the session (reading the file included).
        first_inference_ns: The first call of the first shape.
        cache: State of the provider's own cache, one of :data:`CACHE_STATES`.
        provider_init_ns: Loading the provider's libraries and making its device context, through
            a tiny session before the case's own, which therefore does not include it; ``None``
            where there is nothing to initialise (the CPU).
        build_ns: Making the model of its source, weights included, in a framework; ``None`` for
            what reads an ONNX file.
        compile_ns: Compiling the model ahead, by an engine that does so; ``None`` for others.
        compiled_bytes: Size of what came of that; ``None`` where it is not known.
    """

    import_ns: int
    session_create_ns: int
    first_inference_ns: int
    cache: str = "none"
    provider_init_ns: int | None = None
    build_ns: int | None = None
    compile_ns: int | None = None
    compiled_bytes: int | None = None

    @property
    def answer_ns(self) -> int | None:
        """The first inference; ``None`` if it took no time: then nobody timed it."""
        return self.first_inference_ns or None

    @property
    def ready_ns(self) -> int | None:
        """From the import to the first answer, all parts together; ``None`` without an answer."""
        if self.answer_ns is None:
            return None
        once = (self.provider_init_ns or 0) + (self.build_ns or 0) + (self.compile_ns or 0)
        return self.import_ns + once + self.session_create_ns + self.answer_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Resident memory of the measured process.

    Attributes:
        source: ``VmHWM after clear_refs``, ``sampled RSS``, …; what the numbers include.
        baseline_bytes: Resident size after importing and before the session.
        session_bytes: Rise over the baseline at the peak of session creation.
        after_session_bytes: Rise over the baseline once the session exists.
        peak_bytes: Rise over the baseline at the highest point, session and runs.
        after_runs_bytes: Rise over the baseline after the runs.
        process_peak_bytes: Absolute peak of the process.
        device_bytes: Device memory, ``None`` where there is none or it can't be read.
        device_source: How it was read, or why it could not be.
        device_neighbours: Other processes that computed on the device before or after our runs;
            ``None`` where that can't be read.
        device: UUID of the device that was read, empty where none was.
    """

    source: str
    baseline_bytes: int | None = None
    session_bytes: int | None = None
    after_session_bytes: int | None = None
    peak_bytes: int | None = None
    after_runs_bytes: int | None = None
    process_peak_bytes: int | None = None
    device_bytes: int | None = None
    device_source: str = ""
    device_neighbours: int | None = None
    device: str = ""

    @property
    def whole_process_bytes(self) -> int | None:
        """Peak of the process; ``None`` for a size of 0, too: that is what no process has."""
        return self.process_peak_bytes or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which provider executed the nodes, from a profiled run.

    Attributes:
        provider: The provider that was asked for, by ONNX Runtime's name.
        executed: Number of computing node events by provider.
        shape_only: Number of shape-only node events by provider (all inputs and outputs int64,
            int32 or bool of rank 1 at most, or the operator Shape or Size), without those that
            compute an output of the model or come from another domain than the default one.
        time_ns: Time in node events by provider.
        partitions: Fused subgraphs on the asked provider.
        ops_elsewhere: Count by operator type of computing nodes on other providers.
        copies: Number of copy nodes between devices.
        precision_executed: Input type of most nodes that multiply, each counted once, or of most
            that compute where none multiplies (``float32``); ``None`` where it can't be seen
            (inside a compiled partition).
        nodes_on_provider: Nodes of the graph assigned to the provider, by the assignment
            interface; ``None`` where the runtime does not offer it.
        nodes_total: All nodes that the assignment interface names.
        witness: ``agrees``, or how assignment and profile differ, or why there is no witness.
        session_providers: What the session itself lists.
        cut_after: Events after which the profile broke off before any of its runs was complete;
            ``None`` for a whole profile. Then nothing is kept that could be read as the placement
            of the whole model: ``executed``, ``shape_only`` and ``time_ns`` are empty, and the
            numbers of assigned nodes ``None``.
        seen: Number of computing node events by provider before the profile broke off; empty for a
            whole profile.
        reason: Why there is no profile at all; empty if there is one.
    """

    provider: str
    executed: dict[str, int]
    shape_only: dict[str, int] = field(default_factory=dict)
    time_ns: dict[str, int] = field(default_factory=dict)
    partitions: int = 0
    ops_elsewhere: dict[str, int] = field(default_factory=dict)
    copies: int = 0
    precision_executed: str | None = None
    nodes_on_provider: int | None = None
    nodes_total: int | None = None
    witness: str = ""
    session_providers: tuple[str, ...] = ()
    cut_after: int | None = None
    seen: dict[str, int] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeInfo:
    """What a worker observed about its own interpreter.

    Attributes:
        distributions: Installed ONNX Runtime distributions with versions.
        version: ``onnxruntime.__version__``.
        python: Python version.
        numpy: numpy version.
        executable: Path of the interpreter.
        available_providers: ``get_available_providers()``: a claim, not a proof.
        plugin_providers: Providers whose plug-in library offers a device here, by full name.
        plugin_libraries: Plug-in libraries that were found, by full name of their provider.
        plugin_problems: Why a plug-in that was found offers no device here, by its full name.
        provider_devices: What can stand behind the colon of ``alias:DEVICE``, by full name of
            providers that say it, each kind of hardware once.
        build: ``get_build_info()``.
        pid: Process id of the worker that reported.
        devices: NVIDIA GPUs by UUID, name and driver; empty where the runtime could not use one
            or NVML is not readable.
        host: Name of the machine that it runs on, a container's or another one's (``ssh``) too.
        engine: Alias of the engine that ran the case; ``version`` is empty then.
        engine_version: What the engine says its version is.
        variables: Variables of its environment that decide which devices and drivers it finds.
        software_device: What computes on the CPU in the place of the case's device
            (``SwiftShader``); empty where it is hardware, or nothing tells.
    """

    distributions: dict[str, str]
    version: str
    python: str
    numpy: str
    executable: str
    available_providers: tuple[str, ...] = ()
    plugin_providers: tuple[str, ...] = ()
    plugin_libraries: dict[str, str] = field(default_factory=dict)
    plugin_problems: dict[str, str] = field(default_factory=dict)
    provider_devices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    build: str = ""
    pid: int = 0
    devices: dict[str, str] = field(default_factory=dict)
    host: str = ""
    engine: str = ""
    engine_version: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    software_device: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCheck:
    """Outputs of the measured loop itself, looked at outside the timed region.

    Attributes:
        run: ``first``, ``middle`` or ``last``.
        nonfinite: NaN and infinite values in all float outputs.
        constant: Whether every float output of more than one value is one repeated value.
        digest: Hash over all outputs.
        norm: Square root of the sum of squares of all finite float values; ``None`` without any.
        subnormal: Subnormal numbers in all float outputs.
        nonfinite_inputs: NaN and infinite values in all float inputs of the run.
        empty: Whether no output holds a value.
    """

    run: str
    nonfinite: int
    constant: bool
    digest: str
    norm: float | None = None
    subnormal: int = 0
    nonfinite_inputs: int = 0
    empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """All that one worker process measured of one case.

    Attributes:
        worker: Index of the worker, from 0.
        runtime: The interpreter it ran in.
        startup: What happened once.
        warm_up: The discarded runs.
        samples: The steady state.
        memory: Resident and device memory.
        threads: Intra-op threads in force.
        threads_source: Why that number: ``option``, ``affinity``, ``cgroup v2 quota``, ….
        cpus: CPUs that the process may use (a quota counts as its ceiling).
        options_in_force: Provider options that the session reads back, as far as that confirms
            anything.
        unconfirmed: Options of session and provider of which nothing proves that they do
            something, and why.
        output_checks: First, middle and last run.
        stop: Why the measuring ended: ``target``, ``budget`` or ``timeout``.
        overhead_ns: Wall time of this worker outside warm-up and timed blocks.
        yardstick: Its blocks and those of a yardstick, or why there was none; ``None`` where nobody
            asked.
    """

    worker: int
    runtime: RuntimeInfo
    startup: Startup
    warm_up: WarmUp
    samples: Samples
    memory: Memory
    threads: int = 0
    threads_source: str = ""
    cpus: int = 0
    options_in_force: dict[str, str] = field(default_factory=dict)
    unconfirmed: dict[str, str] = field(default_factory=dict)
    output_checks: tuple[OutputCheck, ...] = ()
    stop: str = "budget"
    overhead_ns: int = 0
    yardstick: YardstickTurns | None = None


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
        energy: The energy pass, if it was asked for, or why it can't be had.
        profile: Where the time goes by operator, if that was asked for.
        soak: Memory over a long run, if that was asked for.
        loads: What became of each load that was asked for.
        processes: The case in several processes at a time, one entry a number of them.
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
    """

    case: Case
    status: str
    measurements: tuple[Measurement, ...] = ()
    placement: Placement | None = None
    accuracy: Accuracy | None = None
    energy: Energy | None = None
    profile: OperatorProfile | None = None
    soak: Soak | None = None
    loads: tuple[Load, ...] = ()
    processes: tuple[ProcessPoint, ...] = ()
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

    @property
    def lacks_time(self) -> bool:
        """Whether it gave no number because the budget of the run had no time for it."""
        share = self.budget
        return self.failure is not None and share is not None and (share.ended or not share.given_s)

    @property
    def output_checks(self) -> list[OutputCheck]:
        """What was seen of the outputs, of all workers."""
        return [check for worker in self.measurements for check in worker.output_checks]
