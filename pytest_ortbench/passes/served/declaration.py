"""What a service that a run has started takes: steps of requests, processor time, memory."""

from __future__ import annotations

from functools import partial

from pytest_ortbench.core.metric import metric
from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.pass_object import Pass

_metric = partial(metric, is_of_services=True)

_METRICS = (
    _metric(
        "served_p50",
        "served_p50_s",
        "s",
        "lower",
        "Median time of a request to the service that the run has started (--ort-serve), one after "
        "the other, from its sending to the last byte of the answer.",
    ),
    _metric("served_p90", "served_p90_s", "s", "lower", "90th percentile of the same times."),
    _metric("served_p99", "served_p99_s", "s", "lower", "99th percentile of the same times."),
    _metric(
        "served_overhead",
        "served_overhead_s",
        "s",
        "lower",
        "Median time of a request to the service less that of its inference as the service tells "
        "it: HTTP, checks, queue, waiting for a batch, the client.",
    ),
    _metric(
        "served_cpu",
        "served_cpu_s",
        "s",
        "lower",
        "Processor time of the service and its processes for each of these requests.",
    ),
    _metric(
        "served_memory",
        "served_memory_bytes",
        "bytes",
        "lower",
        "Resident memory of the service and its processes after these requests.",
    ),
)

PASS = Pass(
    name="served",
    result_field="served",
    left_out_by="leave out --ort-serve",
    measure=".run:measure",
    lacking=".facts:ServiceUse",
    own_cases=".planning:is_served",
    takes=".planning:takes_s",
    relations=".checks:RELATIONS",
    offers=((Place(after="memory", rank=40), ".fixture:service"),),
    add_numbers=".numbers:add_service",
    metrics=_METRICS,
    metrics_place=Place(rank=30),
    columns=(
        (Place(after="session_create_warm_s", rank=20), tuple(own.column for own in _METRICS)),
    ),
    lines=".report:service_lines",
    tables=".report:service_tables",
    report_rank=35,
)
