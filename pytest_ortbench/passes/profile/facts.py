"""Where the time of one inference goes, by operator: raw facts of the profiled run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTime:
    """All nodes of one operator type on one provider, in one run.

    Attributes:
        op: Operator type; a compiled subgraph has the name that its provider gave it.
        provider: Provider that executed them.
        time_ns: Time in them a run, mean over the profiled runs.
        nodes: How many there are.
        kind: ``compute``; ``copy`` between devices; ``cast`` between precisions; ``move``: only
            moves or rearranges data; ``subgraph``: several nodes that the provider compiled.
        macs: Multiply-accumulates a run; ``None`` if those of a node are not known.
        moved_bytes: Bytes that they read and write a run, every value once; ``None`` likewise.
    """

    op: str
    provider: str
    time_ns: int
    nodes: int
    kind: str = "compute"
    macs: int | None = None
    moved_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTime:
    """One node.

    Attributes:
        name: Its name, made up by ONNX Runtime where the graph has none.
        op: Operator type.
        provider: Provider that executed it.
        time_ns: Time in it a run, mean over the profiled runs.
        shapes: Types and shapes of its inputs and outputs: ``float [1,64,56,56] -> …``.
        macs: Multiply-accumulates a run; ``None`` if they are not known.
        moved_bytes: Bytes that it reads and writes a run, every value once; ``None`` likewise.
    """

    name: str
    op: str
    provider: str
    time_ns: int
    shapes: str = ""
    macs: int | None = None
    moved_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """What the provider reaches on this machine, with the threads of the case.

    Attributes:
        macs_per_s: Multiply-accumulates a second of a large matrix product; ``None`` if it can't
            be had.
        bytes_per_s: Bytes a second that an elementwise pass over memory reads and writes; ``None``
            likewise.
        provider: What it was measured through.
        element: Type of the elements of the product: that of the case's own products.
        threads: Intra-op threads in force; other providers than the CPU's have their own.
        product: The product, for people: ``1024 x 1024 x 1024``.
        copy_bytes: Size of what is passed over; much larger than caches are.
        reason: Why a peak is missing; empty if none is.
        macs_trials_per_s: Every measurement behind ``macs_per_s``, which is the best of them.
        bytes_trials_per_s: Likewise of ``bytes_per_s``.
    """

    macs_per_s: float | None = None
    bytes_per_s: float | None = None
    provider: str = ""
    element: str = ""
    threads: int = 0
    product: str = ""
    copy_bytes: int = 0
    reason: str = ""
    macs_trials_per_s: tuple[float, ...] = ()
    bytes_trials_per_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorProfile:
    """The profiled run of a case, or why there is none.

    Attributes:
        runs: Profiled runs that count: those after the first that are in the faster half and near
            the fastest.
        run_ns: Time of one of them, mean: what the times of operators add up to, together with
            the time between nodes.
        plain_ns: Time of one run without the profiler, in the same process before it: median.
        operators: Every operator type on every provider, the slowest first.
        nodes: The slowest nodes.
        node_count: Nodes that ran.
        threads: Intra-op threads in force.
        cpus: CPUs that the process may use.
        asynchronous: Whether the provider's kernels run on after the node's own time is over, so
            that the times are those of starting them.
        device_times: Whether the times of the provider's nodes are those of its device, by the
            device's own clock.
        trace: Where the Chrome trace was kept; empty if it was not.
        reason: Why there is no profile; empty otherwise.
        macs: Multiply-accumulates of a run; ``None`` if those of a node are not known.
        moved_bytes: Bytes that the nodes of a run read and write; ``None`` likewise.
        work_source: What tells them: ``nodes`` that ran, or the ``file`` where a provider runs
            subgraphs of its own.
        peak: What the provider reaches here; ``None`` if it was not measured.
        cpu_ns: CPU time of such a run without the profiler, over all threads; ``None`` if it was
            not read.
        unspun_ns: As ``plain_ns`` with threads that sleep instead of spin when they have no work;
            ``None`` if that was not tried: one thread, or a provider that has no such threads.
        unspun_cpu_ns: CPU time of such a run.
        graph_optimization_level: What the graph was optimised with (``all``); empty if not known.
        mapped_outputs: Outputs that are maps or lists of them, of which each run makes Python's
            dictionaries behind the last node.
        cut_after: Events after which the profiler broke off before a run was over, so that there
            are no shares; ``None`` if it did not. ``reason`` says it for people.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    runs: int = 0
    run_ns: int = 0
    plain_ns: int = 0
    operators: tuple[OperatorTime, ...] = ()
    nodes: tuple[NodeTime, ...] = ()
    node_count: int = 0
    threads: int = 0
    cpus: int = 0
    asynchronous: bool = False
    device_times: bool = False
    trace: str = ""
    reason: str = ""
    macs: int | None = None
    moved_bytes: int | None = None
    work_source: str = ""
    peak: Peak | None = None
    cpu_ns: int | None = None
    unspun_ns: int | None = None
    unspun_cpu_ns: int | None = None
    graph_optimization_level: str = ""
    mapped_outputs: tuple[str, ...] = ()
    cut_after: int | None = None
    interrupted: bool = False

    @property
    def between_ns(self) -> int:
        """Time of a run in no node: going from one to the next, and what comes before and after.

        Below zero where nodes ran side by side (parallel execution mode).
        """
        return self.run_ns - sum(operator.time_ns for operator in self.operators)

    def share(self, time_ns: int) -> float:
        """Part of the run, 0 if it took no time."""
        return time_ns / self.run_ns if self.run_ns else 0.0
