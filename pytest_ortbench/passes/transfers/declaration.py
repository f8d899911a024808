"""What it costs to bring inputs to a device and outputs to the host with each inference."""

from __future__ import annotations

from pytest_ortbench.core.metric import FROM_ZERO, metric
from pytest_ortbench.passes.pass_object import Pass, Phase

PASS = Pass(
    name="transfers",
    result_field="transfers",
    measure=".run:measure_transfers",
    lacking=".facts:Transfers",
    takes_as_inferences=True,
    relations=".checks:RELATIONS",
    bounds=".checks:BOUNDS",
    questions=((".questions:TimeTransfers", ".worker:time_transfers"),),
    phase=Phase(name="transfers", doing="timing copies between host and device", rank=56),
    add_numbers=".numbers:add_transfers",
    metrics=(
        metric(
            "transfer_ratio",
            "transfer_ratio",
            "1",
            "lower",
            "Latency with inputs and outputs on the host ÷ on the device (--ort-transfers).",
            reach=FROM_ZERO,
        ),
    ),
    tables=".report:transfer_tables",
    report_rank=16,
)
