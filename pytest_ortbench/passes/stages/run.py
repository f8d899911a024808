"""The pass over a user's stages: whole frames in fresh workers, in turn and overlapped."""

from __future__ import annotations

import hashlib
import time
from contextlib import closing
from pathlib import Path

from pytest_ortbench.analysis.samples import reduce_blocks
from pytest_ortbench.analysis.stopping import StopRule
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError, why_unreadable
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.python_profile import PythonProfile
from pytest_ortbench.core.samples import Block, Samples
from pytest_ortbench.execution.means import Means
from pytest_ortbench.execution.time_share import TimeShare
from pytest_ortbench.launch.launcher import Worker
from pytest_ortbench.passes.stages.facts import FrameBlock, Stages, StagesReady, StageWorker
from pytest_ortbench.passes.stages.questions import LoadStages, ProfileStages, RunFrames
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s

#: Overlapped frames at least, so that filling the stages does not count, and at most.
_LEAST_OVERLAPPED, _MOST_OVERLAPPED = 30, 2000
#: Share of a worker's time that overlapped frames get beside the others.
_OVERLAPPED_SHARE = 0.5
#: Seconds of frames, as long as they take otherwise, that a profiler of Python looks at; at most.
_PROFILED_S, _MOST_PROFILED = 1.0, 200
#: The part of the time left that is theirs, then.
_OVERLAPPED_PART = _OVERLAPPED_SHARE / (1 + _OVERLAPPED_SHARE)


def measure(result: CaseResult, means: Means) -> Stages:
    """Measure the stages of a case that has been measured; never raises for what fails."""
    case = result.case
    path = Path(case.stages)
    refusal = _refusal(case)
    if refusal:
        return Stages(file=path.name, reason=refusal)
    deadline = time.monotonic() + case.sampling.timeout_s
    workers: list[StageWorker] = []
    profiles: tuple[PythonProfile, ...] = ()
    ready: StagesReady | None = None
    reason, faulty = "", False
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        for index in range(case.sampling.workers):
            share = TimeShare(
                began=time.monotonic(),
                deadline=deadline,
                workers_left=case.sampling.workers - index,
            )
            with closing(means.launcher.open(case, worker=index, deadline=deadline)) as worker:
                budget_s = warm_up_budget_s(case, within_s=share.end() - time.monotonic())
                ready = worker.ask(LoadStages(path=str(path), budget_s=budget_s))
                until = share.timed_until(ready.typical_ns, worker.opened.startup, first=False)
                workers.append(_frames(worker, case, ready, until))
        profiles = _profiled(case, path, means, deadline)
    except OSError as error:
        return Stages(file=path.name, reason=f"{path} {why_unreadable(error)[0]}", faulty=True)
    except WorkerError as error:
        # As in the standard pass, fewer workers than asked for are said by a flag.
        if error.failure.kind != "timeout" or not workers:
            faulty = error.failure.phase == "stages"
            reason = error.failure.told if faulty else f"{error.failure.kind}: {error}"
    return Stages(
        file=path.name,
        digest=digest,
        functions=ready.functions if ready is not None else (),
        frames=ready.frames if ready is not None else 0,
        # Where one crashed, what the others measured is not what was asked for.
        workers=() if reason else tuple(workers),
        python=profiles,
        reason=reason,
        faulty=faulty,
    )


def lacking(result: CaseResult, _argument: str, *, reason: str, interrupted: bool) -> Stages:
    """Return what stands for stages that were not measured."""
    return Stages(file=Path(result.case.stages).name, reason=reason, interrupted=interrupted)


def _refusal(case: Case) -> str:
    """Why stages can't be had for a case; empty if they can."""
    if not case.stages:
        return "no file of stages applies to this case (--ort-stages)"
    if case.runtime.label != "current":
        return "stages run in the runtime 'current' only: what they import is installed there"
    if case.generation is not None:
        return "stages surround a single inference, but this case times whole requests"
    if case.io != "end-to-end":
        return "stages exchange host arrays, so they are measured with --ort-io=end-to-end only"
    if case.call != "sync":
        return "stages are measured around run, not run_async"
    if case.callers > 1:
        return "stages are measured with one caller on one session"
    return ""


def _frames(worker: Worker, case: Case, ready: StagesReady, until: float) -> StageWorker:
    in_turn_until = until - _OVERLAPPED_PART * max(0.0, until - time.monotonic())
    rule = StopRule.for_worker(case.sampling, typical_ns=ready.typical_ns)
    blocks: list[FrameBlock] = []
    whole: list[Block] = []
    while True:
        count = rule.next_block(whole, left_s=in_turn_until - time.monotonic())
        if count is None:
            break
        block = worker.ask(RunFrames(count=count))
        blocks.append(block)
        whole.append(_as_block(block, block.frame_ns))
    typical_ns = max(1.0, sum(b.wall_ns for b in whole) / sum(len(b.frame_ns) for b in blocks))
    timed_ns = case.sampling.time_s * 1e9 / max(1, case.sampling.workers)
    wanted = round(timed_ns * _OVERLAPPED_SHARE / typical_ns)
    left = int((until - time.monotonic()) * 1e9 / typical_ns)
    at_once = min(_MOST_OVERLAPPED, max(_LEAST_OVERLAPPED, wanted), left)
    # What counts lies between the first answer and the last.
    overlapped = worker.ask(RunFrames(count=at_once, overlapped=True)) if at_once > 1 else None
    keep = case.sampling.keep

    def samples(times: list[tuple[int, ...]]) -> Samples:
        kept = 0 if keep == 0 else max(1, keep // case.sampling.workers)
        parts = [
            _as_block(block, durations) for block, durations in zip(blocks, times, strict=True)
        ]
        return reduce_blocks(parts, keep=kept, clock_pair_ns=worker.opened.clock_pair_ns)

    return StageWorker(
        frame=samples([block.frame_ns for block in blocks]),
        inference=samples([block.inference_ns for block in blocks]),
        preprocess=samples([block.preprocess_ns for block in blocks])
        if "preprocess" in ready.functions
        else None,
        postprocess=samples([block.postprocess_ns for block in blocks])
        if "postprocess" in ready.functions
        else None,
        overlapped=0 if overlapped is None else len(overlapped.frame_ns) - 1,
        overlapped_ns=0 if overlapped is None else overlapped.wall_ns,
    )


def _profiled(case: Case, path: Path, means: Means, deadline: float) -> tuple[PythonProfile, ...]:
    """What profilers of Python find, in a worker that times nothing."""
    asked, found = case.sampling.python_profile, list[PythonProfile]()
    if not asked:
        return ()
    try:
        with closing(means.launcher.open(case, worker=0, deadline=deadline)) as worker:
            ready = worker.ask(LoadStages(path=str(path), budget_s=warm_up_budget_s(case)))
            count = min(_MOST_PROFILED, max(1, round(_PROFILED_S * 1e9 / ready.typical_ns)))
            for profiler in asked:
                found.append(worker.ask(ProfileStages(profiler=profiler, count=count)))
    except WorkerError as error:
        lost = f"{error.failure.kind}: {error}"
        found += [PythonProfile(profiler=name, reason=lost) for name in asked[len(found) :]]
    return tuple(found)


def _as_block(block: FrameBlock, durations: tuple[int, ...]) -> Block:
    return Block(durations_ns=durations, wall_ns=block.wall_ns, cpu_ns=block.cpu_ns)
