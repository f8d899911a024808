"""The canary: one pinned model, measured along with every stored run.

It lets a reader tell a change of the machine from a change of the code: history is judged on ratios
to it. It is a field of the run, never a case.
"""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

from pytest_ortbench.core.case import Case, Provider, Runtime, Sampling, SessionConfig
from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.model import Variant
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.core.run import Canary
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.models.resolve import BrokenModel, resolve_models
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.schema.case_questions import TimeBlock, WarmUpFor

#: Seconds of timed blocks; start, warm-up and these stay below three seconds together.
_TIMED_S = 1.0
_FEWEST, _KEPT = 10, 500
_TIMEOUT_S = 30.0

_MODEL = "builtin:canary"


def measure_canary(launcher: Launcher) -> Canary:
    """Measure the pinned model on one thread of the CPU provider, in one worker of ``current``.

    Returns:
        Its durations; with ``reason`` instead if it can't be measured, which never stops a run.
    """
    try:
        (model,) = resolve_models([_MODEL], root=Path.cwd())
        if isinstance(model, BrokenModel):
            return Canary(model=_MODEL, reason=str(model.error))
        case = Case(
            model=model,
            variant=Variant(
                precision="native",
                path=model.path,
                digest=model.digest,
                size_bytes=model.size_bytes,
            ),
            provider=Provider(alias="cpu", name=CPU),
            runtime=Runtime(label="current", command=(sys.executable,)),
            session=SessionConfig(intra_op_num_threads=1),
            inputs=resolve_inputs(model, batch=1, dims={}),
            sampling=Sampling(time_s=_TIMED_S, workers=1, timeout_s=_TIMEOUT_S),
        )
        deadline = time.monotonic() + _TIMEOUT_S
        with closing(launcher.open(case, worker=0, deadline=deadline)) as worker:
            warm_up = worker.ask(WarmUpFor(budget_s=1.0))
            typical_ns = sorted(warm_up.durations_ns)[len(warm_up.durations_ns) // 2]
            count = int(_TIMED_S * 1e9 / max(typical_ns, 1))
            iterations = max(_FEWEST, min(_KEPT, count))
            block = worker.ask(TimeBlock(iterations=iterations))
    except OrtbenchError as error:
        return Canary(model=_MODEL, reason=str(error))
    return Canary(model=f"{_MODEL}@{model.digest[:12]}", durations_ns=block.durations_ns)
