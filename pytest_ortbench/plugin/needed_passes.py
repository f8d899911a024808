"""Which passes besides the standard one a test needs of its case, as far as it can be foreseen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_ortbench.core.metrics import ENERGY_METRICS, STARTUP_METRICS
from pytest_ortbench.core.option import OptionRow
from pytest_ortbench.plugin.options import ROWS

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.core.case import Case
    from pytest_ortbench.core.limits import Limit
    from pytest_ortbench.planning.matrix import Planned
    from pytest_ortbench.plugin.options import Options

#: Names by which a test asks for a pass: metrics, and what it calls of the fixture.
_ASKED_BY_NAME = {
    "energy": frozenset({"energy", *ENERGY_METRICS}),
    "startup": frozenset(STARTUP_METRICS),
}


def passes_of(
    item: pytest.Item, planned: Planned, limits: Iterable[Limit], options: Options
) -> set[str]:
    """Return the passes that a test needs; one that asks for more while it runs gets it then.

    Args:
        item: The test, whose code is searched for the names of metrics.
        planned: Its case.
        limits: What the case must keep.
        options: What the run was asked for.
    """
    code = getattr(getattr(item, "function", None), "__code__", None)
    named = {limit.metric.name for limit in limits}
    named.update(code.co_names if code is not None else ())
    passes = {name for name, words in _ASKED_BY_NAME.items() if named & words}
    passes |= {row.asks_for for row in ROWS if _asks(row, planned.case, options)}
    return passes


def _asks(row: OptionRow, case: Case, options: Options) -> bool:
    """Whether an option asks for a pass of a case, as far as its value goes with the case."""
    room, _, name = row.to.partition(".")
    holder = {"": options, "request": case, "sampling": case.sampling}[room]
    return bool(row.asks_for and getattr(holder, name or row.field))
