"""Models together as a table."""

from __future__ import annotations

from pytest_ortbench.analysis.paired_ratio import PairedRatio, ratio_in_turns
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.passes.together.facts import WAYS, Together
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.pass_table import RATIO_HEADINGS, PassTable, ratio_cells

_HEADINGS = ("beside it", "alone", "beside", *RATIO_HEADINGS)


def together_tables(shown: ShownRun) -> tuple[PassTable, ...]:
    """Return a table for each case that ran beside others, in their order."""
    return tuple(
        _table(result, shown.name_of(result.case)) for result in shown.run.cases if result.together
    )


def _table(result: CaseResult, case: str) -> PassTable:
    found = [(together, ratio_in_turns(together)) for together in result.together]
    neighbours = dict.fromkeys(name for together, _ in found for name in together.neighbours)
    names = ", ".join(neighbours) or ", ".join(result.case.together)
    return PassTable(
        title=one_line(f"{case} beside {names}"),
        headings=_HEADINGS,
        rows=tuple(
            _row(together, cost) for together, cost in found if isinstance(cost, PairedRatio)
        ),
        remarks=tuple(
            one_line(f"{WAYS[together.way]}: {cost}")
            for together, cost in found
            if isinstance(cost, str)
        ),
    )


def _row(together: Together, cost: PairedRatio) -> tuple[str, ...]:
    return (
        WAYS[together.way],
        format_amount(cost.below_s, "s"),
        format_amount(cost.above_s, "s"),
        *ratio_cells(cost),
    )
