"""Scores on labelled data."""

from __future__ import annotations

from pytest_ortbench.core.metric import ANY, SHARE, metric
from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.pass_object import Pass, Phase

_METRICS = (
    metric(
        "task_metric",
        "task_metric",
        "1",
        "higher",
        "Mean score on the labelled data of --ort-dataset: the share of right answers, or what "
        "its metric gives.",
    ),
    metric(
        "task_ratio",
        "task_ratio",
        "ratio",
        "higher",
        "That metric as a share of the fp32 reference's on the same samples.",
        reach=ANY,
    ),
    metric(
        "task_kept",
        "task_kept",
        "ratio",
        "higher",
        "The share of the reference's task metric that is kept at least: the lower end of the 95 "
        "% interval of the paired difference.",
        reach=ANY,
    ),
    metric(
        "task_map",
        "task_map",
        "1",
        "higher",
        "Mean average precision of boxes over categories and overlaps from 0.5 to 0.95 "
        "(--ort-dataset=coco:labels.json), as COCO counts it.",
        reach=SHARE,
    ),
    metric(
        "task_map50",
        "task_map50",
        "1",
        "higher",
        "Mean average precision of boxes over categories at an overlap of 0.5.",
        reach=SHARE,
    ),
)

PASS = Pass(
    name="task",
    result_field="task",
    measure=".run.scoring:measure",
    lacking=".run.scoring:lacking",
    lacking_takes_result=True,
    questions=(
        (".questions:WriteScores", ".worker.scoring:write_reference_scores"),
        (".questions:ScoreTask", ".worker.scoring:score_task"),
        (".questions:WriteOwnScores", ".worker.scoring:write_own_scores"),
    ),
    bounds=".checks:BOUNDS",
    relations=".checks:RELATIONS",
    judge=".numbers:judge",
    judgement="task",
    judge_labels=".numbers:judge_task",
    nonfinite=".numbers:nonfinite",
    compare_sides=".run.scoring:score_sides",
    shown_columns=".report:COLUMNS",
    offers=(
        (Place(after="judgements"), ".fixture:task"),
        (Place(after="judgements"), ".fixture:task_facts"),
    ),
    add_numbers=".numbers:add_task",
    phase=Phase(name="task", doing="scoring labelled data", rank=10),
    keeps_numbers=True,
    metrics=_METRICS,
    metrics_place=Place(rank=10),
    columns=(
        (
            Place(after="session_create_warm_s", rank=20),
            (*(own.column for own in _METRICS), "task_samples"),
        ),
    ),
    cells=".numbers:cells",
    lines=".report:box_lines",
    beside_accuracy=".report:beside_accuracy",
    about_answers=".report:about_answers",
    facts_of_case=".report:facts_of_case",
)
