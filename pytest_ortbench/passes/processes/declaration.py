"""A case in several processes at a time."""

from __future__ import annotations

from pytest_ortbench.passes.pass_object import Pass

PASS = Pass(
    name="processes",
    result_field="processes",
    measure=".run:measure",
    lacking=".run:lacking",
    takes=".planning:processes_take_s",
    lacking_takes_result=True,
    relations=".checks:RELATIONS",
    tables=".report:process_tables",
    for_fleet=".fleet:parallel",
    report_rank=10,
)
