"""The canary: one pinned model, measured along with every stored run.

It lets a reader tell a change of the machine from a change of the code: history is judged on ratios
to it. It is a field of the run, never a case.
"""

from __future__ import annotations

from contextlib import closing

from pytest_ortbench.core.case import Case, InputSpec, Provider, Runtime, Sampling, SessionConfig
from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.model import Model, Variant
from pytest_ortbench.core.run import Canary
from pytest_ortbench.launch.launcher import Launcher

#: Seconds of timed blocks; start, warm-up and these stay below three seconds together.
_TIMED_S = 1.0
_KEPT = 500


def measure_canary(
    launcher: Launcher, model: Model, inputs: tuple[InputSpec, ...], runtime: Runtime
) -> Canary:
    """Measure the pinned model on one thread of the CPU provider in one worker.

    Returns:
        Its durations; with ``reason`` instead if it can't be measured, which never stops a run.
    """
    case = Case(
        model=model,
        variant=Variant(
            precision="native", path=model.path, digest=model.digest, size_bytes=model.size_bytes
        ),
        provider=Provider(alias="cpu", name="CPUExecutionProvider"),
        runtime=runtime,
        session=SessionConfig(intra_op_num_threads=1),
        inputs=inputs,
        sampling=Sampling(time_s=_TIMED_S, workers=1, timeout_s=30.0),
    )
    try:
        with closing(launcher.open(case, worker=0, deadline=None)) as worker:
            warm_up = worker.warm(1.0)
            typical_ns = sorted(warm_up.durations_ns)[len(warm_up.durations_ns) // 2]
            block = worker.block(max(10, min(_KEPT, int(_TIMED_S * 1e9 / max(typical_ns, 1)))))
    except OrtbenchError as error:
        return Canary(model=model.name, reason=str(error))
    return Canary(model=model.name, durations_ns=block.durations_ns)

