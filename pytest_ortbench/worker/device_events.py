"""Events of a device in a profile: how long it computed for each node, by its own clock.

*Seen*: WebGPU's nodes are over when their commands are recorded, and the copy that brings a value
to the host waits for all of them. What the device did stands behind the runs, one event a program
in the order of recording, under ``node&operator&program``; the node's name is empty where the graph
has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

#: Category of such events.
CATEGORY = "Api"

#: Copies that wait for the device.
_WAITS = "MemcpyToHost"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvent:
    """One program that a device ran.

    Attributes:
        node: Name of the node; empty where it has none.
        op: Operator type.
        duration_us: Duration on the device.
    """

    node: str
    op: str
    duration_us: int


class Recorded(Protocol):
    """A node event, as far as a device's events are put under it."""

    name: str
    op: str
    provider: str
    duration_us: int
    run: int
    device_us: int | None


def device_event(name: str, duration_us: int) -> DeviceEvent | None:
    """Read an event by its name; ``None`` for one that names no node."""
    parts = name.rsplit("&", 2)
    if len(parts) < 3:
        return None
    return DeviceEvent(node=parts[0], op=parts[1], duration_us=duration_us)


def put_under_nodes(device: Sequence[DeviceEvent], nodes: Sequence[Recorded]) -> bool:
    """Give each node what the device computed for it, and copies what they took besides waiting.

    Args:
        device: The device's events, in the order of recording.
        nodes: The nodes that recorded them, and others of such providers, in order.

    Returns:
        Whether all events found their node; otherwise no node is changed.
    """
    computed: dict[int, int] = {}
    place = 0
    for event in device:
        while place < len(nodes) and not _recorded(nodes[place], event):
            place += 1
        if place == len(nodes):
            return False
        computed[place] = computed.get(place, 0) + event.duration_us
    providers = {nodes[place].provider for place in computed}
    pending, run = 0, 0
    for number, node in enumerate(nodes):
        if node.run != run:
            pending, run = 0, node.run
        if number in computed:
            node.device_us = computed[number]
            pending += computed[number]
        elif node.op == _WAITS and node.provider in providers:
            node.device_us = max(0, node.duration_us - pending)
            pending = 0
    return bool(computed)


def _recorded(node: Recorded, event: DeviceEvent) -> bool:
    return node.op == event.op and event.node in ("", node.name)
