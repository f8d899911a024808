"""How the fields of one type hang together: what a sum, a count and an order must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Any

from pytest_ortbench.core.case import CHAIN, Provider
from pytest_ortbench.core.gate import ContrastVerdict
from pytest_ortbench.core.outcome import (
    CaseResult,
    Measurement,
    OutputAccuracy,
    Placement,
    RuntimeInfo,
    Startup,
    WarmUp,
)
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.samples import PERCENTS, OrderStatistic, Samples
from pytest_ortbench.core.yardstick import YardstickTurns
from pytest_ortbench.passes.registry import PASSES

#: A field, and the rule that its value breaks.
Broken = tuple[str, str]

#: Sums of floats are exact to a millionth whatever the order in which they were added.
_ROUNDING = 1e-6


def _samples(samples: Samples) -> Iterator[Broken]:
    kept = len(samples.durations_ns)
    if not kept:
        yield "durations_ns", "must hold at least one duration"
        return
    if samples.count < kept:
        yield "count", f"must be {kept} at least, as many as there are in durations_ns"
    elif -(-samples.count // kept) != samples.stride:
        yield "stride", f"must be {samples.count} by {kept}, rounded up"
    low, high = samples.min_ns, samples.max_ns
    if low > high:
        yield "min_ns", "must not be above max_ns"
        return
    if min(samples.durations_ns) < low or max(samples.durations_ns) > high:
        yield "durations_ns", "must lie between min_ns and max_ns"
    if not samples.count * low <= samples.sum_ns <= samples.count * high:
        yield "sum_ns", "must lie between count times min_ns and count times max_ns"
        return
    total_s = samples.sum_ns * 1e-9
    least, most = total_s * total_s / samples.count, total_s * high * 1e-9
    if not least * (1 - _ROUNDING) <= samples.sum_of_squares_s2 <= most * (1 + _ROUNDING):
        yield "sum_of_squares_s2", f"must lie between {least:g} and {most:g}, by sum and maximum"
    yield from _ordered(samples)
    if samples.starved_blocks > samples.blocks:
        yield "starved_blocks", "must not be above blocks"


def _ordered(samples: Samples) -> Iterator[Broken]:
    """Percentiles rise, and lie among the samples."""
    statistics = samples.order_statistics
    if not any(statistic.percent == 50 for statistic in statistics):
        yield "order_statistics", "must hold the median"
    if any(lower.percent >= other.percent for lower, other in pairwise(statistics)):
        yield "order_statistics", "must be in ascending order of percent, each once"
    elif any(lower.value_ns > other.value_ns for lower, other in pairwise(statistics)):
        yield "order_statistics", "must not fall from one percentile to the next"
    for statistic in statistics:
        if not samples.min_ns <= statistic.value_ns <= samples.max_ns:
            yield "order_statistics", "must lie between min_ns and max_ns"
            return


def _order_statistic(statistic: OrderStatistic) -> Iterator[Broken]:
    if statistic.percent not in PERCENTS:
        yield "percent", f"must be one of {', '.join(f'{percent:g}' for percent in PERCENTS)}"
    if statistic.low_ns is not None and statistic.low_ns > statistic.value_ns:
        yield "low_ns", "must not be above value_ns"
    if statistic.high_ns is not None and statistic.high_ns < statistic.value_ns:
        yield "high_ns", "must not be below value_ns"


def _warm_up(warm_up: WarmUp) -> Iterator[Broken]:
    if len(warm_up.durations_ns) > warm_up.count:
        yield "count", f"must be {len(warm_up.durations_ns)} at least, as many as in durations_ns"


def _measurement(measurement: Measurement) -> Iterator[Broken]:
    if measurement.samples.min_ns == 0:
        yield "samples.min_ns", "must be above 0: no inference takes no time"


def _turns(turns: YardstickTurns) -> Iterator[Broken]:
    """A yardstick with its rounds, or the reason why there is none."""
    if (turns.yardstick is None) != bool(turns.absence):
        yield "absence", "must be empty exactly where there is a yardstick"
    kept = len(turns.model_mean_ns)
    for name in ("model_low_ns", "yardstick_mean_ns", "yardstick_low_ns"):
        if len(getattr(turns, name)) != kept:
            yield name, f"must hold {kept} entries, one a round as model_mean_ns"
    for name in ("memory_mean_ns", "memory_low_ns"):
        whole = getattr(turns, name.replace("memory", "yardstick"))
        parts = getattr(turns, name)
        if parts and len(parts) != kept:
            yield name, f"must hold {kept} entries, one a round as model_mean_ns, or none"
        if any(part >= of_unit for part, of_unit in zip(parts, whole, strict=False)):
            yield name, "must be below the time of the whole unit"
    if bool(turns.memory_mean_ns) != bool(turns.memory_low_ns):
        yield "memory_low_ns", "must hold entries exactly where memory_mean_ns does"
    if turns.handover_ns and len(turns.handover_ns) != kept:
        yield "handover_ns", f"must hold {kept} entries, one a round as model_mean_ns, or none"
    if 0 in turns.handover_ns:
        yield "handover_ns", "must be above 0: nothing takes no time"
    if turns.yardstick is None and kept:
        yield "model_mean_ns", "must be empty: there is no yardstick"
    if kept > turns.rounds:
        yield "rounds", f"must be {kept} at least, as many as there are in model_mean_ns"
    for side in ("model", "yardstick"):
        lows, means = getattr(turns, f"{side}_low_ns"), getattr(turns, f"{side}_mean_ns")
        if 0 in lows:
            yield f"{side}_low_ns", "must be above 0: nothing takes no time"
        if any(low > mean for low, mean in zip(lows, means, strict=False)):
            yield f"{side}_low_ns", f"must not be above {side}_mean_ns of the same round"


def _result(result: CaseResult) -> Iterator[Broken]:
    if result.status == "measured":
        if not result.measurements:
            yield "measurements", "must not be empty: the case counts as measured"
        if not result.case.variant.size_bytes:
            yield "case.variant.size_bytes", "must be above 0: the case counts as measured"
    elif result.failure is None:
        yield "failure", f"must not be missing: the case counts as {result.status!r}"
    elif result.failure.kind != result.status:
        yield "failure.kind", f"must be the status, {result.status!r}"
    workers = [measurement.worker for measurement in result.measurements]
    if len(set(workers)) < len(workers):
        yield "measurements", "must be of a worker each"
    yield from _of_role(result)


def _startup(startup: Startup) -> Iterator[Broken]:
    if startup.compiled_bytes is not None and startup.compile_ns is None:
        yield "compiled_bytes", "must be null: nothing was compiled, compile_ns is null"


def _runtime_info(info: RuntimeInfo) -> Iterator[Broken]:
    if info.engine_version and not info.engine:
        yield "engine_version", "must be empty: no engine is named"
    if info.engine and info.version:
        yield "version", f"must be empty: {info.engine!r} ran the case, and no ONNX Runtime"


def _of_role(result: CaseResult) -> Iterator[Broken]:
    """What the workers say of themselves fits what the case was to run on."""
    provider = result.case.provider
    engine = "" if provider.is_execution_provider else provider.alias
    what = f"the case runs on {provider.role} {provider.alias!r}"
    for index, measurement in enumerate(result.measurements):
        place = f"measurements[{index}]"
        if measurement.runtime.engine != engine:
            yield f"{place}.runtime.engine", f"must be {engine!r}: {what}"
        for name in () if engine else ("build_ns", "compile_ns"):
            if getattr(measurement.startup, name) is not None:
                yield f"{place}.startup.{name}", f"must be null: {what}"
    if engine and result.placement is not None:
        yield "placement", f"must be null: {what}, which has no execution providers"
    if not engine and result.product_bits is not None:
        yield "product_bits", f"must be null: {what}, whose placement has it"


def _run(run: Run) -> Iterator[Broken]:
    if run.resumed > len(run.cases):
        yield "resumed", f"must be {len(run.cases)} at most, as many as there are cases"
    keys = [result.case.key for result in run.cases]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        yield "cases", f"must be of a case each: {' in '.join(twice)} is there twice"
    # The end may stand before the start: a clock that was put right meanwhile is no nonsense.
    if not _is_time(run.started_at):
        yield "started_at", "must be a time of ISO 8601"
    if run.finished_at is not None and not _is_time(run.finished_at):
        yield "finished_at", "must be a time of ISO 8601"


def _is_time(text: str) -> bool:
    try:
        # Python 3.10 does not read the Z.
        datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return False
    return True


def _provider(provider: Provider) -> Iterator[Broken]:
    """A chain is one of execution providers, each of which is there once."""
    if not provider.is_execution_provider:
        if provider.then:
            yield "then", f"must be empty: {provider.role} {provider.alias!r} is no link"
        return
    for link in provider.links:
        if CHAIN in link.alias or CHAIN in link.device:
            yield "alias", f"must not hold {CHAIN!r}, which stands between links"
    if len({link.name for link in provider.links}) < len(provider.links):
        yield "then", "must hold each provider once"


def _links(placement: Placement) -> Iterator[Broken]:
    """The links of a chain, and why one of them computed nothing."""
    if placement.links and placement.links[0].provider != placement.provider:
        yield "links", "must begin with the provider"
    for index, link in enumerate(placement.links):
        place = f"links[{index}]"
        if link.idle and placement.executed.get(link.provider):
            yield f"{place}.idle", "must be empty: it computed"
        if bool(link.order) != (link.idle == "taken") or (link.executed is None) == bool(
            link.order
        ):
            yield f"{place}.order", "must be there, with the nodes, where an earlier link took them"


def _placement(placement: Placement) -> Iterator[Broken]:
    yield from _links(placement)
    ours, everything = placement.nodes_on_provider, placement.nodes_total
    if ours is not None and everything is not None and ours > everything:
        yield "nodes_on_provider", "must not be above nodes_total"
    if placement.cut_after is None:
        if placement.seen:
            yield "seen", "must be empty: the profile is whole"
        return
    for name in ("executed", "shape_only", "time_ns", "products"):
        if getattr(placement, name):
            yield name, "must be empty: the profile broke off"
    for name in ("nodes_on_provider", "nodes_total"):
        if getattr(placement, name) is not None:
            yield name, "must be null: the profile broke off"


def _output(output: OutputAccuracy) -> Iterator[Broken]:
    if output.agree is not None and output.rows is not None and output.agree > output.rows:
        yield "agree", "must not be above rows"
    if output.nonfinite or output.reference_nonfinite:
        for name in ("exact", "finite"):
            if getattr(output, name):
                yield name, "must be false: there are NaN or infinite values"
    elif output.exact and not output.finite:
        yield "exact", "must be false: the output is not finite"


def _contrast(contrast: ContrastVerdict) -> Iterator[Broken]:
    if contrast.low is not None and contrast.high is not None and contrast.low > contrast.high:
        yield "low", "must not be above high"


#: What is checked of each type beside its single values.
_STANDARD: dict[type, Callable[[Any], Iterator[Broken]]] = {
    CaseResult: _result,
    ContrastVerdict: _contrast,
    Measurement: _measurement,
    OrderStatistic: _order_statistic,
    OutputAccuracy: _output,
    Placement: _placement,
    Provider: _provider,
    Run: _run,
    RuntimeInfo: _runtime_info,
    Samples: _samples,
    Startup: _startup,
    WarmUp: _warm_up,
    YardstickTurns: _turns,
}


def _with_passes() -> dict[type, Callable[[Any], Iterator[Broken]]]:
    """Return all relations; those of passes on a type stand after the ones of the standard pass."""
    relations = {kind: [relation] for kind, relation in _STANDARD.items()}
    for entry in PASSES:
        if entry.relations:
            for kind, relation in entry.load(entry.relations).items():
                relations.setdefault(kind, []).append(relation)
    return {kind: partial(_all_of, tuple(several)) for kind, several in relations.items()}


def _all_of(
    relations: tuple[Callable[[Any], Iterator[Broken]], ...], value: object
) -> Iterator[Broken]:
    for relation in relations:
        yield from relation(value)


RELATIONS = _with_passes()
