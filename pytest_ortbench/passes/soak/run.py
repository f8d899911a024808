"""The soak pass, on the case's own shape or on many."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from contextlib import closing

from pytest_ortbench.core.case import Case, InputSpec
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.graph_capture import captures_graph
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.means import Means
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.soak.questions import SoakFor
from pytest_ortbench.planning.feeds import inputs_at, workloads
from pytest_ortbench.planning.sizes import ModelAxes, RefusedCombination
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from pytest_ortbench.schema.case_questions import WarmUpFor

#: Shapes at most: every one is drawn and kept, so that drawing is no part of the soak.
MOST_SHAPES = 300


def measure(result: CaseResult, means: Means) -> Soak:
    """Soak a case that has been measured.

    Raises:
        WorkerError: if its worker fails.
    """
    case = result.case
    if case.provider.is_endpoint:
        return Soak(reason="the memory of a service is not that of its client")
    varied = [name for name in case.sampling.soak_dims if name in ModelAxes(case.model).symbols]
    if varied and case.generation is not None:
        return Soak(
            reason="sizes of requests are their tokens (--ort-prompt-tokens), not dimensions"
        )
    shapes = tuple(soak_shapes(case))
    if varied and not shapes:
        sizes = ", ".join(varied)
        return Soak(reason=f"the model accepts none of the sizes of {sizes} (--ort-soak-dims)")
    if shapes and captures_graph(case.provider):
        return Soak(reason="a recorded graph replays one shape only (--ort-soak-dims)")
    deadline = time.monotonic() + case.sampling.timeout_s + case.sampling.soak_s
    with closing(means.launcher.open(case, worker=0, deadline=deadline)) as worker:
        worker.ask(WarmUpFor(budget_s=warm_up_budget_s(case)))
        return worker.ask(SoakFor(seconds=case.sampling.soak_s, shapes=shapes))


def soak_shapes(case: Case) -> Iterator[tuple[InputSpec, ...]]:
    """Yield the inputs of every shape that the soak goes through, in an order without a trend.

    Nothing where no size varies. Of more combinations than :data:`MOST_SHAPES` some are drawn.
    """
    axes = ModelAxes(case.model)
    varied = {
        name: sizes for name, sizes in case.sampling.soak_dims.items() if name in axes.symbols
    }
    if not varied:
        return
    preset = {}
    for workload in workloads(axes):
        if workload.name == case.knobs.get("workload"):
            preset = workload.dims
    # Memory that grows with the size would look like a leak if sizes grew with time.
    order = random.Random(case.seed)
    combinations = list(itertools.islice(itertools.product(*varied.values()), 100_000))
    order.shuffle(combinations)
    batch = case.batch if axes.batch_axis.symbols else None  # a fixed one fits as it is
    types = {spec.name: spec.type for spec in case.inputs}
    for sizes in combinations[:MOST_SHAPES]:
        dims = {**preset, **case.dims, **dict(zip(varied, sizes, strict=True))}
        try:
            specs = inputs_at(axes, batch=batch, dims=dims)
        except (RefusedCombination, UsageError):
            continue
        yield tuple(spec.typed(types.get(spec.name, spec.type)) for spec in specs)
