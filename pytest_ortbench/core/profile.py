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
            moves or rearranges data.
    """

    op: str
    provider: str
    time_ns: int
    nodes: int
    kind: str = "compute"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTime:
    """One node.

    Attributes:
        name: Its name, made up by ONNX Runtime where the graph has none.
        op: Operator type.
        provider: Provider that executed it.
        time_ns: Time in it a run, mean over the profiled runs.
        shapes: Types and shapes of its inputs and outputs: ``float [1,64,56,56] -> …``.
    """

    name: str
    op: str
    provider: str
    time_ns: int
    shapes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorProfile:
    """The profiled run of a case, or why there is none.

    Attributes:
        runs: Profiled runs that count: the faster half of those after the first.
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
        trace: Where the Chrome trace was kept; empty if it was not.
        reason: Why there is no profile; empty otherwise.
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
    trace: str = ""
    reason: str = ""

    @property
    def between_ns(self) -> int:
        """Time of a run in no node: going from one to the next, and what comes before and after.

        Below zero where nodes ran side by side (parallel execution mode).
        """
        return self.run_ns - sum(operator.time_ns for operator in self.operators)

    def share(self, time_ns: int) -> float:
        """Part of the run, 0 if it took no time."""
        return time_ns / self.run_ns if self.run_ns else 0.0
