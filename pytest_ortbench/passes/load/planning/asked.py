"""What options of loads say, and what does not go with others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.extras import refuse_without
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.passes.load.facts import LoadSpec
from pytest_ortbench.passes.load.numbers.plan import plan_load
from pytest_ortbench.passes.load.numbers.spec import parse_load, why_unfit
from pytest_ortbench.passes.load.planning.metrics_file import resolved_load
from pytest_ortbench.planning.axes import split_list


def read_loads(written: OptionText) -> tuple[str, ...]:
    """Read loads as they are written, each once; files that they name become what these say."""
    texts = split_list(written.texts, place=written.place)
    return tuple(
        dict.fromkeys(resolved_load(text, base=written.base, place=written.place) for text in texts)
    )


def refuse_loads_beyond_timeout(
    *, value: tuple[str, ...], place: str, timeout_s: float, load_official: bool
) -> None:
    """Refuse a load that can't be read, or that the timeout is too short for."""
    for text in value:
        spec = parse_load(text, place=place)
        plan = plan_load(spec, capacity_per_s=None, timeout_s=timeout_s, official=load_official)
        if isinstance(plan, str):
            raise UsageError(plan, place=place)


def refuse_unwritten_tokens(options: Any, cases: Sequence[Case]) -> None:
    """Refuse loads without a generator, and bounds of tokens where no case of a run writes any.

    Raises:
        UsageError: if the generator is not installed, or for the first of the loads.
    """
    if options.load and cases and all(case.runtime.label == "current" for case in cases):
        refuse_without("mlperf_loadgen", "load", place=options.place_of("load"))
    nearest = next((case for case in cases if case.generation is not None), None)
    for text in options.load:
        spec = parse_load(text, place="load")
        if cases and all(why_unfit(spec, case) for case in cases):
            raise UsageError(
                f"no case of this run can be tested with {text!r}: "
                f"{why_unfit(spec, nearest or cases[0])}",
                place=options.place_of("load"),
                hint=_way_out(options, cases, nearest, spec),
            )


def _way_out(options: Any, cases: Sequence[Case], nearest: Case | None, spec: LoadSpec) -> str:
    """Return the next step where no case has a limit on tokens.

    Args:
        options: Of the run.
        cases: Those of the run.
        nearest: The first that is a request; ``None`` where all are single inferences.
        spec: The load.
    """
    if nearest is None:
        without = [
            options.place_of(name)
            for name in ("inputs", "dims", "generate")
            if name in options.given and (name != "generate" or options.generate == "off")
        ]
        rate = "" if spec.rate_per_s is None else f":{spec.rate_per_s:g}"
        single = f"write e.g. {spec.scenario}{rate or f':p{spec.percent:g}'}:20ms"
        if not without:
            return f"{single[0].upper()}{single[1:]}, a limit for single inferences"
        return (
            f"To test single inferences, {single}. To test requests of a language model, leave out "
            f"{' and '.join(without)}"
        )
    if nearest.batch > 1:
        kept = ",".join(map(str, sorted({1, *(case.batch for case in cases)})))
        return (
            f"Use --ort-batch-sizes=1. To measure the larger batches, too, use "
            f"--ort-batch-sizes={kept}"
        )
    return "Have at least two tokens written: --ort-new-tokens=2"


def loads_take_s(case: Case, worker_s: float) -> float:
    """Return about how long the loads of a case take, each in a worker of its own."""
    return sum(worker_s + _load_takes_s(text, case) for text in case.sampling.loads)


def _load_takes_s(text: str, case: Case) -> float:
    plan = plan_load(
        parse_load(text, place="--ort-load"),
        capacity_per_s=None,
        timeout_s=case.sampling.timeout_s,
        official=case.sampling.load_official,
    )
    return case.sampling.timeout_s if isinstance(plan, str) else plan.expected_s
