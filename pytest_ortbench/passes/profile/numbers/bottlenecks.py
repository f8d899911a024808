"""What bounds an inference, told from its operator profile, each hint with the share behind it."""

from __future__ import annotations

from collections.abc import Callable

from pytest_ortbench.core.units import counted, format_amount, significant
from pytest_ortbench.passes.profile.facts import OperatorProfile
from pytest_ortbench.passes.profile.numbers.peaks import DISAGREE, disagreement
from pytest_ortbench.passes.profile.numbers.roofline import model_rate, operator_rate

#: Shares of the run from which something is worth a hint.
ONE_OPERATOR = 0.5
BETWEEN = 0.2
COPIES = 0.1
CASTS = 0.05
MOVES = 0.25
#: Share of the run in operators that are near the peak rate of memory, and how near that is.
STREAMS, NEAR_MEMORY = 0.4, 0.5
#: Share of the peak rate of arithmetic over the whole run.
NEAR_COMPUTE = 0.5
#: Share of that peak from which it can't be one. A convolution may beat a matrix product a little.
BEYOND_PEAK = 1.2
#: A share that is shown as more than 100 %.
ABOVE = 1.005
#: Share of the CPU time that threads spend waiting in a loop.
SPINNING = 0.25

#: Nodes as short as this cost about as much to start as to run; where operators of such nodes take
#: this share of the run, starting them bounds it.
SHORT_NODE_NS, SHORT_NODES = 5_000, 0.5
#: The profiler itself slows a run down; from here on its shares are to be read with care, and
#: from there on nothing is said of launches and small operators.
OVERHEAD = 0.3
BLINDING = 1.0

#: Operator types whose inner loop is a matrix product or a convolution.
_PRODUCTS = ("MatMul", "Gemm", "Conv", "Attention", "QLinear", "LSTM", "GRU", "FusedMatMul")


#: Element types of a product below which no precision is faster, and operators that read them.
_LOWEST, _OF_LOWEST = ("int8", "uint8", "int4", "uint4"), ("QLinear", "Integer", "NBits")


def hints(profile: OperatorProfile) -> tuple[str, ...]:
    """Return what stands out, the weightiest first; nothing where there is no profile."""
    if profile.reason or not profile.operators:
        return ()
    return tuple(text for rule in _RULES if (text := rule(profile)))


def kind_share(profile: OperatorProfile, kind: str) -> float:
    """Share of the run in operators of a kind."""
    return profile.share(
        sum(operator.time_ns for operator in profile.operators if operator.kind == kind)
    )


def copy_shares(profile: OperatorProfile) -> tuple[float, float]:
    """Shares of the run in copies from host to device, and from device to host.

    ONNX Runtime puts ``MemcpyFromHost`` and ``MemcpyToHost`` between nodes of different providers;
    a provider that copies within its own nodes shows none.
    """
    to_device, to_host = (
        profile.share(sum(operator.time_ns for operator in profile.operators if operator.op == op))
        for op in ("MemcpyFromHost", "MemcpyToHost")
    )
    return to_device, to_host


def spinning_share(profile: OperatorProfile) -> float | None:
    """Share of the CPU time of a run that goes away when waiting threads sleep; ``None`` unknown.

    Zero where sleeping costs as much.
    """
    if not profile.cpu_ns or profile.unspun_cpu_ns is None:
        return None
    return max(0.0, 1 - profile.unspun_cpu_ns / profile.cpu_ns)


def _one_operator(profile: OperatorProfile) -> str:
    largest = profile.operators[0]
    share = profile.share(largest.time_ns)
    if share < ONE_OPERATOR or largest.kind == "subgraph":
        return ""
    nodes = f"{largest.nodes} nodes" if largest.nodes > 1 else "one node"
    is_product, is_lowest = largest.op.startswith(_PRODUCTS), _is_lowest(profile, largest.op)
    lower = "" if is_lowest else "a lower precision or "
    advice = (
        f"{lower}a provider with faster kernels helps most"
        if is_product or is_lowest
        else "look for a fused or cheaper form of it"
    )
    reached = operator_rate(profile, largest).compute_share
    if reached and is_product:
        advice = f"it reaches {reached:.0%} of the peak rate of arithmetic; {advice}"
    return f"limited by one operator: {largest.op} takes {share:.0%} in {nodes}; {advice}"


def _is_lowest(profile: OperatorProfile, op: str = "") -> bool:
    """Whether products are computed in a type below which no precision is faster."""
    if any(part in op for part in _OF_LOWEST):
        return True
    return profile.peak is not None and profile.peak.element in _LOWEST


def _compiled(profile: OperatorProfile) -> str:
    share = kind_share(profile, "subgraph")
    if share < ONE_OPERATOR:
        return ""
    count = sum(operator.nodes for operator in profile.operators if operator.kind == "subgraph")
    return (
        f"{share:.0%} in {count} subgraph{'s' if count > 1 else ''} that the provider compiled: "
        "only the provider's own tools show what takes the time in them"
    )


def _launch(profile: OperatorProfile) -> str:
    between = profile.share(max(0, profile.between_ns))
    short_ns = sum(
        operator.time_ns
        for operator in profile.operators
        if operator.time_ns < SHORT_NODE_NS * max(operator.nodes, 1)
    )
    short = profile.share(short_ns) >= SHORT_NODES
    if (between < BETWEEN and not short) or _overhead_of(profile) > BLINDING:
        return ""
    mean_ns = sum(operator.time_ns for operator in profile.operators) / max(profile.node_count, 1)
    if profile.node_count < 2:
        return (
            f"limited by the call: {between:.0%} of the run is outside its only node; a larger "
            "batch helps"
        )
    # Advice that is followed already is none.
    fusion = (
        "" if profile.graph_optimization_level == "all" else "more fusion (--ort-graph-opt=all) "
    )
    more = f", {fusion}or" if fusion else " or"
    return (
        f"limited by the start of nodes: {profile.node_count} nodes of "
        f"{format_amount(mean_ns * 1e-9, 's')} on average, {between:.0%} of the run between "
        f"them; a larger batch{more} a captured graph helps"
    )


def _transfer(profile: OperatorProfile) -> str:
    share = kind_share(profile, "copy")
    if share < COPIES:
        return ""
    copies = sum(operator.nodes for operator in profile.operators if operator.kind == "copy")
    to_device, to_host = copy_shares(profile)
    return (
        f"limited by transfers: {share:.0%} in {copies} copies between devices ({to_device:.0%} "
        f"to the device, {to_host:.0%} to the host); placement shows which operators the "
        "provider did not run"
    )


def _casts(profile: OperatorProfile) -> str:
    share = kind_share(profile, "cast")
    if share < CASTS:
        return ""
    return (
        f"{share:.0%} in casts between precisions; convert the whole model, or exclude those nodes"
    )


def _memory(profile: OperatorProfile) -> str:
    share = kind_share(profile, "move")
    if _overhead_of(profile) > BLINDING:
        return ""
    if share < MOVES:
        return _streams(profile)
    named = [operator.op for operator in profile.operators if operator.kind == "move"][:3]
    return (
        f"limited by memory: {share:.0%} in operators that only move data ({', '.join(named)}); "
        "another layout or fusion helps; faster arithmetic does not"
    )


def _streams(profile: OperatorProfile) -> str:
    """Operators that read and write nearly as fast as memory allows."""
    near = [
        operator
        for operator in profile.operators
        if (rate := operator_rate(profile, operator)).bound == "memory"
        and (rate.memory_share or 0.0) >= NEAR_MEMORY
    ]
    share = profile.share(sum(node.time_ns for node in near))
    if share < STREAMS:
        return ""
    named = ", ".join(node.op for node in near[:3])
    return (
        f"limited by memory: {share:.0%} in operators that read and write about as fast as memory "
        f"allows ({named}); smaller types or fusion help; faster arithmetic does not"
    )


def _compute(profile: OperatorProfile) -> str:
    rate = model_rate(profile)
    if rate.bound != "compute" or (rate.compute_share or 0.0) < NEAR_COMPUTE:
        return ""
    helps = "less arithmetic" if _is_lowest(profile) else "less arithmetic or a lower precision"
    return (
        f"limited by compute: the run reaches {rate.compute_share:.0%} of what a large matrix "
        f"product does here; {helps} helps; little else does"
    )


def _threads(profile: OperatorProfile) -> str:
    if not 0 < profile.cpus < profile.threads:
        return ""
    return (
        f"{profile.threads} threads on {counted(profile.cpus, 'CPU')}: they wait for each other; "
        f"--ort-threads={profile.cpus}"
    )


def _spinning(profile: OperatorProfile) -> str:
    share = spinning_share(profile)
    if share is None or share < SPINNING or profile.cpu_ns is None or profile.unspun_ns is None:
        return ""
    plain, slept = (format_amount(ns * 1e-9, "s") for ns in (profile.plain_ns, profile.unspun_ns))
    return (
        f"spinning: {share:.0%} of the CPU time is threads that wait for work; with "
        f"--ort-spinning=off they sleep, and a run takes {slept} in place of {plain}"
    )


def _asynchronous(profile: OperatorProfile) -> str:
    if not profile.asynchronous:
        return ""
    return (
        "the provider's kernels continue after their nodes: the times are those of starting "
        "them, and the wait for the last one is counted between the nodes or in the copy of "
        "the outputs"
    )


def _device_times(profile: OperatorProfile) -> str:
    if not profile.device_times:
        return ""
    return (
        "the times of the device's nodes are those of its own clock, and copies to the host are "
        "timed without their wait for it; between the nodes the host records and waits"
    )


def _low_peak(profile: OperatorProfile) -> str:
    """A share of the arithmetic's peak above one."""
    highest, name = _highest(profile, "compute_share")
    if highest < ABOVE:
        return ""
    if highest < BEYOND_PEAK:
        return (
            f"{name} reaches {highest:.0%} of the peak rate of arithmetic: more than the large "
            "matrix product that stands for the peak"
        )
    return (
        f"{name} reaches {highest:.0%} of the peak rate of arithmetic, so something else ran "
        "while the peak was measured, and shares of it are too high; profile again on an "
        "idle machine"
    )


def _cached(profile: OperatorProfile) -> str:
    """A share of the memory's peak above one."""
    highest, name = _highest(profile, "memory_share")
    if highest < ABOVE:
        return ""
    return (
        f"{name} reads and writes at {highest:.0%} of the peak rate of memory: its values were "
        "still in a cache"
    )


def _highest(profile: OperatorProfile, which: str) -> tuple[float, str]:
    """The highest share of a ceiling that is shown anywhere, and of what."""
    rates = [(operator_rate(profile, operator), operator.op) for operator in profile.operators]
    rates += [(operator_rate(profile, node), node.op) for node in profile.nodes]
    rates.append((model_rate(profile), "the whole run"))
    return max(((getattr(rate, which) or 0.0, name) for rate, name in rates), key=lambda p: p[0])


def _unsteady_peak(profile: OperatorProfile) -> str:
    peak = profile.peak
    if peak is None:
        return ""
    for trials, unit, resource in (
        (peak.macs_trials_per_s, "GMAC/s", "arithmetic"),
        (peak.bytes_trials_per_s, "GB/s", "memory"),
    ):
        if disagreement(trials) > DISAGREE:
            low, high = (significant(rate / 1e9) for rate in (min(trials), max(trials)))
            return (
                f"the peak rate of {resource} was measured as {low} to {high} {unit}: something "
                "else ran at that time; the highest value is used, and shares of it may "
                "still be too high"
            )
    return ""


def dictionaries_ns(profile: OperatorProfile) -> int:
    """Time behind the last node, in which Python makes dictionaries of an output; 0 if little."""
    behind_ns = profile.plain_ns - profile.run_ns
    if not profile.mapped_outputs or not profile.run_ns or behind_ns <= BETWEEN * profile.plain_ns:
        return 0
    return behind_ns


def _dictionaries(profile: OperatorProfile) -> str:
    behind_ns = dictionaries_ns(profile)
    if not behind_ns:
        return ""
    return (
        f"{behind_ns / profile.plain_ns:.0%} of a run ({format_amount(behind_ns * 1e-9, 's')} of "
        f"{format_amount(profile.plain_ns * 1e-9, 's')}) is Python making dictionaries of "
        f"{', '.join(map(repr, profile.mapped_outputs))}, one a row, behind the last node; convert "
        "the classifier to give an array (skl2onnx: options={'zipmap': False})"
    )


def _overhead(profile: OperatorProfile) -> str:
    if dictionaries_ns(profile):
        return ""
    if profile.plain_ns and profile.run_ns and profile.plain_ns / profile.run_ns - 1 > OVERHEAD:
        return (
            f"a run took {format_amount(profile.plain_ns * 1e-9, 's')} without the profiler and "
            f"{format_amount(profile.run_ns * 1e-9, 's')} with it, but the profiler can only "
            "slow it down: the runs without it were disturbed; profile again on an idle "
            "machine"
        )
    if _overhead_of(profile) <= OVERHEAD:
        return ""
    return (
        f"a run took {format_amount(profile.run_ns * 1e-9, 's')} with the profiler and "
        f"{format_amount(profile.plain_ns * 1e-9, 's')} without: small nodes look slower than "
        "they are"
    )


def _overhead_of(profile: OperatorProfile) -> float:
    """How much longer a run took with the profiler, as a share of one without."""
    return profile.run_ns / profile.plain_ns - 1 if profile.plain_ns else 0.0


_RULES: tuple[Callable[[OperatorProfile], str], ...] = (
    _threads,
    _transfer,
    _dictionaries,
    _one_operator,
    _compiled,
    _memory,
    _compute,
    _launch,
    _casts,
    _spinning,
    _asynchronous,
    _device_times,
    _low_peak,
    _cached,
    _unsteady_peak,
    _overhead,
)
