"""Reasons to trust the number of one case less, told from its raw facts alone.

Not told here, because one result does not hold the facts: ``SHAPES`` (needs two sides), ``SPIN``
(needs a pair of live workers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from statistics import median

from pytest_ortbench.analysis.chains import idle_in, idle_words
from pytest_ortbench.analysis.cpu_time import cpu_time, runs_on_cpus
from pytest_ortbench.analysis.inaccuracy import evidence_of
from pytest_ortbench.analysis.judgements import judgements_of, unjudged_words
from pytest_ortbench.analysis.lowered import is_seen, lowered_words
from pytest_ortbench.analysis.machine_states import (
    are_far,
    is_memory_busy,
    memory_slowdown,
    nearest_handover_ns,
)
from pytest_ortbench.analysis.order import binomial_probability, samples_needed
from pytest_ortbench.analysis.samples import statistic_of, two_groups
from pytest_ortbench.analysis.steadiness import change_over_time, unsteady, workers_of
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.flags import CPU_SHARE, FLAGS
from pytest_ortbench.core.model import SubnormalWeight
from pytest_ortbench.core.outcome import (
    CaseResult,
    Flag,
    Samples,
)
from pytest_ortbench.core.placement import is_partial, nodes_elsewhere, placement_ratio
from pytest_ortbench.core.precision import base_of, computed_precision, widens_weights
from pytest_ortbench.core.provider_kinds import BY_NAME, CPU
from pytest_ortbench.core.session_entries import DENORMAL_AS_ZERO
from pytest_ortbench.core.units import counted, format_amount
from pytest_ortbench.passes.registry import PASSES

#: ``SPREAD``, ``DRIFT``: medians of workers differ by more than their own intervals and this. Seen
#: on a shared machine with two CPUs: three workers are more than 5 % apart in every other case,
#: and a flag that every other case carries says nothing; the interval shows as much.
SPREAD_SHARE = 0.10

#: ``STEAL``, ``CPU-SHARE``, ``RESOLUTION``: see core/flags.py.
STEAL_SHARE = 0.02
CORE_SHARE = 0.90
STARVED_SHARE = 0.25
#: ``FAR-CPUS``: of the rounds of a case that took turns with a yardstick on several threads.
FAR_SHARE = 0.10
RESOLUTION_SHARE = 0.01

#: Precisions that a provider may execute in another one, and what their kernels read.
_KERNEL_TYPES = {"fp16": "float16", "bf16": "bfloat16"}

#: Precisions that multiply integers, ...
_IN_INTEGERS = ("int8-static", "int8-dynamic")
#: ... and what kernels read that do.
_INTEGERS = frozenset({"int4", "int8", "uint8"})


def flags_of(result: CaseResult) -> tuple[Flag, ...]:
    """Return all flags that can be told from one result, in the order of the registry.

    Facts about durations are judged only where there are some; a failed case has none of these.
    """
    details = {name: rule(result) for name, rule in _RULES.items()}
    for entry in PASSES:
        for name, rule in entry.flag_rules:
            details[name] = details.get(name) or entry.load(rule)(result)
    return tuple(Flag(name=name, detail=details[name]) for name in FLAGS if details.get(name))


#: Two input sets differ in duration if typically by this factor and this much, and by the smaller
#: factor in more rounds than chance would give once in 200 times.
_DEPENDS_RATIO = 1.5
_DEPENDS_NS = 100_000
_LEAST_RATIO = 1.25
_CHANCE = 1 / 200


def _emulated(result: CaseResult) -> str:
    return _in_another_float(result) or _without_integers(result)


def _without_integers(result: CaseResult) -> str:
    """How a variant in int8 is executed, if no node of it multiplies integers."""
    read = result.placement.products if result.placement is not None else {}
    if base_of(result.case) not in _IN_INTEGERS or not read or read.keys() & _INTEGERS:
        return ""
    kernels = ", ".join(read)
    return f"{result.case.variant.precision} was requested, but kernels read {kernels}"


def _in_another_float(result: CaseResult) -> str:
    """How a case in half precision is executed, if in another one."""
    case = result.case
    asked = base_of(case)
    held = asked if asked in _KERNEL_TYPES else computed_precision(case)
    wanted = _KERNEL_TYPES.get(held)
    executed = result.placement.precision_executed if result.placement else None
    if wanted is None or executed is None or executed == wanted:
        return ""
    if held == asked:
        return f"{case.variant.precision} was requested, but kernels read {executed}"
    # A graph that widens its weights itself is run as it is.
    return "" if widens_weights(case.model) else f"the file is {held}, but kernels read {executed}"


def _nonfinite(result: CaseResult) -> str:
    return evidence_of(result).nonfinite


def _nan_inputs(result: CaseResult) -> str:
    fed = max((check.nonfinite_inputs for check in result.output_checks), default=0)
    return f"{fed} of their values" if fed else ""


def _inaccurate(result: CaseResult) -> str:
    return evidence_of(result).wrong


def _unjudged(result: CaseResult) -> str:
    return unjudged_words(judgements_of(result))


def _subnormal(result: CaseResult) -> str:
    worst = max(result.output_checks, key=lambda check: check.subnormal, default=None)
    if worst is not None and worst.subnormal:
        return f"{counted(worst.subnormal, 'value')} in the {worst.run} run"
    return ", ".join(f"weight {weight.name!r}" for weight in slow_weights(result.case))


def slow_weights(case: Case) -> tuple[SubnormalWeight, ...]:
    """Return the weights with subnormal values that a case computes with on the CPU, as they are.

    Args:
        case: Any case.
    """
    flushed = case.session.entries.get(DENORMAL_AS_ZERO) == "1"
    if case.variant.recipe or case.provider.name != CPU or flushed:
        return ()
    return case.model.subnormal_weights


def _constant(result: CaseResult) -> str:
    checks = result.output_checks
    if not checks or not all(check.constant for check in checks):
        return ""
    return f"in all {len(checks)} runs that were checked"


def _empty(result: CaseResult) -> str:
    checks = result.output_checks
    return "in all runs that were checked" if checks and all(c.empty for c in checks) else ""


def _other_run(result: CaseResult) -> str:
    return result.other_run


def _partial(result: CaseResult) -> str:
    placement = result.placement
    if placement is None or not is_partial(placement):
        return ""
    ops = sorted(placement.ops_elsewhere.items(), key=lambda pair: (-pair[1], pair[0]))
    names = ", ".join(f"{count} {name}" for name, count in ops[:5])
    if len(ops) > 5:
        names += f" and {len(ops) - 5} more operators"
    detail = f"{nodes_elsewhere(placement)} computing nodes on other providers"
    ratio = placement_ratio(placement)
    if ratio is not None:
        where = " or ".join(placement.asked)
        detail += f", {100 * ratio:.1f} % on {where}"
    return f"{detail}: {names}" if names else detail


def _idle_links(result: CaseResult) -> str:
    return "; ".join(idle_words(link) for link in idle_in(result.placement))


def _software(result: CaseResult) -> str:
    return ", ".join(result.software_devices)


def _in_turn(result: CaseResult) -> str:
    case = result.case
    kinds = [BY_NAME.get(link.name) for link in case.provider.links]
    is_in_turn = any(kind is not None and kind.in_turn for kind in kinds)
    if not is_in_turn or case.concurrency < 2 or not result.measurements:
        return ""
    return f"{case.concurrency} callers on each session"


def _python_operators(result: CaseResult) -> str:
    files = result.case.session.python_operators
    return ", ".join(PurePath(path).name for path in files)


def _steal(result: CaseResult) -> str:
    read = [samples for samples in workers_of(result) if samples.steal_ratio is not None]
    wall_ns = sum(samples.wall_ns for samples in read)
    if not wall_ns:
        return ""
    share = sum((samples.steal_ratio or 0.0) * samples.wall_ns for samples in read) / wall_ns
    return f"{100 * share:.1f} % of the CPU time" if share > STEAL_SHARE else ""


def _cpu_share(result: CaseResult) -> str:
    """Starved blocks, and workers that compute on the CPU and had no whole core at any time.

    The latter have no good block to be judged against: on the CPU one caller in a closed loop
    keeps at least one core busy, unless somebody else has it.
    """
    workers = workers_of(result)
    blocks = sum(samples.blocks for samples in workers)
    on_host = runs_on_cpus(result)
    starved = 0
    for samples in workers:
        whole = on_host and samples.cpu_ns < CORE_SHARE * samples.wall_ns
        starved += samples.blocks if whole else samples.starved_blocks
    if not blocks or starved <= STARVED_SHARE * blocks:
        return ""
    time = cpu_time(result)
    used = "" if time is None else f"; {time.words} in use on average"
    return f"{starved} of {blocks} blocks{used}"


def _far_cpus(result: CaseResult) -> str:
    """Rounds of the yardstick in which a value took long from one CPU to another."""
    turns = [worker.yardstick for worker in result.measurements if worker.yardstick is not None]
    nearest_ns = nearest_handover_ns(turns)
    far = [is_far for worker in turns for is_far in are_far(worker, nearest_ns)]
    if nearest_ns is None or sum(far) <= FAR_SHARE * len(far):
        return ""
    ways = [
        took
        for worker in turns
        for took, is_far in zip(worker.handover_ns, are_far(worker, nearest_ns), strict=False)
        if is_far and took is not None
    ]
    return (
        f"in {sum(far)} of {len(far)} rounds a value took {median(ways):.0f} ns from one CPU to "
        f"another and back, {nearest_ns} ns where they are nearest"
    )


def _busy_memory(result: CaseResult) -> str:
    """Passes over memory that took longer on average than their fastest."""
    turns = [worker.yardstick for worker in result.measurements if worker.yardstick is not None]
    slowdown = memory_slowdown(turns)
    if slowdown is None or not is_memory_busy(turns):
        return ""
    return f"a pass over memory took {slowdown:.2f} times as long as the fastest ones"


def _throttled(result: CaseResult) -> str:
    throttled = sum(samples.throttled_ns or 0 for samples in workers_of(result))
    if not throttled:
        return ""
    timed = sum(samples.wall_ns for samples in workers_of(result))
    share = f" of {format_amount(timed * 1e-9, 's')} timed" if timed else ""
    return f"{format_amount(throttled * 1e-9, 's')}{share}"


def _threads(result: CaseResult) -> str:
    for worker in result.measurements:
        if 0 < worker.cpus < worker.threads:
            on = counted(worker.cpus, "CPU")
            return f"{worker.threads} threads ({worker.threads_source}) on {on}"
    return ""


def _unconfirmed(result: CaseResult) -> str:
    doubts = {
        name: why
        for measurement in result.measurements
        for name, why in measurement.unconfirmed.items()
        if not is_seen(name, result)
    }
    return "; ".join(f"{name}: {why}" for name, why in doubts.items())


def _resolution(result: CaseResult) -> str:
    shares = [
        samples.clock_pair_ns / max(1, statistic_of(samples, 50).value_ns)
        for samples in workers_of(result)
    ]
    if not shares or max(shares) <= RESOLUTION_SHARE:
        return ""
    pair_ns = max(samples.clock_pair_ns for samples in workers_of(result))
    return f"reading the clock twice costs {pair_ns} ns, {100 * max(shares):.1f} % of the median"


def _low_n(result: CaseResult) -> str:
    """Too few for p90 or for what a limit asks; a p99 that is missing says so in its column."""
    count = sum(samples.count for samples in workers_of(result))
    if not count:
        return ""
    needed = max(samples_needed(90), result.case.sampling.min_samples)
    return f"{count} samples, {needed} needed" if count < needed else ""


def _warm_up(result: CaseResult) -> str:
    """Workers whose warm-up ended by its budget; whether they were warm shows ``UNSTEADY`` at most.

    A note: the samples may be steady all the same.
    """
    cut_off = [
        measurement.warm_up for measurement in result.measurements if not measurement.warm_up.steady
    ]
    if not cut_off or not sum(samples.count for samples in workers_of(result)):
        return ""
    return f"{len(cut_off)} of {len(result.measurements)} workers: {cut_off[0].rule}"


def _drift(result: CaseResult) -> str:
    """Medians that only ever go one way, between the workers and inside each of them.

    Three workers are in order by chance in a third of the cases, and where workers differ at all
    (``SPREAD``) a flag by that alone would be as frequent. What heats up or fills up goes on
    inside a worker, too: by chance all three go the same way as their order in 1 case of 24.
    """
    workers = workers_of(result)
    if len(workers) < 3 or not _ends_differ(workers[0], workers[-1]):
        return ""
    medians = [statistic_of(samples, 50).value_ns for samples in workers]
    ways = [change for change in map(change_over_time, workers) if change is not None]
    if medians == sorted(medians):
        along = all(change > 0 for change, _ in ways)
    elif medians == sorted(medians, reverse=True):
        along = all(change < 0 for change, _ in ways)
    else:
        return ""
    if len(ways) < len(workers) or not along:
        return ""
    return f"{100 * (medians[-1] / medians[0] - 1):+.1f} % from the first worker to the last"


def _spread(result: CaseResult) -> str:
    workers = sorted(workers_of(result), key=lambda samples: statistic_of(samples, 50).value_ns)
    if len(workers) < 2 or not _ends_differ(workers[0], workers[-1]):
        return ""
    low, high = (statistic_of(samples, 50).value_ns for samples in (workers[0], workers[-1]))
    return (
        f"medians from {format_amount(low * 1e-9, 's')} to {format_amount(high * 1e-9, 's')}, "
        f"{100 * (high / low - 1):.1f} % apart"
    )


def _ends_differ(samples: Samples, other: Samples) -> bool:
    low, high = sorted(
        (statistic_of(samples, 50), statistic_of(other, 50)),
        key=lambda statistic: statistic.value_ns,
    )
    if high.value_ns <= low.value_ns * (1 + SPREAD_SHARE):
        return False
    return low.high_ns is not None and high.low_ns is not None and low.high_ns < high.low_ns


def _one_worker(result: CaseResult) -> str:
    """The interval of a single process says nothing about the next one, however narrow it is."""
    if result.failure is not None or len(result.measurements) != 1:
        return ""
    count = result.measurements[0].samples.count
    return f"all {count} samples come from one process" if count else ""


def _fewer_workers(result: CaseResult) -> str:
    """The last workers found no time left; what the others measured is a result all the same."""
    asked = result.case.sampling.workers
    finished = {"": len(result.measurements)}
    finished |= {
        f"{entry.name}: ": entry.load(entry.workers)(result) for entry in PASSES if entry.workers
    }
    if result.failure is not None:
        return ""
    return "; ".join(
        f"{name}{count} of {asked}" for name, count in finished.items() if 0 < count < asked
    )


def _budget(result: CaseResult) -> str:
    """Less than was asked for, unless the median is known as well as it was to be."""
    share, sampling = result.budget, result.case.sampling
    if share is None or result.failure is not None or share.timed_s >= sampling.time_s:
        return ""
    stops = {measurement.stop for measurement in result.measurements}
    if stops == {"target"} and share.workers >= sampling.workers:
        return ""
    why = "another variant is faster by far" if share.outrun else ""
    why = why or f"it was given {format_amount(share.given_s, 's')}"
    return (
        f"{format_amount(share.timed_s, 's')} timed of {sampling.time_s:g} s in "
        f"{counted(share.workers, 'worker')}: {why}"
    )


def _bimodal(result: CaseResult) -> str:
    groupings = [two_groups(samples.durations_ns) for samples in workers_of(result)]
    groups = [pair for pair in groupings if pair is not None]
    if 2 * len(groups) <= len(groupings):
        return ""
    pair = groups[0]
    return (
        f"{100 * pair.upper_share:.0f} % of the samples around {format_amount(pair.upper_s, 's')}, "
        f"the rest around {format_amount(pair.lower_s, 's')}, "
        f"in {len(groups)} of {len(groupings)} workers"
    )


def _neighbour(result: CaseResult) -> str:
    most = max(
        (measurement.memory.device_neighbours or 0 for measurement in result.measurements),
        default=0,
    )
    if not most:
        return ""
    return "another process" if most == 1 else f"{most} other processes"


def _input_dependent(result: CaseResult) -> str:
    """Sizes of outputs, or durations in most rounds, that differ between random input sets."""
    accuracy = result.accuracy
    if accuracy is None or any(spec.path for spec in result.case.inputs):
        return ""
    told = []
    elements = accuracy.set_elements
    if len(set(elements)) > 1:
        told.append(f"outputs hold from {min(elements):,} to {max(elements):,} values")
    if _is_slower(accuracy.set_pairs_ns):
        slow, fast = (median(side) for side in zip(*accuracy.set_pairs_ns, strict=True))
        ends = " to ".join(format_amount(end * 1e-9, "s") for end in (fast, slow))
        told.append(f"an inference takes from {ends}")
    return f"{', '.join(told)}, over {len(elements)} random input sets" if told else ""


def _is_slower(pairs_ns: Sequence[tuple[int, int]]) -> bool:
    """Whether one input set takes longer than the other, by rounds on both in random order.

    Noise alone, however large, makes either one the slower with the same chance. Too few rounds
    can't tell.
    """
    rounds = len(pairs_ns)
    slower = sum(slow > _LEAST_RATIO * fast for slow, fast in pairs_ns)
    if (
        sum(binomial_probability(count, rounds, 0.5) for count in range(slower, rounds + 1))
        > _CHANCE
    ):
        return False
    ratio = median(slow / max(fast, 1) for slow, fast in pairs_ns)
    return ratio > _DEPENDS_RATIO and median(slow - fast for slow, fast in pairs_ns) > _DEPENDS_NS


_RULES: dict[str, Callable[[CaseResult], str]] = {
    "EMULATED": _emulated,
    "INACCURATE": _inaccurate,
    "UNJUDGED": _unjudged,
    "UNSTEADY": unsteady,
    "STEAL": _steal,
    CPU_SHARE: _cpu_share,
    "FAR-CPUS": _far_cpus,
    "OTHER-RUN": _other_run,
    "THROTTLED": _throttled,
    "THREADS>CPUS": _threads,
    "PARTIAL": _partial,
    "LOWERED": lowered_words,
    "IDLE-LINK": _idle_links,
    "SOFTWARE": _software,
    "IN-TURN": _in_turn,
    "PYTHON-OPS": _python_operators,
    "UNCONFIRMED": _unconfirmed,
    "RESOLUTION": _resolution,
    "LOW-N": _low_n,
    "WARM-UP": _warm_up,
    "NEIGHBOUR": _neighbour,
    "MEMORY-BUSY": _busy_memory,
    "DRIFT": _drift,
    "BIMODAL": _bimodal,
    "SPREAD": _spread,
    "ONE-WORKER": _one_worker,
    "FEWER-WORKERS": _fewer_workers,
    "BUDGET": _budget,
    "INPUT-DEPENDENT": _input_dependent,
    "SUBNORMAL": _subnormal,
    "CONSTANT": _constant,
    "EMPTY": _empty,
    "NAN-INPUTS": _nan_inputs,
    "NONFINITE": _nonfinite,
}
