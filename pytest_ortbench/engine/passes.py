"""Passes beside the standard one: each disturbs what the others measure, so each has its worker.

A pass takes the result of the standard pass and returns it with what it found added. It never
raises for a worker that failed: the standard pass has given its numbers already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.arithmetic import countable
from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.energy import Energy
from pytest_ortbench.core.errors import ModelError, WorkerError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.processes.facts import ProcessPoint
from pytest_ortbench.core.profile import OperatorProfile
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.core.stages import Stages
from pytest_ortbench.passes.startup.facts import StartUps
from pytest_ortbench.core.task import Dataset, TaskAccuracy
from pytest_ortbench.engine.load import loads_without, measure_loads, missing_loads
from pytest_ortbench.passes.processes.run import measure_processes
from pytest_ortbench.passes.soak.run import measure_soak
from pytest_ortbench.engine.stages import measure_stages
from pytest_ortbench.passes.startup.run import measure_start_ups
from pytest_ortbench.engine.warm_up_budget import warm_up_budget_s
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.schema.case_questions import WarmUpFor
from pytest_ortbench.schema.pass_questions import MeasureEnergy, ProfileOperators, ScoreTask
from pytest_ortbench.worker.energy import Procedure

#: Slowest nodes of a case that a document keeps.
_KEPT_NODES = 12
#: What a worker may take to answer when its budget is used up.
_ANSWER_S = 5.0
#: Windows of an energy pass.
_TRIALS = Procedure().trials

#: In front of a load that only a test asks for: ``load:server:100:20ms`` is a pass too.
LOAD = "load:"


def due(result: CaseResult, wanted: Iterable[str]) -> list[str]:
    """Return which of the wanted passes a result lacks; a case that failed gets none."""
    if result.failure is not None:
        return []
    wanted = list(wanted)
    named = sorted(name for name in wanted if name.startswith(LOAD))
    return [
        *(name for name in PASSES if name in wanted and not _IS_DONE[name](result)),
        *(name for name in named if missing_loads(result, (name.removeprefix(LOAD),))),
    ]


def carry_out(
    name: str, result: CaseResult, launcher: Launcher, others: Sequence[Case] = ()
) -> CaseResult:
    """Carry out one pass.

    Args:
        name: A key of :data:`PASSES`, or a load behind :data:`LOAD`.
        result: What is known of the case.
        launcher: Starts the worker.
        others: The other cases of the plan, which a pass may learn further shapes from.
    """
    began = time.monotonic()
    if name.startswith(LOAD):
        result = measure_loads(result, (name.removeprefix(LOAD),), launcher)
    else:
        result = PASSES[name](result, launcher, others)
    result = replace(result, wall_s=result.wall_s + time.monotonic() - began)
    return replace(result, flags=flags_of(result))


def without(
    result: CaseResult, names: Iterable[str], reason: str, *, interrupted: bool = False
) -> CaseResult:
    """Return a result with the reason for passes that it lacks, so that nothing looks unasked.

    Args:
        result: What is known of the case.
        names: The passes, as :func:`due` names them.
        reason: Why there is nothing.
        interrupted: Whether they were stopped before they were over, and are due again in a later
            run.
    """
    case = result.case
    for name in names:
        if name.startswith(LOAD):
            load = (name.removeprefix(LOAD),)
            result = loads_without(result, load, reason, interrupted=interrupted)
        elif name == "load":
            loads = case.sampling.loads
            result = loads_without(result, loads, reason, interrupted=interrupted)
        elif name == "energy":
            result = replace(result, energy=Energy(reason=reason, interrupted=interrupted))
        elif name == "profile":
            profile = OperatorProfile(reason=reason, interrupted=interrupted)
            result = replace(result, profile=profile)
        elif name == "soak":
            result = replace(result, soak=Soak(reason=reason, interrupted=interrupted))
        elif name == "stages":
            file = Path(case.stages).name
            stages = Stages(file=file, reason=reason, interrupted=interrupted)
            result = replace(result, stages=stages)
        elif name == "startup":
            result = replace(result, start_ups=StartUps(reason=reason, interrupted=interrupted))
        elif name == "processes":
            points = tuple(
                ProcessPoint(asked=count, reason=reason, interrupted=interrupted)
                for count in case.sampling.processes
            )
            result = replace(result, processes=points)
        elif name == "task":
            label = case.dataset.label if case.dataset is not None else ""
            task = TaskAccuracy(dataset=label, reason=reason, interrupted=interrupted)
            result = replace(result, task=task)
    return replace(result, flags=flags_of(result))


def _energy(result: CaseResult, launcher: Launcher, _others: Sequence[Case]) -> CaseResult:
    try:
        return replace(result, energy=_measured_energy(result.case, launcher))
    except WorkerError as error:
        reason = f"{error.failure.kind}: {error.failure.message}"
        return replace(result, energy=Energy(reason=reason))


def _measured_energy(case: Case, launcher: Launcher) -> Energy:
    # Windows longer than usual take time of their own, as a soak does.
    longer_s = max(0.0, case.sampling.energy_window_s - Sampling().energy_window_s)
    deadline = time.monotonic() + case.sampling.timeout_s + _TRIALS * longer_s
    with closing(launcher.open(case, worker=0, deadline=deadline)) as worker:
        if worker.opened.no_energy:
            return Energy(reason=worker.opened.no_energy)
        worker.ask(WarmUpFor(budget_s=warm_up_budget_s(case)))
        budget_s = max(0.0, deadline - time.monotonic() - _ANSWER_S)
        return worker.ask(MeasureEnergy(budget_s=budget_s))


def _profile(result: CaseResult, launcher: Launcher, _others: Sequence[Case]) -> CaseResult:
    try:
        profile = profile_case(result.case, launcher)
        # A document of thousands of cases has to stay small; "ortbench profile" shows more.
        return replace(result, profile=replace(profile, nodes=profile.nodes[:_KEPT_NODES]))
    except WorkerError as error:
        reason = f"{error.failure.kind}: {error.failure.message}"
        return replace(result, profile=OperatorProfile(reason=reason))


def profile_case(case: Case, launcher: Launcher, trace: Path | None = None) -> OperatorProfile:
    """Profile one case by operator.

    Args:
        case: What to profile, prepared.
        launcher: Starts the worker.
        trace: Where the profiler's Chrome trace goes; ``None`` keeps none.

    Raises:
        WorkerError: if it can't run.
    """
    deadline = time.monotonic() + case.sampling.timeout_s
    with closing(launcher.open(case, worker=0, deadline=deadline)) as worker:
        worker.ask(WarmUpFor(budget_s=warm_up_budget_s(case)))
        profile = worker.ask(ProfileOperators(keep="" if trace is None else str(trace)))
    if trace is not None:
        # A worker elsewhere tells its own path.
        profile = replace(profile, trace=str(trace))
    return profile if profile.macs is not None else _with_work_of_file(case, profile)


def _with_work_of_file(case: Case, profile: OperatorProfile) -> OperatorProfile:
    """Where nodes could not be counted, as in a provider's own subgraphs, the file may be."""
    from pytest_ortbench.models.arithmetic import count_file  # imports onnx

    if profile.reason:
        return profile
    try:
        work = count_file(Path(case.variant.path), {spec.name: spec.shape for spec in case.inputs})
    except ModelError:  # the runtime could read it: a format of its own
        return profile
    if not work.complete or work.activation_bytes is None:
        return profile
    return replace(
        profile,
        macs=work.macs,
        moved_bytes=countable(work.weight_bytes + work.activation_bytes),
        work_source="file",
    )


def _soak(result: CaseResult, launcher: Launcher, _others: Sequence[Case]) -> CaseResult:
    return replace(result, soak=measure_soak(result, launcher))


def _processes(result: CaseResult, launcher: Launcher, _others: Sequence[Case]) -> CaseResult:
    return replace(result, processes=measure_processes(result, launcher))


def _task(result: CaseResult, launcher: Launcher, _others: Sequence[Case]) -> CaseResult:
    case = result.case
    if case.dataset is None:
        return replace(result, task=TaskAccuracy(dataset="", reason="no labelled data was named"))
    try:
        return replace(result, task=_scored(case, case.dataset, launcher))
    except WorkerError as error:
        failure = error.failure
        kind = "" if failure.kind == "error" else f"{failure.kind}: "
        hint = f". {failure.hint}" if failure.hint else ""
        reason = f"{kind}{failure.message}{hint}"
        return replace(result, task=TaskAccuracy(dataset=case.dataset.label, reason=reason))


def _scored(case: Case, dataset: Dataset, launcher: Launcher) -> TaskAccuracy:
    """Score the case, and its reference first; without one the case's own metric still stands."""
    reference, why_none = "", ""
    try:
        reference = str(launcher.reference_scores(case))
    except WorkerError as error:
        why_none = error.failure.message
    deadline = time.monotonic() + case.sampling.timeout_s
    with closing(launcher.open(case, worker=0, deadline=deadline)) as worker:
        scored = worker.ask(ScoreTask(dataset=dataset, reference=reference))
        return replace(scored, reference_reason=why_none)


def _stages(result: CaseResult, launcher: Launcher, _others: Sequence[Case]) -> CaseResult:
    return replace(result, stages=measure_stages(result, launcher))


def _load(result: CaseResult, launcher: Launcher, _others: Sequence[Case]) -> CaseResult:
    return measure_loads(result, result.case.sampling.loads, launcher)


def _startup(result: CaseResult, launcher: Launcher, others: Sequence[Case]) -> CaseResult:
    return replace(result, start_ups=measure_start_ups(result, launcher, others))


#: Every pass by name, in the order in which they are carried out.
PASSES: dict[str, Callable[[CaseResult, Launcher, Sequence[Case]], CaseResult]] = {
    "energy": _energy,
    "profile": _profile,
    "soak": _soak,
    "load": _load,
    "stages": _stages,
    "startup": _startup,
    "processes": _processes,
    "task": _task,
}


def _over(
    outcome: Energy | OperatorProfile | Soak | Stages | StartUps | TaskAccuracy | None,
) -> bool:
    return outcome is not None and not outcome.interrupted


_IS_DONE: dict[str, Callable[[CaseResult], bool]] = {
    "energy": lambda result: _over(result.energy),
    "profile": lambda result: _over(result.profile),
    "soak": lambda result: _over(result.soak),
    "load": lambda result: not missing_loads(result, result.case.sampling.loads),
    "stages": lambda result: _over(result.stages),
    "startup": lambda result: _over(result.start_ups),
    "processes": lambda result: any(not point.interrupted for point in result.processes),
    "task": lambda result: _over(result.task),
}
