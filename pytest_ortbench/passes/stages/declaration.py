"""The user's stages around inference."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ortbench.core.metric import Metric, metric
from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.pass_object import Pass, Phase

#: Percentiles of a stage, and the samples that each needs.
_STAGE_PERCENTILES = {"p50": "median", "p90": "90th percentile", "p99": "99th percentile"}

_STAGES = {
    "preprocess": "the user's preprocessing of a frame",
    "frame_inference": "inference within a frame",
    "postprocess": "the user's postprocessing of a frame",
    "frame": "a whole frame: preprocessing, inference, postprocessing",
}


def _stage_metrics() -> Iterator[Metric]:
    for stage, described in _STAGES.items():
        for name, percentile in _STAGE_PERCENTILES.items():
            text = f"Time of {described}, {percentile}; by the rules of latency (--ort-stages)."
            yield metric(
                f"{stage}_{name}", f"{stage}_{name}_s", "s", "lower", text, rate="frame_rate"
            )
    yield metric(
        "frame_rate",
        "frame_rate_per_s",
        "1/s",
        "higher",
        "Items per second through the stages, one frame after the other.",
        counted="items",
    )
    yield metric(
        "pipeline_rate",
        "pipeline_rate_per_s",
        "1/s",
        "higher",
        "Items per second through the stages, a thread for each, so that they overlap.",
        counted="items",
    )


_METRICS = tuple(_stage_metrics())

PASS = Pass(
    name="stages",
    result_field="stages",
    measure=".run:measure",
    lacking=".run:lacking",
    takes_as_inferences=True,
    lacking_takes_result=True,
    questions=(
        (".questions:LoadStages", ".worker:load_stages"),
        (".questions:RunFrames", ".worker:run_frames"),
        (".questions:ProfileStages", ".worker:profile_stages"),
    ),
    phase=Phase(name="stages", doing="running the stages", rank=50),
    check_cases=".planning:check_cases",
    place_in_case=".planning:with_stages",
    workers=".numbers:workers_finished",
    fault=".fixture:fault",
    offers=((Place(after="memory", rank=20), ".fixture:frames"),),
    view="frames",
    add_numbers=".numbers:add_stages",
    metrics=_METRICS,
    metrics_place=Place(rank=30),
    columns=(
        (Place(after="session_create_warm_s", rank=30), tuple(own.column for own in _METRICS)),
    ),
    tables=".report:stage_tables",
    report_rank=40,
)
