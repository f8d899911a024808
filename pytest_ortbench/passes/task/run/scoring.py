"""The task pass: labelled data through a case, and through its reference."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.execution.means import Means
from pytest_ortbench.launch.launcher import Launcher, Worker
from pytest_ortbench.passes.task.facts import TaskAccuracy
from pytest_ortbench.passes.task.questions import ScoreTask, WriteOwnScores, WriteScores
from pytest_ortbench.passes.task.run.boxes import read_detected, score_boxes


def measure(result: CaseResult, means: Means) -> TaskAccuracy:
    """Score a case on its labelled data; never raises for what fails."""
    case = result.case
    if case.dataset is None:
        return TaskAccuracy(dataset="", reason="no labelled data was given")
    if case.generation is not None:
        reason = "labels are compared with single inferences, but this case times whole requests"
        return TaskAccuracy(dataset=case.dataset.label, reason=reason)
    try:
        return _scored(case, case.dataset, means.launcher)
    except WorkerError as error:
        failure = error.failure
        kind = "" if failure.kind == "error" else f"{failure.kind}: "
        return TaskAccuracy(dataset=case.dataset.label, reason=f"{kind}{failure.told}")


def lacking(result: CaseResult, _argument: str, *, reason: str, interrupted: bool) -> TaskAccuracy:
    """Return what stands for labelled data that was not scored."""
    dataset = result.case.dataset
    label = dataset.label if dataset is not None else ""
    return TaskAccuracy(dataset=label, reason=reason, interrupted=interrupted)


def reference_scores(case: Case, dataset: Dataset, launcher: Launcher) -> Path:
    """Return a file of what the reference of a case scores on labelled data.

    Raises:
        WorkerError: if the reference can't be scored.
    """
    return launcher.written_by_reference(
        case,
        "scores",
        lambda reference, path: WriteScores(case=reference, dataset=dataset, path=str(path)),
    )


def _scored(case: Case, dataset: Dataset, launcher: Launcher) -> TaskAccuracy:
    """Score the case, and its reference first; without one the case's own metric still stands."""
    reference, why_none = "", ""
    try:
        reference = str(reference_scores(case, dataset, launcher))
    except WorkerError as error:
        why_none = error.failure.told
    with closing(_opened(case, launcher)) as worker:
        scored = _held_against(worker, dataset, reference)
        return replace(scored, reference_reason=why_none)


def _held_against(worker: Worker, dataset: Dataset, reference: str) -> TaskAccuracy:
    """Score an open case against a file of its reference's scores, which may be empty for none."""
    if dataset.boxes is None:
        return worker.ask(ScoreTask(dataset=dataset, reference=reference))
    with OwnFolder("boxes") as folder:
        path = folder / "detected.npz"
        # What the reference's outputs are, the case's are too, however wrong their values.
        form = dataset.boxes.form or (reference and read_detected(Path(reference)).form)
        read_alike = replace(dataset, boxes=replace(dataset.boxes, form=form))
        worker.ask(WriteOwnScores(dataset=read_alike, path=str(path)))
        return score_boxes(dataset, path, Path(reference) if reference else None)


def score_sides(
    baseline: Case, contender: Case, launcher: Launcher, scratch: Path
) -> TaskAccuracy | None:
    """Score labelled data on both sides, each in a worker of its own.

    Args:
        baseline: The case whose scores are the reference.
        contender: The case that is scored against them.
        launcher: Starts the workers.
        scratch: Folder for the baseline's scores.

    Returns:
        The contender's scores with the baseline's as the reference; ``None`` where a side has no
        labelled data.
    """
    own, dataset = baseline.dataset, contender.dataset
    if own is None or dataset is None:
        return None
    path = scratch / "side-scores.npz"
    try:
        with closing(_opened(baseline, launcher)) as worker:
            worker.ask(WriteOwnScores(dataset=own, path=str(path)))
        with closing(_opened(contender, launcher)) as worker:
            return _held_against(worker, dataset, str(path))
    except WorkerError as error:
        return TaskAccuracy(dataset=dataset.label, reason=error.failure.told)
    finally:
        path.unlink(missing_ok=True)


def _opened(case: Case, launcher: Launcher) -> Worker:
    deadline = time.monotonic() + case.sampling.timeout_s
    return launcher.open(case, worker=0, deadline=deadline)
