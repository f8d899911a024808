"""The time of one inference by operator and by node, from ONNX Runtime's own profiler."""

from __future__ import annotations

import functools
import shutil
import time
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Case, SessionConfig
from pytest_ortbench.core.graph_capture import without_capture
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.core.session_entries import SPINNING
from pytest_ortbench.passes.profile.facts import NodeTime, OperatorProfile, OperatorTime, Peak
from pytest_ortbench.passes.profile.questions import ProfileOperators
from pytest_ortbench.passes.profile.worker.node_work import (
    UNPACKED,
    Key,
    Work,
    element_of_products,
    total,
    work_of_nodes,
)
from pytest_ortbench.passes.profile.worker.peak import peak_of
from pytest_ortbench.worker.calling import call_of, single_loop
from pytest_ortbench.worker.node_kinds import COPIES
from pytest_ortbench.worker.profile_events import NodeEvent, Profile, Tensor, read_events
from pytest_ortbench.worker.session import create, session_options
from pytest_ortbench.worker.software_device import software_device
from pytest_ortbench.worker.timing import median

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from pytest_ortbench.worker.measured import MeasuredCase

#: Profiled runs: at least, at most, and as many as fit into this time between.
_LEAST_RUNS, _MOST_RUNS, _LONGEST_S = 6, 101, 2.0
#: Most events in a trace; a graph of 10,000 nodes gets fewer runs.
_MOST_EVENTS = 200_000
#: What the profiler holds before it drops events, a little less for those outside of runs.
_HELD_EVENTS = 990_000

#: Runs that take longer than this many times the fastest were disturbed.
_CLOSE = 1.1

#: Time for runs without that.
_UNSPUN_S = 0.7

#: Nodes that are kept by name.
_KEPT_NODES = 50

CASTS = frozenset({"Cast", "CastLike"})

#: Operators whose result holds nothing that was not in their inputs.
MOVES = frozenset(
    {
        *("Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND"),
        *("Identity", "Pad", "Reshape", "ReorderInput", "ReorderOutput", "Slice", "SpaceToDepth"),
        *("Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "ScatterElements", "ScatterND"),
    }
)

#: Providers that return from a node before its kernels are done.
_ASYNCHRONOUS = (
    "CUDAExecutionProvider",
    "ROCMExecutionProvider",
    "MIGraphXExecutionProvider",
    "DmlExecutionProvider",
    "WebGpuExecutionProvider",
)


def profile_open_case(question: ProfileOperators, measured: MeasuredCase) -> OperatorProfile:
    """Time the measured session, release it, and profile another one; no block can follow."""
    measured.enter("profile")
    # One caller, as in the profiled session.
    single = single_loop(measured.case, measured.live(), measured.feeds)
    plain = plain_runs(functools.partial(single, array("q", bytes(8))))
    del single
    measured.release()
    return profile_operators(
        measured.case,
        measured.feeds,
        plain,
        threads=measured.threads,
        cpus=measured.cpus,
        keep=Path(question.keep) if question.keep else None,
    )


def profile_operators(
    case: Case,
    feeds: Mapping[str, object],
    plain: PlainRuns,
    *,
    threads: int,
    cpus: int,
    keep: Path | None,
) -> OperatorProfile:
    """Profile a case in a session of its own.

    Args:
        case: What to profile.
        feeds: Values of the inputs.
        plain: Runs without the profiler.
        threads: Intra-op threads.
        cpus: CPUs that the process may use.
        keep: Where the Chrome trace goes; ``None`` keeps none.

    Raises:
        Exception: what :func:`~pytest_ortbench.worker.session.create` and ONNX Runtime raise.
    """
    # Long after the start, to which it would add.
    from pytest_ortbench.core.own_folder import OwnFolder

    # A session that failed has its trace open still, which Windows does not remove.
    with OwnFolder("profile") as folder:
        setting = _Setting(case=case, feeds=feeds, threads=threads, folder=folder)
        counted = _counted_run(setting, keep)
        if counted.cut_after is not None:
            return replace(_broken_off(counted.cut_after), trace="" if keep is None else str(keep))
        work = work_of_nodes(counted.events)
        runs = runs_for(median(plain.durations_ns), counted.seen)
        profile = setting.profiled(case.session, runs=runs, keep=keep)
        if profile.cut_after is not None:
            return replace(_broken_off(profile.cut_after), trace="" if keep is None else str(keep))
    totals = operator_totals(
        profile,
        plain_ns=plain.durations_ns,
        provider=case.provider.name,
        threads=threads,
        cpus=cpus,
        work=work,
    )
    element = element_of_products(counted.events, work, case.variant.precision)
    unspun = _unspun(case, feeds, threads)
    return replace(
        totals,
        trace="" if keep is None else str(keep),
        peak=_peak(case, element, threads),
        cpu_ns=plain.cpu_ns,
        unspun_ns=None if unspun is None else round(median(unspun.durations_ns)),
        unspun_cpu_ns=None if unspun is None else unspun.cpu_ns,
        graph_optimization_level=case.session.graph_optimization_level,
        mapped_outputs=tuple(output.name for output in case.model.outputs if "map(" in output.type),
    )


def _peak(case: Case, element: str, threads: int) -> Peak:
    """What the provider reaches; of a program in the place of a device nobody wants to know."""
    device = software_device(case.provider)
    if device:
        return Peak(provider=case.provider.name, reason=f"{device} computes in place of a device")
    return peak_of(case, element, threads=threads)


def _unspun(case: Case, feeds: Mapping[str, object], threads: int) -> PlainRuns | None:
    """Runs of a session whose threads sleep when they have no work; ``None`` where none spin."""
    entries = case.session.entries
    if case.provider.name != CPU or threads < 2 or case.callers > 1 or entries.get(SPINNING) == "0":
        return None
    config = replace(case.session, entries={**entries, SPINNING: "0"})
    options = session_options(config, threads=threads)
    session, _ = create(case.variant.path, case.provider, options)
    return plain_runs(lambda: session.run(None, feeds), longest_s=_UNSPUN_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """What every profiled session of a case has in common."""

    case: Case
    feeds: Mapping[str, object]
    threads: int
    folder: Path

    def profiled(self, config: SessionConfig, *, runs: int, keep: Path | None = None) -> Profile:
        """Profile some runs in a session of their own."""
        options = session_options(config, threads=self.threads, profile_prefix=self.folder / "p")
        provider = without_capture(self.case.provider)  # a replay has no nodes
        session, _ = create(self.case.variant.path, provider, options)
        run = call_of(self.case, session, self.feeds)
        return profiled_runs(session, run, runs=runs, keep=keep)


def _counted_run(setting: _Setting, keep: Path | None) -> Profile:
    """Profile one run in which weights are not packed, so that all shapes are listed.

    It tells how many nodes there are and what each has to do; its times are of no use.
    """
    config = setting.case.session
    try:
        bare = replace(config, entries={**config.entries, **UNPACKED})
        return setting.profiled(bare, runs=1, keep=keep)
    except Exception:  # noqa: BLE001  # a kernel may not work without its packed weights
        return setting.profiled(config, runs=1, keep=keep)


def _broken_off(events: int) -> OperatorProfile:
    """No profile: of a run whose end is missing nobody knows what share of it a node has."""
    return OperatorProfile(
        cut_after=events,
        reason=f"the profiler stopped after {events:,} events, before the first run was over, so "
        "shares can't be computed",
    )


def profiled_runs(
    session: InferenceSession, run: Callable[[], object], *, runs: int, keep: Path | None = None
) -> Profile:
    """Run a profiled session and read what its profiler wrote.

    Args:
        session: A session with profiling on; its profiling is over afterwards.
        run: Runs it once.
        runs: How many times.
        keep: Where the trace goes; ``None`` leaves it where it is.

    Raises:
        WorkerError: if the profile can't be read.
    """
    for _ in range(runs):
        run()
    file = Path(session.end_profiling())
    profile = read_events(file)
    if keep is not None:
        keep.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, keep)
    return profile


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRuns:
    """Runs without the profiler.

    Attributes:
        durations_ns: One a run.
        cpu_ns: CPU time of a run over all threads of the process, mean.
    """

    durations_ns: Sequence[int]
    cpu_ns: int


def plain_runs(run: Callable[[], object], *, longest_s: float = _LONGEST_S) -> PlainRuns:
    """Time runs without the profiler, after some that are not counted."""
    times: list[int] = []
    began, cpu_began = time.perf_counter_ns(), time.process_time_ns()
    while len(times) < _MOST_RUNS:
        started = time.perf_counter_ns()
        run()
        now = time.perf_counter_ns()
        times.append(now - started)
        if len(times) >= _LEAST_RUNS and now - began > longest_s * 1e9:
            break
    cpu_ns = (time.process_time_ns() - cpu_began) // len(times)
    return PlainRuns(durations_ns=times[len(times) // 3 :], cpu_ns=cpu_ns)


def runs_for(plain_ns: float, events: int) -> int:
    """How many runs to profile: about two seconds, and no more events than can be kept.

    Args:
        plain_ns: What a run takes without the profiler.
        events: Events of one run.
    """
    by_time = int(_LONGEST_S * 1e9 / max(plain_ns, 1.0))
    by_events = _MOST_EVENTS // max(events, 1)
    held = max(1, _HELD_EVENTS // max(events, 1))
    return min(held, max(_LEAST_RUNS, min(by_time, by_events, _MOST_RUNS)))


def operator_totals(
    profile: Profile,
    *,
    plain_ns: Sequence[int],
    provider: str,
    threads: int,
    cpus: int,
    work: Mapping[Key, Work] | None = None,
) -> OperatorProfile:
    """Add up a profile by operator and by node.

    The first run is left out where there are several: it includes what happens only once. Of the
    faster half of the others those near the fastest count, which nobody disturbed: means of the
    same runs add up, medians would not. Bodies of control flow stand for it, so no time counts
    twice.

    Args:
        profile: What the profiler wrote.
        plain_ns: Times of runs without the profiler.
        provider: The asked provider.
        threads: Intra-op threads in force.
        cpus: CPUs that the process may use.
        work: What each node does in a run.
    """
    chosen = _undisturbed(profile)
    known = work or {}
    events = [event for event in profile.events if event.run in chosen]
    runs = max(len(chosen), 1)
    totals: dict[tuple[str, str], list[NodeEvent]] = {}
    nodes: dict[tuple[str, ...], list[NodeEvent]] = {}
    for event in events:
        totals.setdefault((event.op, event.provider), []).append(event)
        nodes.setdefault(event.key, []).append(event)
    durations = [us for run, us in enumerate(profile.run_us) if run in chosen]
    whole = total(known.get(key, Work()) for key in nodes) if nodes else Work()
    return OperatorProfile(
        runs=runs,
        run_ns=round(1000 * sum(durations) / len(durations)) if durations else 0,
        plain_ns=round(median(plain_ns)) if plain_ns else 0,
        operators=tuple(
            sorted(
                (
                    _operator(op, where, nodes_of_type, runs, known)
                    for (op, where), nodes_of_type in totals.items()
                ),
                key=lambda operator: (-operator.time_ns, operator.op, operator.provider),
            )
        ),
        nodes=_slowest(nodes, runs, known),
        node_count=len(nodes),
        threads=threads,
        cpus=cpus,
        asynchronous=provider in _ASYNCHRONOUS and not profile.tells_device,
        device_times=profile.tells_device,
        macs=whole.macs,
        moved_bytes=whole.moved_bytes,
        work_source="nodes" if whole.macs is not None else "",
    )


def _operator(
    op: str, where: str, events: Sequence[NodeEvent], runs: int, work: Mapping[Key, Work]
) -> OperatorTime:
    keys = {event.key for event in events}
    whole = total(work.get(key, Work()) for key in keys)
    return OperatorTime(
        op=op,
        provider=where,
        time_ns=_mean_ns(events, runs),
        nodes=len(keys),
        kind="subgraph" if all(event.partition for event in events) else kind_of_operator(op),
        macs=whole.macs,
        moved_bytes=whole.moved_bytes,
    )


def _undisturbed(profile: Profile) -> set[int]:
    """Numbers of the runs that count."""
    later = list(enumerate(profile.run_us))[1 if profile.runs > 1 else 0 :]
    if not later:
        return set(range(profile.runs))
    times = [us for _, us in later]
    longest = min(median(times), _CLOSE * min(times))
    return {run for run, us in later if us <= longest}


def kind_of_operator(op: str) -> str:
    """``copy``, ``cast``, ``move`` or ``compute``."""
    if op in COPIES:
        return "copy"
    if op in CASTS:
        return "cast"
    return "move" if op in MOVES else "compute"


def _mean_ns(events: Iterable[NodeEvent], runs: int) -> int:
    return round(1000 * sum(event.own_us for event in events) / runs)


def _slowest(
    groups: Mapping[Key, Sequence[NodeEvent]], runs: int, work: Mapping[Key, Work]
) -> tuple[NodeTime, ...]:
    node_times = [
        NodeTime(
            name=events[0].name,
            op=events[0].op,
            provider=events[0].provider,
            time_ns=_mean_ns(events, runs),
            shapes=_shapes(events[0]),
            macs=work.get(key, Work()).macs,
            moved_bytes=work.get(key, Work()).moved_bytes,
        )
        for key, events in groups.items()
    ]
    return tuple(sorted(node_times, key=lambda node: (-node.time_ns, node.name))[:_KEPT_NODES])


def _shapes(event: NodeEvent) -> str:
    def side(tensors: Sequence[Tensor]) -> str:
        return ", ".join(f"{t.type} [{','.join(map(str, t.shape))}]" for t in tensors)

    return f"{side(event.inputs)} -> {side(event.outputs)}"
