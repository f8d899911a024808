"""Whether sides that can't be told apart are known to be alike, or nothing is known of them.

Nothing is known, either, where the number of a side is of a single process: whatever the gap, how
far processes of it differ was not seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.analysis.candidates import EVEN_WITHIN
from pytest_ortbench.fleet.numbers.matrix import Cell, Matrix, Row, is_timed
from pytest_ortbench.fleet.numbers.ratios import Ratio, geometric_mean, ratio


def single_cells(row: Row, metric: str) -> tuple[int, ...]:
    """Return the sides of a row that are compared by the number of a single process.

    Args:
        row: The row.
        metric: What is compared; sizes and memory do not vary so between processes.
    """
    ranked = [
        index for index, cell in enumerate(row.cells) if cell.comparable and not cell.withheld
    ]
    if len(ranked) < 2 or not is_timed(metric):
        return ()
    return tuple(
        index for index in ranked if (case := row.cells[index].case) is not None and case.one_worker
    )


def single_sides(matrix: Matrix) -> tuple[int, ...]:
    """Return the sides whose mean over the common rows holds the number of a single process."""
    found = {
        index for row in matrix.rows if row.whole for index in single_cells(row, matrix.metric)
    }
    return tuple(sorted(found))


def doubt_words(matrix: Matrix) -> str:
    """Say which flags blur numbers of the common rows; empty for none."""
    if not is_timed(matrix.metric):
        return ""
    cases = (cell.case for row in matrix.rows if row.whole for cell in row.cells)
    names = dict.fromkeys(name for case in cases if case for name in case.blurred_by)
    return f" (not certain: {', '.join(names)})" if names else ""


def are_cells_even(row: Row) -> bool:
    """Whether the best cell of a row and those that tie with it are alike, whichever is better."""
    tied = [cell for cell in row.cells if cell.best or cell.tie]
    return all(_is_even_pair(best, other) for best in tied if best.best for other in tied)


def _is_even_pair(best: Cell, other: Cell) -> bool:
    if best is other:
        return True
    if best.quantity is None or other.quantity is None:
        return False
    return is_near_one(ratio(other.quantity, best.quantity))


def mean_ratio(matrix: Matrix, winner: int, other: int) -> Ratio | None:
    """Return the geometric mean of a side against another; ``None`` unless all rows have a ratio.

    Args:
        matrix: The comparison.
        winner: Index of the side that it is held against.
        other: Index of the side.
    """
    pairs = [
        (row.cells[other].quantity, row.cells[winner].quantity) for row in matrix.rows if row.whole
    ]
    known = [ratio(theirs, best) for theirs, best in pairs if theirs and best]
    ratios = [known_ratio for known_ratio in known if known_ratio is not None]
    return geometric_mean(ratios) if len(ratios) == len(pairs) else None


def are_sides_even(matrix: Matrix, winner: int, others: Sequence[int]) -> bool:
    """Whether sides are alike over all rows that they share.

    Args:
        matrix: The comparison.
        winner: Index of the best side.
        others: Indices of those that tie with it.
    """
    return all(is_near_one(mean_ratio(matrix, winner, other)) for other in others)


def is_near_one(factor: Ratio | None) -> bool:
    """Whether a ratio is near 1 at both ends; never without an interval."""
    if factor is None or factor.low is None or factor.high is None:
        return False
    return factor.low * EVEN_WITHIN >= 1 and factor.high <= EVEN_WITHIN
