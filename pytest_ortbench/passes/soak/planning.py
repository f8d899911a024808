"""What a soak asks of the models of a plan."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.model import Model
from pytest_ortbench.planning.feeds import check_dims
from pytest_ortbench.planning.request import PlanRequest


def check_plan(request: PlanRequest, models: Sequence[Model]) -> None:
    """Check the names of the sizes that vary.

    Raises:
        UsageError: for a name that no model has, and for a batch of size 0.
    """
    check_dims(request.sampling.soak_dims, models, place="--ort-soak-dims")


def soak_takes_s(case: Case, worker_s: float) -> float:
    """Return about how long a soak takes."""
    return worker_s + case.sampling.soak_s


def varied_dims(case: Case) -> Collection[str]:
    """Return the names of sizes that a soak of a case varies, if it has one."""
    return case.sampling.soak_dims if case.sampling.soak_s else ()
