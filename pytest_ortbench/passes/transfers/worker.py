"""One session of a case, run with its values on the host and on the device."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ortbench.passes.transfers.questions import TimeTransfers, TransferBlock
from pytest_ortbench.worker.binding import output_device_of
from pytest_ortbench.worker.calling import Loop, single_loop
from pytest_ortbench.worker.measured import room_for

if TYPE_CHECKING:
    from pytest_ortbench.worker.measured import MeasuredCase

#: What the case keeps its loops under.
_KEPT = "transfers"


def time_transfers(question: TimeTransfers, measured: MeasuredCase) -> TransferBlock:
    """Time a block of inferences, values being where the question says.

    Raises:
        Exception: what binding or an inference raises.
    """
    measured.enter("transfers")
    loops = measured.kept.setdefault(_KEPT, {})
    assert isinstance(loops, dict)  # nobody else keeps anything there
    if question.io not in loops:
        case = replace(measured.case, io=question.io)
        loops[question.io] = single_loop(case, measured.live(), measured.feeds)
    loop: Loop = loops[question.io]
    if question.untimed:
        loop(room_for(question.untimed))
    durations = room_for(question.iterations)
    loop(durations)
    on_device = question.io == "device"
    device, index = output_device_of(measured.case.provider) if on_device else ("", 0)
    return TransferBlock(
        durations_ns=tuple(durations), device=f"{device}:{index}" if on_device else ""
    )
