"""What a provider takes of a model, and what mends a node that it leaves: found by trying."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import ModelError, WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.provider_kinds import CPU, WEBGPU
from pytest_ortbench.core.readiness import (
    NodeTrials,
    NotTaken,
    Readiness,
    SessionTrial,
    TriedNode,
)
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.models.lone_nodes import LoneNode, LoneNodes
from pytest_ortbench.models.ort_file import is_ort_file
from pytest_ortbench.planning.fixed_sizes import open_sizes
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.schema.case_questions import ProfilePlacement
from pytest_ortbench.schema.model_questions import TryNodes, TrySession

#: Failures that tell nothing about the model.
_OF_THE_MACHINE = ("unavailable", "timeout", "out_of_memory")
#: So many names of nodes are kept of one operator.
_NAMES = 3
#: So many operators are tried alone.
_OPERATORS = 20


def readiness(planned: Planned, launcher: Launcher) -> Readiness:
    """Try a case on its provider, and say what the provider takes of the model.

    Args:
        planned: The case, of a file as it is.
        launcher: Starts the processes.
    """
    case = planned.case
    start = Readiness(provider=case.provider.label, runtime=case.runtime.label, state="not tried")
    if not case.provider.is_execution_provider:
        return replace(
            start,
            reason=f"{case.provider.name} is no provider of ONNX Runtime, whose sessions are tried",
            hint=f"Measure the model there: pytest MODEL --ort-providers={case.provider.label}",
        )
    if planned.refusal is not None:
        return _failed(start, planned.refusal)
    try:
        trial = _asked(case, launcher, {})
        # The CPU takes what is left, so that its nodes show nothing of the others.
        is_named = any(map(trial.on, _names(case) - {CPU} or {CPU}))
        if not is_named or any(link.name == WEBGPU for link in case.provider.links):
            # *Seen*: of WebGPU's nodes the interface names none, or only transpositions that ONNX
            # Runtime put in; and older versions have none.
            return _by_profile(start, case, launcher)
    except WorkerError as error:
        return _failed(start, error.failure)
    left = trial.besides(_names(case))
    found = replace(
        start,
        told_by="assignment",
        taken=len(trial.nodes) - len(left),
        total=len(trial.nodes),
        by_link=_by_link(case, trial.on),
    )
    if not left:
        return replace(found, state="all")
    return replace(found, state="some", not_taken=_explained(case, left, launcher))


def _names(case: Case) -> frozenset[str]:
    """Names of the providers that are asked for: one, or those of the links of a chain."""
    return frozenset(link.name for link in case.provider.links)


def _by_link(case: Case, count: Callable[[str], int]) -> dict[str, int]:
    """Nodes that each link of a chain takes; nothing for a provider by itself."""
    links = case.provider.links if case.provider.then else ()
    return {link.label: count(link.name) for link in links}


def _failed(start: Readiness, failure: Failure) -> Readiness:
    state = "not tried" if failure.kind in _OF_THE_MACHINE else "refused"
    return replace(start, state=state, reason=failure.message, hint=failure.hint)


def _asked(case: Case, launcher: Launcher, sizes: Mapping[str, int]) -> SessionTrial:
    question = TrySession(case=case, sizes=dict(sizes))
    return launcher.ask(question, deadline=_deadline(case))


def _deadline(case: Case) -> float:
    return time.monotonic() + case.sampling.timeout_s


def _by_profile(start: Readiness, case: Case, launcher: Launcher) -> Readiness:
    """What a run of the model shows, where ONNX Runtime names no node of the provider."""
    with closing(launcher.open(case, worker=0, deadline=_deadline(case))) as worker:
        placement = worker.ask(ProfilePlacement())
    own = sum(placement.executed.get(name, 0) for name in _names(case))
    total = sum(placement.executed.values())
    left = tuple(
        NotTaken(op=op, nodes=nodes)
        for op, nodes in sorted(placement.ops_elsewhere.items(), key=lambda item: -item[1])
    )
    if placement.reason or not total:
        reason = placement.reason or "the run executed no computing node"
        return replace(start, reason=reason)
    state = "some" if left else "all"
    by_link = _by_link(case, lambda name: placement.executed.get(name, 0))
    found = replace(start, told_by="profile", state=state, taken=own, total=total)
    return replace(found, not_taken=left, by_link=by_link)


def _explained(case: Case, left: Sequence[TriedNode], launcher: Launcher) -> tuple[NotTaken, ...]:
    """The nodes that were left, by operator and by what mends it."""
    sizes = open_sizes(case).sizes
    still = _left_with_fixed_sizes(case, left, sizes, launcher) if sizes else list(left)
    remaining = list(still)
    by_sizes: list[TriedNode] = []
    by_itself: list[TriedNode] = []
    for node in left:
        same = next((each for each in remaining if (each.op, each.name) == _key(node)), None)
        if same is None:
            by_sizes.append(node)
        else:
            remaining.remove(same)
            by_itself.append(node)
    told = ", ".join(f"{name}={size}" for name, size in sizes.items())
    found = [_grouped(group, "sizes", told) for group in _by_operator(by_sizes)]
    groups = _by_operator(by_itself)
    causes = _causes(case, groups, sizes, launcher)
    found += [_grouped(group, *cause) for group, cause in zip(groups, causes, strict=True)]
    return tuple(sorted(found, key=lambda entry: -entry.nodes))


def _key(node: TriedNode) -> tuple[str, str]:
    return node.op, node.name


def _left_with_fixed_sizes(
    case: Case, left: Sequence[TriedNode], sizes: Mapping[str, int], launcher: Launcher
) -> list[TriedNode]:
    try:
        trial = _asked(case, launcher, sizes)
    except WorkerError:
        return list(left)  # nothing was mended
    return trial.besides(_names(case))


def _by_operator(nodes: Sequence[TriedNode]) -> list[list[TriedNode]]:
    groups: dict[tuple[str, str], list[TriedNode]] = {}
    for node in nodes:
        groups.setdefault((node.op, node.provider), []).append(node)
    return list(groups.values())


def _grouped(nodes: Sequence[TriedNode], cause: str, detail: str) -> NotTaken:
    return NotTaken(
        op=nodes[0].op,
        nodes=len(nodes),
        names=tuple(node.name for node in nodes if node.name)[:_NAMES],
        elsewhere=nodes[0].provider,
        cause=cause,
        detail=detail,
    )


def _causes(
    case: Case,
    groups: Sequence[Sequence[TriedNode]],
    sizes: Mapping[str, int],
    launcher: Launcher,
) -> list[tuple[str, str]]:
    """Cause and detail of each group: its first node is tried alone, and changed in one thing."""
    unknown = [("", "")] * len(groups)
    if not groups or not case.runtime.shares_files or is_ort_file(Path(case.variant.path)):
        return unknown
    try:
        lone = LoneNodes(Path(case.variant.path), sizes)
    except ModelError:
        return unknown
    with OwnFolder("trial") as folder:
        files = [
            list(_written(lone.of(group[0].op, group[0].name), folder, str(number)))
            for number, group in enumerate(groups[:_OPERATORS])
        ]
        names = tuple(name for group in files for name, _ in group)
        question = TryNodes(
            provider=case.provider,
            folder=str(folder),
            names=names,
            custom_ops=case.session.custom_ops,
        )
        try:
            trials = launcher.ask(question, deadline=_deadline(case), runtime=case.runtime)
        except WorkerError:
            return unknown
    found = [cause_of(group, trials) for group in files]
    return found + unknown[len(found) :]


def _written(
    nodes: Iterator[LoneNode], folder: Path, prefix: str
) -> Iterator[tuple[str, LoneNode]]:
    for number, node in enumerate(nodes):
        name = f"{prefix}-{number}.onnx"
        (folder / name).write_bytes(node.proto.SerializeToString())
        yield name, node


def cause_of(files: Sequence[tuple[str, LoneNode]], trials: NodeTrials) -> tuple[str, str]:
    """Return why a provider leaves a node, a key of ``CAUSES``, and what mended it.

    Args:
        files: The node alone, first as it is, then changed; by the name of the file.
        trials: Whether the provider took each.
    """
    if not files or files[0][0] not in trials.taken:
        return "", ""
    for name, node in files:
        if trials.taken.get(name, False):
            return node.change or "neighbours", node.detail
    return "operator", ""
