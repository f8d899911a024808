"""A service under a steady load, also while it is started again and gets what is no request."""

from __future__ import annotations

from functools import partial

from pytest_ortbench.core.metric import ANY, FROM_ZERO, metric
from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.pass_object import Pass, Phase

_metric = partial(metric, is_of_services=True)

_METRICS = (
    _metric(
        "endurance_lost",
        "endurance_lost_ratio",
        "ratio",
        "lower",
        "Share of the requests of the load of --ort-endurance that got no answer that counts.",
    ),
    _metric(
        "endurance_away",
        "endurance_away_s",
        "s",
        "lower",
        "Longest time from a request of that load that failed to the next answer; 0 where none "
        "failed.",
        reach=FROM_ZERO,
    ),
    _metric(
        "endurance_growth",
        "endurance_growth_bytes",
        "bytes",
        "lower",
        "Growth of the resident memory of the service per thousand requests of that load, after "
        "its warm-up.",
        reach=ANY,
    ),
    _metric(
        "endurance_leaks",
        "endurance_leaks",
        "1",
        "lower",
        "1 if the memory of the service kept growing under that load, 0 if not.",
        is_yes_or_no=True,
    ),
)

PASS = Pass(
    name="endurance",
    result_field="endurance",
    measure=".run.enduring:measure",
    lacking=".facts:Endurance",
    own_cases=".planning:endures",
    takes=".planning:lasts_s",
    bounds=".checks:BOUNDS",
    relations=".checks:RELATIONS",
    questions=((".questions:KeepUnderLoad", ".worker:keep_under_load"),),
    phase=Phase(name="endurance", doing="keeping a service under load", rank=45),
    offers=((Place(after="memory", rank=45), ".fixture:endurance"),),
    add_numbers=".numbers:add_endurance",
    metrics=_METRICS,
    metrics_place=Place(rank=45),
    columns=(
        (Place(after="session_create_warm_s", rank=55), tuple(own.column for own in _METRICS)),
    ),
    lines=".report:endurance_lines",
    report_rank=37,
)
