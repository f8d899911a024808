"""What transfers must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_ortbench.passes.transfers.facts import TransferLaunch, Transfers
from pytest_ortbench.schema.bound_kinds import Bound, Numbers

#: What single values may be.
BOUNDS: dict[tuple[type, str], Bound] = {
    (TransferLaunch, "host_ns"): Numbers(1, 2**53),
    (TransferLaunch, "device_ns"): Numbers(1, 2**53),
}


def _launch(launch: TransferLaunch) -> Iterator[tuple[str, str]]:
    if len(launch.device_ns) != len(launch.host_ns):
        yield "device_ns", "must have an entry for each of host_ns"
    if not launch.host_ns:
        yield "host_ns", "must not be empty"


def _transfers(transfers: Transfers) -> Iterator[tuple[str, str]]:
    if not transfers.launches and not transfers.reason:
        yield "launches", "must not be empty where no reason says why"


#: What must agree within each type: the field that does not, and the rule that it breaks.
RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {
    TransferLaunch: _launch,
    Transfers: _transfers,
}
