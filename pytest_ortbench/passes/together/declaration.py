"""Several models together: the latency of each alone, and while the others run beside it."""

from __future__ import annotations

from pytest_ortbench.core.metric import FROM_ZERO, metric
from pytest_ortbench.passes.pass_object import Pass, Phase

PASS = Pass(
    name="together",
    result_field="together",
    measure=".run:measure",
    lacking=".run:lacking",
    lacking_takes_result=True,
    place_in_case=".planning:with_neighbours",
    check_plan=".planning:refuse_wrong_models",
    check_cases=".planning:refuse_strangers",
    own_cases=".planning:has_neighbours",
    takes=".planning:together_takes_s",
    relations=".checks:RELATIONS",
    bounds=".checks:BOUNDS",
    questions=(
        (".questions:OpenBeside", ".worker:open_beside"),
        (".questions:TimeBeside", ".worker:time_beside"),
    ),
    phase=Phase(name="together", doing="running beside other models", rank=55),
    add_numbers=".numbers:add_interference",
    metrics=(
        metric(
            "interference_shared",
            "interference_shared",
            "1",
            "lower",
            "Latency beside the other models in one process ÷ alone (--ort-together).",
            reach=FROM_ZERO,
        ),
        metric(
            "interference_apart",
            "interference_apart",
            "1",
            "lower",
            "Latency beside the other models in processes of their own ÷ alone (--ort-together).",
            reach=FROM_ZERO,
        ),
    ),
    tables=".report:together_tables",
    report_rank=15,
)
