"""What the host asks the process of a yardstick."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.yardstick import Yardstick, YardstickBlock
from pytest_ortbench.schema.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareYardstick(Question[Yardstick]):
    """Make the data of a yardstick, and say what decides its speed.

    Attributes:
        name: A key of :data:`~pytest_ortbench.core.yardstick.YARDSTICKS`.
        threads: Threads that do its work.
    """

    name: str
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeYardstick(Question[YardstickBlock]):
    """Time single units of its work in a row, on all of its threads; then a value's way and back.

    Attributes:
        units: How many on each.
        untimed: Units before these, which fetch the data into the caches again.
    """

    units: int
    untimed: int
