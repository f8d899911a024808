"""Cases that time requests to the shipped decoder, planned as a run plans them."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.planning.family_models import resolve
from pytest_ortbench.planning.matrix import Target, build_plan
from pytest_ortbench.planning.request import PlanRequest

CURRENT = Target(runtime=Runtime(), providers=(Provider(alias="cpu", name="CPUExecutionProvider"),))


def decoder_case(
    root: Path, *, model: str = "decoder", prompt: int = 4, new: int = 3, batch: int = 1
) -> Case:
    """A case of requests of so many tokens to a shipped decoder, with one thread."""
    request = PlanRequest(
        models=(f"builtin:{model}",),
        generate="only",
        prompt_tokens=(prompt,),
        new_tokens=(new,),
        batch_sizes=(batch,),
        threads=(1,),
    )
    models = resolve(request.models, {}, root=root, notify=lambda _: None).models
    (planned,) = build_plan(request, models, [CURRENT]).entries
    return planned.case
