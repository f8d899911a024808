"""What a service that a run has started takes: steps of requests, processor time, memory."""

from __future__ import annotations

from pytest_ortbench.passes.pass_object import Pass

PASS = Pass(
    name="served",
    result_field="served",
    measure=".run:measure",
    lacking=".facts:ServiceUse",
    own_cases=".planning:is_served",
    takes=".planning:takes_s",
    relations=".checks:RELATIONS",
    lines=".report:service_lines",
    report_rank=35,
)
