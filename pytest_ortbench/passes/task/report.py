"""What a case scores on labelled data, in words."""

from __future__ import annotations

from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.placing import Place
from pytest_ortbench.core.units import counted, significant
from pytest_ortbench.passes.task.facts import BoxAccuracy, TaskAccuracy
from pytest_ortbench.passes.task.numbers import kept_ratio
from pytest_ortbench.report.column import Column
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable, one_line

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
            about="Share of the fp32 reference's task metric that is kept at least (lower end of "
            "the 95 % interval).",
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
    words = f"{task.metric} {value}"
    if task.boxes is not None:
        words += f", mAP50 {significant(task.boxes.own.mean_ap_50, 3)}"
    words += f" on {counted(task.samples, 'sample' if task.boxes is None else 'image')}"
    if task.reference_sum is None:
        return f"{words}; no reference: {task.reference_reason}"
    words += f"; reference {significant(task.reference_sum / task.samples, 3)}"
    kept = kept_ratio(task)
    if kept is None:
        return f"{words}: its share of the reference can't be computed"
    ratio, low, _ = kept
    return (
        f"{words}: {significant(100 * ratio, 4)} % of the reference's score, at least "
        f"{significant(100 * low, 4)} % (95 % interval)"
    )


def _scored_words(result: CaseResult, task: TaskAccuracy) -> str:
    """Say what a case scored, and whether on samples that it was calibrated on."""
    words = task_words(task)
    if result.case.is_scored_on_calibration:
        words += "; it was calibrated on some of these samples, so it may do worse on others"
    return words


def beside_accuracy(result: CaseResult) -> str:
    """Return the mean score in a few characters, empty without one."""
    task = result.task
    if task is None or not task.samples:
        return ""
    return f"task {significant(task.score_sum / task.samples, 3)}"


def about_answers(result: CaseResult) -> str:
    """Say what a case scored, or why it did not; empty where it was not asked for."""
    task = result.task
    if task is None or task.boxes is not None:
        return ""  # boxes have lines of their own
    return task.reason or _scored_words(result, task)


def box_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Return two lines for each case whose boxes were compared, after a blank one.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.
    """
    lines: list[str] = []
    for result in shown.run.cases:
        task = result.task
        if task is not None and task.boxes is not None:
            name = f"boxes of {shown.name_of(result.case)}"
            score = task.reason or _scored_words(result, task)
            lines += [f"{name}: {score}", f"{name}: {box_words(task.boxes)}"]
    return [encodable(one_line(line), encoding) for line in ["", *lines]] if lines else []


def facts_of_case(result: CaseResult) -> list[str]:
    """Say what one case scored, or why it did not; nothing where it was not asked for."""
    task = result.task
    if task is None:
        return []
    if task.reason:
        return [f"labelled data {task.dataset}: not scored, {task.reason}"]
    sentences = [f"labelled data {task.dataset}: {_scored_words(result, task)}"]
    if task.boxes is not None:
        sentences.append(box_words(task.boxes))
    return sentences


def box_words(boxes: BoxAccuracy) -> str:
    """Say how outputs were read as boxes, and how many there were."""
    return f"read as {boxes.form}; {boxes.classes}; {boxes.detected} detected, {boxes.drawn} drawn"
