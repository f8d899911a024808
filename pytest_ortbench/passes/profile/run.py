"""The profile pass: a case in a worker of its own, whose session notes every node."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.arithmetic import countable
from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.errors import ModelError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.means import Means
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.passes.profile.facts import OperatorProfile
from pytest_ortbench.passes.profile.questions import ProfileOperators
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from pytest_ortbench.schema.case_questions import WarmUpFor

#: Slowest nodes of a case that a document keeps.
_KEPT_NODES = 12
#: Why a row whose timed unit is a request has no profile.
OF_INFERENCES = (
    "single inferences are profiled, but this case times whole requests; the rows prefill and "
    "decode of the model measure them separately (--ort-generate=off or auto)"
)
#: Profiles of each side of a comparison, in turns.
_OF_A_SIDE = 3


def measure(result: CaseResult, means: Means) -> OperatorProfile:
    """Profile a case, and keep what a document has room for.

    Raises:
        WorkerError: if its worker fails.
    """
    profile = profile_case(result.case, means.launcher)
    # A document of thousands of cases has to stay small; "ortbench profile" shows more.
    return replace(profile, nodes=profile.nodes[:_KEPT_NODES])


def profile_case(case: Case, launcher: Launcher, trace: Path | None = None) -> OperatorProfile:
    """Profile one case by operator.

    Args:
        case: What to profile, prepared.
        launcher: Starts the worker.
        trace: Where the profiler's Chrome trace goes; ``None`` keeps none.

    Raises:
        WorkerError: if it can't run.
    """
    if case.generation is not None:
        return OperatorProfile(reason=OF_INFERENCES)
    refused = why_no_profile(case.provider)
    if refused:
        return OperatorProfile(reason=refused)
    deadline = time.monotonic() + case.sampling.timeout_s
    with closing(launcher.open(case, worker=0, deadline=deadline)) as worker:
        worker.ask(WarmUpFor(budget_s=warm_up_budget_s(case)))
        profile = worker.ask(ProfileOperators(keep="" if trace is None else str(trace)))
    if trace is not None:
        # A worker elsewhere tells its own path.
        profile = replace(profile, trace=str(trace))
    return profile if profile.macs is not None else _with_work_of_file(case, profile)


def profile_sides(
    case: Case, before: Runtime, after: Runtime, launcher: Launcher
) -> tuple[list[OperatorProfile], list[OperatorProfile]]:
    """Profile a case on two runtimes by operator, in turns, several times.

    Args:
        case: What to profile, prepared.
        before: The runtime that is good.
        after: The one that is worse.
        launcher: Starts the workers.

    Returns:
        Profiles of both, as many of each.

    Raises:
        WorkerError: if a side can't run.
    """
    sides: tuple[list[OperatorProfile], list[OperatorProfile]] = ([], [])
    for _ in range(_OF_A_SIDE):
        for profiles, runtime in zip(sides, (before, after), strict=True):
            profiles.append(profile_case(replace(case, runtime=runtime), launcher))
    return sides


def _with_work_of_file(case: Case, profile: OperatorProfile) -> OperatorProfile:
    """Where nodes could not be counted, as in a provider's own subgraphs, the file may be."""
    from pytest_ortbench.models.arithmetic import count_file  # imports onnx

    if profile.reason:
        return profile
    try:
        sizes = {spec.name: spec.shape for spec in case.inputs}
        work = count_file(Path(case.variant.counted_path), sizes)
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


def why_no_profile(provider: Provider) -> str:
    """Say why nothing can be profiled on a provider; empty where it can be tried.

    Args:
        provider: Any provider, engine or framework.
    """
    if provider.is_execution_provider:
        return ""
    return (
        f"{provider.name} does not run in a session of ONNX Runtime, whose profiler records the "
        f"nodes: use the profiler of the {provider.role} itself"
    )
