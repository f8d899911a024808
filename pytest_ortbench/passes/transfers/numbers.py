"""What copies cost: the ratio of blocks that were timed in one round."""

from __future__ import annotations

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.paired_ratio import PairedRatio, over_launches
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.transfers.declaration import PASS
from pytest_ortbench.passes.transfers.facts import Transfers


def transfer_cost(transfers: Transfers) -> PairedRatio | str:
    """Return the latency from the host ÷ on the device, or why that is not known."""
    if transfers.reason:
        return transfers.reason
    return over_launches([(launch.host_ns, launch.device_ns) for launch in transfers.launches])


def add_transfers(collector: Collector, result: CaseResult) -> None:
    """Add the ratio."""
    if result.transfers is None:
        collector.reject(PASS.metric_names, "copies were not timed (--ort-transfers)")
        return
    cost = transfer_cost(result.transfers)
    if isinstance(cost, str):
        collector.reject(PASS.metric_names, cost)
    else:
        collector.add(
            "transfer_ratio", cost.value, low=cost.low, high=cost.high, samples=cost.rounds
        )
