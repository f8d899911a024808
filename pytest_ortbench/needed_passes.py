"""Which passes besides the standard one a test needs of its case, as far as it can be foreseen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_ortbench.core.metrics import ENERGY_METRICS, STARTUP_METRICS

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.core.limits import Limit
    from pytest_ortbench.options import Options
    from pytest_ortbench.planning.matrix import Planned


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
    passes = {"energy"} if named & {"energy", *ENERGY_METRICS} else set()
    if options.profile:
        passes.add("profile")
    if options.soak_s:
        passes.add("soak")
    if options.processes:
        passes.add("processes")
    if options.load:
        passes.add("load")
    if options.startup or named & set(STARTUP_METRICS):
        passes.add("startup")
    if planned.case.stages:
        passes.add("stages")
    if options.dataset is not None:
        passes.add("task")
    return passes
