"""The time of one inference by operator and by node, from ONNX Runtime's own profiler."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.profile import NodeTime, OperatorProfile, OperatorTime
from pytest_ortbench.worker.placement import COPIES
from pytest_ortbench.worker.profile_events import NodeEvent, Profile, Tensor, read_events
from pytest_ortbench.worker.session import create, session_options
from pytest_ortbench.worker.timing import median

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

#: Profiled runs: at least, at most, and as many as fit into this time between.
_LEAST_RUNS, _MOST_RUNS, _LONGEST_S = 6, 101, 2.0
#: Most events in a trace; a graph of 10,000 nodes gets fewer runs.
_MOST_EVENTS = 200_000

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


def profile_operators(
    case: Case,
    feeds: Mapping[str, object],
    plain_ns: Sequence[int],
    *,
    threads: int,
    cpus: int,
    keep: Path | None,
) -> OperatorProfile:
    """Profile a case in a session of its own.

    Args:
        case: What to profile.
        feeds: Values of the inputs.
        plain_ns: Times of runs without the profiler.
        threads: Intra-op threads.
        cpus: CPUs that the process may use.
        keep: Where the Chrome trace goes; ``None`` keeps none.

    Raises:
        Exception: what :func:`~pytest_ortbench.worker.session.create` and ONNX Runtime raise.
    """
    import tempfile  # long after the start, to which it would add

    with tempfile.TemporaryDirectory(prefix="ortbench-profile-") as folder:
        # How many nodes there are is known after a run.
        options = session_options(case.session, threads=threads, profile_prefix=Path(folder) / "n")
        session, _ = create(case.variant.path, case.provider, options)
        nodes = len(profiled_runs(session, lambda: session.run(None, feeds), runs=1).events)
        del session
        options = session_options(case.session, threads=threads, profile_prefix=Path(folder) / "p")
        session, _ = create(case.variant.path, case.provider, options)
        profile = profiled_runs(
            session,
            lambda: session.run(None, feeds),
            runs=runs_for(median(plain_ns), nodes),
            keep=keep,
        )
    found = summarise(
        profile, plain_ns=plain_ns, provider=case.provider.name, threads=threads, cpus=cpus
    )
    return replace(found, trace=str(keep)) if keep is not None else found


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


def plain_times(run: Callable[[], object]) -> list[int]:
    """Nanoseconds of runs without the profiler, after some that are not counted."""
    times: list[int] = []
    began = time.perf_counter_ns()
    while len(times) < _MOST_RUNS:
        started = time.perf_counter_ns()
        run()
        now = time.perf_counter_ns()
        times.append(now - started)
        if len(times) >= _LEAST_RUNS and now - began > _LONGEST_S * 1e9:
            break
    return times[len(times) // 3 :]


def runs_for(plain_ns: float, nodes: int) -> int:
    """How many runs to profile: about two seconds, and no more events than can be kept."""
    by_time = int(_LONGEST_S * 1e9 / max(plain_ns, 1.0))
    by_events = _MOST_EVENTS // max(nodes, 1)
    return max(_LEAST_RUNS, min(by_time, by_events, _MOST_RUNS))


def summarise(
    profile: Profile, *, plain_ns: Sequence[int], provider: str, threads: int, cpus: int
) -> OperatorProfile:
    """Add up a profile by operator and by node.

    The first run is left out where there are several: it includes what happens only once. Of the
    others the faster half counts, which nobody disturbed: means of the same runs add up, medians
    would not. Bodies of control flow stand for it, so no time counts twice.

    Args:
        profile: What the profiler wrote.
        plain_ns: Times of runs without the profiler.
        provider: The asked provider.
        threads: Intra-op threads in force.
        cpus: CPUs that the process may use.
    """
    chosen = _undisturbed(profile)
    events = [event for event in profile.events if event.run in chosen]
    runs = max(len(chosen), 1)
    totals: dict[tuple[str, str], list[NodeEvent]] = {}
    nodes: dict[tuple[str, ...], list[NodeEvent]] = {}
    for event in events:
        totals.setdefault((event.op, event.provider), []).append(event)
        nodes.setdefault(event.key, []).append(event)
    durations = [us for run, us in enumerate(profile.run_us) if run in chosen]
    return OperatorProfile(
        runs=runs,
        run_ns=round(1000 * sum(durations) / len(durations)) if durations else 0,
        plain_ns=round(median(plain_ns)) if plain_ns else 0,
        operators=tuple(
            sorted(
                (
                    OperatorTime(
                        op=op,
                        provider=where,
                        time_ns=_mean_ns(found, runs),
                        nodes=len({event.key for event in found}),
                        kind=kind_of(op),
                    )
                    for (op, where), found in totals.items()
                ),
                key=lambda each: (-each.time_ns, each.op, each.provider),
            )
        ),
        nodes=_slowest(nodes.values(), runs),
        node_count=len(nodes),
        threads=threads,
        cpus=cpus,
        asynchronous=provider in _ASYNCHRONOUS,
    )


def _undisturbed(profile: Profile) -> set[int]:
    """Numbers of the runs that count."""
    later = list(enumerate(profile.run_us))[1 if profile.runs > 1 else 0 :]
    if not later:
        return set(range(profile.runs))
    longest = median([us for _, us in later])
    return {run for run, us in later if us <= longest}


def kind_of(op: str) -> str:
    """``copy``, ``cast``, ``move`` or ``compute``."""
    if op in COPIES:
        return "copy"
    if op in CASTS:
        return "cast"
    return "move" if op in MOVES else "compute"


def _mean_ns(events: Iterable[NodeEvent], runs: int) -> int:
    return round(1000 * sum(event.own_us for event in events) / runs)


def _slowest(groups: Iterable[list[NodeEvent]], runs: int) -> tuple[NodeTime, ...]:
    found = [
        NodeTime(
            name=events[0].name,
            op=events[0].op,
            provider=events[0].provider,
            time_ns=_mean_ns(events, runs),
            shapes=_shapes(events[0]),
        )
        for events in groups
    ]
    return tuple(sorted(found, key=lambda node: (-node.time_ns, node.name))[:_KEPT_NODES])


def _shapes(event: NodeEvent) -> str:
    def side(tensors: Sequence[Tensor]) -> str:
        return ", ".join(f"{t.type} [{','.join(map(str, t.shape))}]" for t in tensors)

    return f"{side(event.inputs)} -> {side(event.outputs)}"
