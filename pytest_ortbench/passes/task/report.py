"""What a case scores on labelled data, in words."""

from __future__ import annotations

from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.placing import Place
from pytest_ortbench.core.units import significant
from pytest_ortbench.passes.task.facts import TaskAccuracy
from pytest_ortbench.passes.task.numbers import kept_ratio
from pytest_ortbench.report.column import Column

#: Columns that people may ask tables for.
COLUMNS = tuple(
    (Place(after="mean"), column)
    for column in (
        Column(
            key="task",
            heading="task",
            about="Mean score on the labelled data of --ort-dataset.",
            row="task_metric",
            metric="task_metric",
        ),
        Column(
            key="kept",
            heading="kept",
            about="Share of the fp32 reference's task metric that is kept for certain.",
            row="task_kept",
            metric="task_kept",
        ),
    )
)


def task_words(task: TaskAccuracy) -> str:
    """Say metric, samples and what is kept of the reference's.

    ``top-1 of 'logits' 0.912 on 1000 samples; reference 0.915: 99.7 % kept, at least 99.1 % for
    certain``
    """
    value = significant(task.score_sum / task.samples, 3)
    words = f"{task.metric} {value} on {task.samples} sample{'s' if task.samples > 1 else ''}"
    if task.reference_sum is None:
        return f"{words}; no reference: {task.reference_reason}"
    words += f"; reference {significant(task.reference_sum / task.samples, 3)}"
    kept = kept_ratio(task)
    if kept is None:
        return f"{words}: no share of it can be taken"
    ratio, low, _ = kept
    return (
        f"{words}: {significant(100 * ratio, 4)} % kept, "
        f"at least {significant(100 * low, 4)} % for certain"
    )


def beside_accuracy(result: CaseResult) -> str:
    """Return the mean score in a few characters, empty without one."""
    task = result.task
    if task is None or not task.samples:
        return ""
    return f"task {significant(task.score_sum / task.samples, 3)}"


def about_answers(result: CaseResult) -> str:
    """Say what a case scored, or why it did not; empty where it was not asked for."""
    return "" if result.task is None else result.task.reason or task_words(result.task)


def facts_of_case(result: CaseResult) -> list[str]:
    """Say what one case scored, or why it did not; nothing where it was not asked for."""
    task = result.task
    if task is None:
        return []
    if task.reason:
        return [f"labelled data {task.dataset}: not scored, {task.reason}"]
    return [f"labelled data {task.dataset}: {task_words(task)}"]
