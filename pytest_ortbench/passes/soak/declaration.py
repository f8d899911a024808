"""Memory over a long run: whether it grows for ever."""

from __future__ import annotations

from pytest_ortbench.core.metric import ANY, metric
from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.pass_object import Pass, Phase

_METRICS = (
    metric(
        "memory_growth",
        "memory_growth_bytes",
        "bytes",
        "lower",
        "Growth of resident memory per thousand inferences of a soak, after its warm-up "
        "(--ort-soak).",
        reach=ANY,
    ),
    metric(
        "leaks",
        "leaks",
        "1",
        "lower",
        "1 if memory kept growing during a soak, 0 if not (--ort-soak).",
        is_yes_or_no=True,
    ),
)

PASS = Pass(
    name="soak",
    result_field="soak",
    measure=".run:measure",
    lacking=".facts:Soak",
    takes=".planning:soak_takes_s",
    varied_dims=".planning:varied_dims",
    check_plan=".planning:check_plan",
    relations=".checks:RELATIONS",
    questions=((".questions:SoakFor", ".worker:soak_case"),),
    phase=Phase(name="soak", doing="soaking", rank=30),
    view="memory",
    add_numbers=".numbers:add_growth_of_case",
    metrics=_METRICS,
    metrics_place=Place(rank=40),
    columns=(
        (Place(after="session_create_warm_s", rank=50), tuple(own.column for own in _METRICS)),
    ),
    lines=".report:soak_lines",
)
