"""For which cases of a plan a service is looked at."""

from __future__ import annotations

from pytest_ortbench.core.case import Case
from pytest_ortbench.passes.served.facts import MOST_S
from pytest_ortbench.planning.served_apps import APP


def is_served(case: Case) -> bool:
    """Whether a case asks a service that the run starts."""
    return bool(case.provider.options.get(APP))


def takes_s(case: Case, worker_s: float) -> float:
    """Return about how long it takes: no worker is started."""
    del case, worker_s
    return MOST_S
