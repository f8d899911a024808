"""What of a difference in latency is the machine's, by the yardstick that took turns on both sides.

A ratio of two latencies is a ratio of two multiples of the yardstick times one of its own times:
the latter is how fast the machine was for other work in those minutes, the former what is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pytest_ortbench.analysis.relative_latency import RelativeLatency, mismatch, weighed
from pytest_ortbench.fleet.numbers.matrix import Cell, Matrix, Row
from pytest_ortbench.fleet.numbers.ratios import Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineShare:
    """One case of one side against the baseline.

    Attributes:
        row: The case on all sides.
        side: Index of the side.
        seen: Ratio of the latencies as they were seen.
        machine: What of it the yardstick took longer, too.
        left: What is left: ratio of the multiples of the yardstick.
        kernels: Kernels that the yardstick's library chose, of the baseline and of the side.
    """

    row: Row
    side: int
    seen: Ratio
    machine: float
    left: Ratio
    kernels: tuple[str, str]


def machine_shares(matrix: Matrix) -> list[MachineShare]:
    """Return what can be told of the cells that have a ratio to the baseline.

    Args:
        matrix: A comparison of latencies.
    """
    shares = []
    for row in matrix.rows:
        base = _against_yardstick(row.cells[matrix.baseline])
        for index, cell in enumerate(row.cells):
            own = _against_yardstick(cell)
            if index == matrix.baseline or cell.ratio is None or base is None or own is None:
                continue
            if mismatch(_of_any_machine(base), _of_any_machine(own)) is not None:
                continue
            own = weighed(own, base.weight)
            value = own.value / base.value
            shares.append(
                MachineShare(
                    row=row,
                    side=index,
                    seen=cell.ratio,
                    machine=cell.ratio.value / value,
                    left=Ratio(value=value, low=own.low / base.high, high=own.high / base.low),
                    kernels=(base.yardstick.kernels, own.yardstick.kernels),
                )
            )
    return shares


def _against_yardstick(cell: Cell) -> RelativeLatency | None:
    return None if cell.case is None else cell.case.relative


def _of_any_machine(relative: RelativeLatency) -> RelativeLatency:
    """Other kernels and another memory are part of another machine."""
    yardstick = replace(relative.yardstick, kernels="")
    return replace(relative, yardstick=yardstick, memory_s=None)
