"""Builds results of cases that generate, as workers would have given them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_ortbench.analysis.samples import reduce_blocks
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import Decoder, GeneratedRequest, Generation
from pytest_ortbench.core.outcome import Block, CaseResult, Samples
from tests.results_factory import make_case, make_measurement, make_model, make_result

MS = 1_000_000


def make_request(
    steps_ms: Sequence[float],
    *,
    chosen_ms: float = 0.0,
    prepared_ms: float | None = None,
    prompt: int = 16,
) -> GeneratedRequest:
    """A request of these steps; choosing every token takes as long as choosing the first."""
    steps = tuple(round(step * MS) for step in steps_ms)
    chosen = round(chosen_ms * MS)
    return GeneratedRequest(
        steps_ns=steps,
        chosen_ns=chosen,
        prepared_ns=None if prepared_ms is None else round(prepared_ms * MS),
        wall_ns=sum(steps) + len(steps) * chosen,
        prompt_tokens=prompt,
        new_tokens=len(steps),
    )


def make_generating_case(
    *,
    model: str = "decoder",
    engine: str = "session",
    prompt: int = 16,
    new: int = 4,
    depth: int = 0,
    batch: int = 1,
    precision: str = "native",
    provider: str = "cpu",
) -> Case:
    """A case of a decoder whose timed unit is a request."""
    decoder = Decoder(ids="input_ids", logits="logits", vocabulary=1000, context=2048)
    case = make_case(
        model=replace(make_model(model), decoder=decoder),
        batch=batch,
        precision=precision,
        provider=provider,
        knobs={
            "workload": "generate",
            "engine": engine,
            "prompt": str(prompt),
            "new": str(new),
            "depth": str(depth),
        },
    )
    asked = Generation(engine=engine, prompt_tokens=prompt, new_tokens=new, depth=depth)
    return replace(case, generation=asked)


def make_generated(
    workers: Sequence[Sequence[GeneratedRequest]], *, case: Case | None = None
) -> CaseResult:
    """The result of a case that generates, from the requests of each of its workers."""
    return make_result(
        case=case or make_generating_case(),
        measurements=[
            make_measurement(samples=samples_of(requests), worker=worker)
            for worker, requests in enumerate(workers)
        ],
    )


def samples_of(requests: Sequence[GeneratedRequest]) -> Samples:
    """Samples of one worker that carried out these requests in one block."""
    durations = tuple(request.wall_ns for request in requests)
    block = Block(
        durations_ns=durations,
        wall_ns=sum(durations),
        cpu_ns=sum(durations),
        requests=tuple(requests),
    )
    return reduce_blocks([block], keep=1000, clock_pair_ns=100)
