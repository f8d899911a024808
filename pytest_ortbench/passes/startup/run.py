"""The start-up pass: fresh processes under every condition that the platform can give, repeated."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.execution.means import Means
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.passes.startup.facts import FurtherShape, StartTrial, StartUps
from pytest_ortbench.passes.startup.questions import StartUp

#: Further shapes at most; each takes four inferences of every process.
MOST_SHAPES = 16


def measure(result: CaseResult, means: Means) -> StartUps:
    """Start a case again and again; what was measured until its worker fails is kept.

    Cases of the plan that differ in sizes only are further shapes.

    Raises:
        WorkerError: if the first start fails.
    """
    case = result.case
    shapes = further_shapes(case, means.others)
    deadline = time.monotonic() + case.sampling.timeout_s
    trials: list[StartTrial] = []
    try:
        with OwnFolder("engines") as folder:
            for turn in range(case.sampling.workers):
                engines = str(Path(folder, str(turn))) if case.runtime.shares_files else ""
                for trial in _turn(case, means.launcher, engines, shapes, deadline):
                    trials.append(trial)
    except WorkerError:
        if not trials:
            raise
    return StartUps(trials=tuple(trials))


def _turn(
    case: Case,
    launcher: Launcher,
    engines: str,
    shapes: tuple[FurtherShape, ...],
    deadline: float,
) -> Iterator[StartTrial]:
    """Each condition once: files cold, files warm, and engines that were built before."""

    def trial(page_cache: str, folder: str) -> StartTrial:
        question = StartUp(
            case=case,
            engines=folder,
            page_cache=page_cache,
            external_files=_external_files(case),
            shapes=shapes,
        )
        return launcher.ask(question, deadline=deadline)

    yield trial("cold", f"{engines}-cold" if engines else "")
    warm = trial("warm", engines)
    yield warm
    if warm.engines == "cold":
        yield trial("warm", engines)


def further_shapes(case: Case, others: Sequence[Case]) -> tuple[FurtherShape, ...]:
    """Return the shapes of the cases that differ from this one in sizes only.

    None where requests are timed: they are no single inferences of any shape.
    """
    if case.generation is not None:
        return ()
    shapes: dict[str, FurtherShape] = {}
    for other in others:
        if other.inputs and other.inputs != case.inputs and _rest(other) == _rest(case):
            sizes = [f"b{other.batch}", *(f"{name}:{size}" for name, size in other.dims.items())]
            label = "/".join(sizes)
            shapes.setdefault(label, FurtherShape(label=label, inputs=other.inputs))
    return tuple(shapes.values())[:MOST_SHAPES]


def _rest(case: Case) -> tuple[object, ...]:
    knobs = sorted(case.knobs.items())
    return (case.model.name, case.variant.precision, case.provider, case.runtime.label, knobs)


def _external_files(case: Case) -> tuple[str, ...]:
    """External data of the measured file, relative to its folder."""
    if case.variant.path == case.model.path:
        return case.model.external_files
    return case.variant.external_files
