"""The energy pass: a case under load in a worker of its own."""

from __future__ import annotations

import time
from contextlib import closing

from pytest_ortbench.core.case import Sampling
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.means import Means
from pytest_ortbench.passes.energy.declaration import PASS
from pytest_ortbench.passes.energy.facts import Energy
from pytest_ortbench.passes.energy.questions import MeasureEnergy
from pytest_ortbench.passes.energy.worker.energy_pass import Procedure
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from pytest_ortbench.schema.case_questions import WarmUpFor

#: What a worker may take to answer when its budget is used up.
_ANSWER_S = 5.0
#: Windows of an energy pass.
_TRIALS = Procedure().trials


def measure(result: CaseResult, means: Means) -> Energy:
    """Measure the energy of a case.

    Raises:
        WorkerError: if its worker fails.
    """
    case = result.case
    # Windows longer than usual take time of their own, as a soak does.
    longer_s = max(0.0, case.sampling.energy_window_s - Sampling().energy_window_s)
    deadline = time.monotonic() + case.sampling.timeout_s + _TRIALS * longer_s
    with closing(means.launcher.open(case, worker=0, deadline=deadline)) as worker:
        reason = worker.opened.impossible.get(PASS.name)
        if reason:
            return Energy(reason=reason)
        worker.ask(WarmUpFor(budget_s=warm_up_budget_s(case)))
        budget_s = max(0.0, deadline - time.monotonic() - _ANSWER_S)
        return worker.ask(MeasureEnergy(budget_s=budget_s))
