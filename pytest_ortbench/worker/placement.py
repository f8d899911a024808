"""Placement: which provider executed which nodes, proven by the profile of a real run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.arithmetic import WITHOUT_PRODUCTS, is_counted
from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.links import LinkPlacement
from pytest_ortbench.core.measurement import Placement
from pytest_ortbench.core.provider_kinds import WEBGPU
from pytest_ortbench.worker.assignment import Assignment, read_assignment, witness
from pytest_ortbench.worker.node_kinds import COMPUTING, CONTROL, COPY, SHAPE, sort_nodes
from pytest_ortbench.worker.profile_events import CONTROL_FLOW, NodeEvent, read_events

#: Nodes that change the precision instead of computing in one.
_CONVERSIONS = frozenset(
    {"Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"}
)
#: Operators on 4-bit weights. Their other input is float, so that types alone don't tell them.
_FOUR_BIT = frozenset({"MatMulNBits", "MatMulBnb4", "GatherBlockQuantized"})
#: Beginnings of the names of operators that compute on 8-bit integers. They are named since the
#: profile leaves out packed weights, and with dynamic quantisation the activations are float.
_EIGHT_BIT = ("QLinear", "MatMulInteger", "ConvInteger", "DynamicQuantize", "QGemm", "QAttention")

_PRECISIONS = {
    "float": "float32",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "double": "float64",
    "int8": "int8",
    "uint8": "uint8",
}
#: From the narrowest to the widest.
_WIDTH = {
    name: width
    for width, name in enumerate(
        ("int4", "int8", "uint8", "bfloat16", "float16", "float32", "float64")
    )
}
#: Parts of the names of operators made of products, for those that no list holds yet.
_PRODUCTS = ("MatMul", "Gemm", "Conv", "Attention")


def read_profile(
    profile: Path,
    provider: str,
    *,
    links: Sequence[Provider] = (),
    model: str | bytes | None = None,
    session: object | None = None,
    assignment: Assignment | None = None,
) -> Placement:
    """Reduce a profile to the proof of what ran where.

    Each node counts once, however often it ran; times are the mean over the runs in the profile,
    without the first run where there are several, since that one includes what happens only once.
    Control-flow nodes are not counted: the nodes of their bodies stand for them.

    Args:
        profile: File that ``end_profiling`` returned.
        provider: ONNX Runtime's name of the provider that was asked for.
        links: The chain that was asked for, whose first link it is; empty for none.
        model: What was profiled, path or bytes: tells which nodes compute its outputs.
        session: The profiled session, asked for its providers and outputs and, without
            ``assignment``, for its graph assignment.
        assignment: The graph assignment, where it was read before.

    Raises:
        WorkerError: if the profile can't be read.
    """
    recorded = read_events(profile)
    cut = recorded.cut_after is not None
    nodes = {event.key: event for event in recorded.events}
    timed = [event for event in recorded.events if event.run > 0 or recorded.runs == 1]
    timed_runs = max(recorded.runs - 1, 1)

    if assignment is None:
        assignment = (
            read_assignment(session)
            if session is not None
            else Assignment(reason="no witness: the assignment was not read")
        )
    asked = tuple(link.name for link in links) or (provider,)
    kinds = sort_nodes(nodes.values(), model=model, session=session, assignment=assignment)
    outside = {
        node.op
        for node in kinds[COMPUTING] + kinds[SHAPE] + kinds[CONTROL]
        if node.provider not in asked
    }
    executed = _per_provider(kinds[COMPUTING])
    # *Seen*: of WebGPU's nodes the interface names none, or only transpositions that ONNX Runtime
    # put in, and of the others all.
    unnamed = [
        name for name in asked if executed.get(name) and (name == WEBGPU or not assignment.on(name))
    ]
    if assignment.nodes and unnamed:
        reason = f"no witness: the assignment interface does not name the nodes of {unnamed[0]}"
        assignment = Assignment(reason=reason)
    known = bool(assignment.nodes) and not cut
    precisions = _Precisions.of(kinds[COMPUTING], asked)
    partitions = Counter(
        node.provider for node in kinds[COMPUTING] + kinds[SHAPE] if node.partition
    )
    return Placement(
        provider=provider,
        executed={} if cut else executed,
        shape_only={} if cut else _per_provider(kinds[SHAPE]),
        time_ns={} if cut else _time_ns(timed, timed_runs),
        partitions=sum(partitions[name] for name in asked),
        ops_elsewhere=dict(
            sorted(Counter(n.op for n in kinds[COMPUTING] if n.provider not in asked).items())
        ),
        copies=len(kinds[COPY]),
        precision_executed=None if cut else precisions.main,
        products={} if cut else dict(sorted(precisions.products.items())),
        nodes_on_provider=sum(map(assignment.on, asked)) if known else None,
        nodes_total=len(assignment.nodes) if known else None,
        witness=(
            "no witness: the profile broke off"
            if cut
            else witness(assignment, providers=asked, executed_outside=outside)
        ),
        session_providers=_session_providers(session),
        cut_after=recorded.cut_after,
        seen=executed if cut else {},
        links=tuple(
            LinkPlacement(
                provider=link.name,
                label=link.label,
                partitions=partitions[link.name],
                nodes=assignment.on(link.name) if known else None,
            )
            for link in links
        ),
    )


def _per_provider(nodes: Iterable[NodeEvent]) -> dict[str, int]:
    return dict(sorted(Counter(node.provider for node in nodes).items()))


def _time_ns(events: Iterable[NodeEvent], runs: int) -> dict[str, int]:
    total_us: dict[str, int] = {}
    for event in events:
        if event.op not in CONTROL_FLOW:
            total_us[event.provider] = total_us.get(event.provider, 0) + event.own_us
    return {provider: round(us * 1000 / runs) for provider, us in sorted(total_us.items())}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Precisions:
    """Numbers of a provider's nodes by what they read, each node once.

    Time decides nothing: short runs are timed in whole microseconds and move with the machine's
    load, and one graph must not be half precision in one case and single in the next.

    Attributes:
        products: Of those that multiply.
        others: Of the others that compute.
    """

    products: Counter[str]
    others: Counter[str]

    @classmethod
    def of(cls, nodes: Iterable[NodeEvent], asked: Sequence[str]) -> _Precisions:
        """Count the nodes of a provider or chain; none where a partition hides most of the work."""
        found = cls(products=Counter(), others=Counter())
        own = [node for node in nodes if node.provider in asked]
        if any(node.partition for node in own):
            return found
        for node in own:
            precision = None if node.op in _CONVERSIONS else _node_precision(node)
            if precision is not None:
                (found.products if _multiplies(node.op) else found.others)[precision] += 1
        return found

    @property
    def main(self) -> str | None:
        """The precision of most nodes that multiply; of all that compute, if none do.

        Of equal counts the widest stands, so that no precision is claimed without need.
        """
        counts = self.products or self.others
        return max(counts, key=lambda each: (counts[each], _WIDTH[each]), default=None)


def _multiplies(op: str) -> bool:
    return op not in WITHOUT_PRODUCTS and (is_counted(op) or any(kin in op for kin in _PRODUCTS))


def _node_precision(event: NodeEvent) -> str | None:
    if event.op in _FOUR_BIT:
        return "int4"
    types = [value.type for value in event.inputs or event.outputs]
    if event.op.startswith(_EIGHT_BIT):
        return next((kind for kind in types if kind in ("int8", "uint8")), "int8")
    return next((_PRECISIONS[kind] for kind in types if kind in _PRECISIONS), None)


def _session_providers(session: object | None) -> tuple[str, ...]:
    ask = getattr(session, "get_providers", None)
    return tuple(str(name) for name in ask()) if ask is not None else ()
