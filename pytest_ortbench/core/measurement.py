"""What one worker process observed of a case: raw facts only.

Times are integers of nanoseconds from a monotonic clock, sizes are bytes. ``None`` means "not
measured", and the reason stands beside it; zero always means zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_ortbench.core.links import LinkPlacement
from pytest_ortbench.core.samples import Samples, WarmUp
from pytest_ortbench.core.yardstick import YardstickTurns

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
        provider: The provider that was asked for, by ONNX Runtime's name; of a chain its first.
        executed: Number of computing node events by provider.
        shape_only: Number of shape-only node events by provider (all inputs and outputs int64,
            int32 or bool of rank 1 at most, or the operator Shape or Size), without those that
            compute an output of the model or come from another domain than the default one.
        time_ns: Time in node events by provider.
        partitions: Fused subgraphs on the asked provider; of a chain, here and below, on any link.
        ops_elsewhere: Count by operator type of computing nodes on other providers.
        copies: Number of copy nodes between devices.
        precision_executed: Input type of most nodes that multiply, each counted once, or of most
            that compute where none multiplies (``float32``); ``None`` where it can't be seen
            (inside a compiled partition).
        products: Number of the provider's nodes that multiply, by the type that they read; empty
            where there are none or they can't be seen.
        product_bits: Bits of the mantissa of float32, 23 at most, that a product keeps in a
            session of the same options; tried where a compiled partition hides the precision of a
            model in float32, and ``None`` elsewhere or where it could not be. Of a chain, the
            fewest of its links that ran partitions.
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
        links: What each link of a chain ran, in their order; empty for a provider by itself.
    """

    provider: str
    executed: dict[str, int]
    shape_only: dict[str, int] = field(default_factory=dict)
    time_ns: dict[str, int] = field(default_factory=dict)
    partitions: int = 0
    ops_elsewhere: dict[str, int] = field(default_factory=dict)
    copies: int = 0
    precision_executed: str | None = None
    products: dict[str, int] = field(default_factory=dict)
    product_bits: int | None = None
    nodes_on_provider: int | None = None
    nodes_total: int | None = None
    witness: str = ""
    session_providers: tuple[str, ...] = ()
    cut_after: int | None = None
    seen: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    links: tuple[LinkPlacement, ...] = ()

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the providers that were asked for: one, or those of the links of a chain."""
        return tuple(link.provider for link in self.links) or (self.provider,)


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
        threads: Intra-op threads in force; 0 where a service has its own.
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
