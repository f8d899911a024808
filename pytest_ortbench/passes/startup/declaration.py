"""Starts from fresh processes under known conditions."""

from __future__ import annotations

from pytest_ortbench.core.metric import metric
from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.pass_object import Pass

_METRICS = (
    metric(
        "session_create_disk",
        "session_create_disk_s",
        "s",
        "lower",
        "Creating the session with the model's files out of the page cache, so that they come "
        "from disk: median of fresh processes (--ort-startup). Of a framework: building the model "
        "from its source, too.",
    ),
    metric(
        "session_create_cached",
        "session_create_cached_s",
        "s",
        "lower",
        "Creating the session with the model's files in the page cache: median of fresh "
        "processes (--ort-startup). Of a framework: building the model from its source, too.",
    ),
    metric(
        "first_inference_shape",
        "first_inference_shape_s",
        "s",
        "lower",
        "The first inference of a further shape in a session that has run another: the slowest "
        "of the shapes' medians over fresh processes (--ort-startup).",
    ),
)

PASS = Pass(
    name="startup",
    result_field="start_ups",
    measure=".run:measure",
    lacking=".facts:StartUps",
    takes=".planning:starts_take_s",
    bounds=".checks:BOUNDS",
    questions=((".questions:StartUp", ".worker:start_case"),),
    is_asked_by_metrics=True,
    view="startup",
    add_numbers=".numbers:add_start_ups",
    metrics=_METRICS,
    metrics_place=Place(after="first_inference"),
    columns=(
        (Place(after="session_create_warm_s", rank=40), tuple(own.column for own in _METRICS)),
    ),
    tables=".report:start_up_tables",
    report_rank=20,
)
