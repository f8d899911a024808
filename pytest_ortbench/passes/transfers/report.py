"""Copies between host and device as a table."""

from __future__ import annotations

from pytest_ortbench.analysis.paired_ratio import ratio_in_turns
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.passes.transfers.facts import Transfers
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.pass_table import RATIO_HEADINGS, PassTable, ratio_cells

_HEADINGS = ("device", "from the host", "on the device", *RATIO_HEADINGS)


def transfer_tables(shown: ShownRun) -> tuple[PassTable, ...]:
    """Return a table for each case whose copies were timed, in their order."""
    return tuple(
        _table(result.transfers, shown.name_of(result.case))
        for result in shown.run.cases
        if result.transfers is not None
    )


def _table(transfers: Transfers, case: str) -> PassTable:
    cost = ratio_in_turns(transfers)
    title = one_line(f"transfers of {case}")
    if isinstance(cost, str):
        return PassTable(title=title, headings=_HEADINGS, remarks=(one_line(cost),))
    row = (
        one_line(transfers.device),
        format_amount(cost.above_s, "s"),
        format_amount(cost.below_s, "s"),
        *ratio_cells(cost),
    )
    return PassTable(title=title, headings=_HEADINGS, rows=(row,))
