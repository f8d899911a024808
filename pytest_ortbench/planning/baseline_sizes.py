"""The default sizes of a gate: those of the baseline's model, where both sides take them.

A changed file must not choose the work that it is judged at. A graph that sums up a batch has a
default of another meaning, and a file that a catalogue does not know has none of its sizes. What
both models would be fed by themselves is kept, so that a reader is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_ortbench.core.case import Case, InputSpec
from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.gate import DefaultSizes
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.planning.fixed_sizes import fixing_refusal, with_fixed_sizes
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.planning.sides import PlannedPair
from pytest_ortbench.planning.sizes import ModelAxes

#: Origins of sizes that somebody set.
_SET = ("dims", "file")

_ORIGIN = "baseline"


def fed_alike(pair: PlannedPair, *, adopts: bool = False) -> PlannedPair:
    """Return a pair whose contender is fed the default sizes of its baseline.

    Args:
        pair: Both sides as they were planned.
        adopts: Whether the baseline takes what the contender's graph fixes, where it can.

    Returns:
        The pair itself where the two sides can't be fed alike.
    """
    contender = _fed_as(pair.contender, pair.baseline.case)
    baseline = pair.baseline
    if adopts and _shapes(contender.case) != _shapes(baseline.case):
        baseline = _fed_as(baseline, contender.case)
    if _shapes(contender.case) != _shapes(baseline.case):
        return pair
    return replace(pair, baseline=baseline, contender=contender)


def fed_as_stored(planned: Planned, stored: Case) -> Planned:
    """Return a case that is fed the default sizes of its stored baseline, where it takes them."""
    fed = _fed_as(planned, stored)
    return fed if _shapes(fed.case) == _shapes(stored) else planned


def differing_defaults_of(
    pair: PlannedPair, measured: Sequence[InputSpec] = ()
) -> tuple[DefaultSizes, ...]:
    """Return what each input is fed whose default is another one in either model.

    Args:
        pair: Both sides.
        measured: The inputs of the contender as it was measured; empty where it was not. A size
            that a graph refused is another one there.
    """
    baseline = pair.baseline
    return differing_defaults(
        pair.contender,
        baseline.own_inputs or baseline.case.inputs,
        measured,
        adopted=bool(baseline.own_inputs),
    )


def differing_defaults(
    contender: Planned,
    baseline: Sequence[InputSpec],
    measured: Sequence[InputSpec] = (),
    *,
    adopted: bool = False,
) -> tuple[DefaultSizes, ...]:
    """Return what each input is fed whose default is another one in either model.

    Args:
        contender: The case.
        baseline: As the baseline's model is fed by default.
        measured: As of :func:`differing_defaults_of`.
        adopted: Whether the baseline is not fed its default.
    """
    if not contender.own_inputs and not adopted:
        return ()
    planned, fed = _shapes_of(contender.case.inputs), _shapes_of(measured)
    before = _shapes_of(baseline)
    after = _shapes_of(contender.own_inputs) or planned
    return tuple(
        DefaultSizes(
            input=name,
            fed=fed.get(name, shape),
            baseline=_as_measured(before[name], shape, fed.get(name, shape)),
            contender=_as_measured(after[name], shape, fed.get(name, shape)),
        )
        for name, shape in planned.items()
        if name in before and name in after and not before[name] == after[name] == shape
    )


def _as_measured(
    default: tuple[int, ...], planned: tuple[int, ...], measured: tuple[int, ...]
) -> tuple[int, ...]:
    """A default with the sizes that were taken where it was planned and its graph refused it."""
    if not len(default) == len(planned) == len(measured):
        return default
    sides = zip(default, planned, measured, strict=True)
    return tuple(taken if own == size else own for own, size, taken in sides)


def _shapes_of(specs: Sequence[InputSpec]) -> dict[str, tuple[int, ...]]:
    return {spec.name: spec.shape for spec in specs}


def _shapes(case: Case) -> dict[str, tuple[int, ...]]:
    return _shapes_of(case.inputs)


def _fed_as(planned: Planned, other: Case) -> Planned:
    """A case at the sizes of another one where nobody set any; itself where it can't have them."""
    case = planned.case
    files = any(spec.path for spec in (*case.inputs, *other.inputs))
    if planned.refusal is not None or files or case.generation is not None:
        return planned
    if not case.inputs or not other.inputs or _shapes(case) == _shapes(other):
        return planned
    sizes = _sizes_at(case, other)
    if sizes is None:
        return planned
    try:
        specs = resolve_inputs(case.model, batch=None, dims=sizes)
    except OrtbenchError:
        return planned
    known = {size.symbol: size for spec in case.inputs for size in spec.resolved}
    types = {spec.name: spec.type for spec in case.inputs}
    told = tuple(
        replace(
            spec,
            resolved=tuple(
                known[size.symbol]
                if size.symbol in known and known[size.symbol].size == size.size
                else replace(size, origin=_ORIGIN, how="default of the baseline")
                for size in spec.resolved
            ),
        ).typed(types[spec.name])
        for spec in specs
    )
    fed = with_fixed_sizes(
        replace(case, inputs=told, no_batch=case.no_batch or _why_no_batch(case, other, told))
    )
    return replace(
        planned,
        case=fed,
        refusal=fixing_refusal(fed),
        own_inputs=planned.own_inputs or case.inputs,
    )


def _sizes_at(case: Case, other: Case) -> dict[str, int] | None:
    """A size for each symbol of a model; ``None`` where the other case gives one symbol two sizes.

    What was set, and what the graph fixes, stays.
    """
    axes = ModelAxes(case.model)
    known = {size.symbol: size for spec in case.inputs for size in spec.resolved}
    fixed = {*case.model.implied_dims, *(name for name, role in axes.roles if role.tied_size)}
    sizes = {
        name: known[name].size
        for name in axes.symbols
        if name in known
        and (known[name].origin in _SET or (known[name].origin == "graph" and name in fixed))
    }
    kept = set(sizes)
    shapes = _shapes(other)
    for info, shape in zip(case.model.inputs, axes.shapes, strict=True):
        fed = shapes.get(info.name)
        if shape is None or fed is None or len(fed) != len(shape):
            continue
        for symbol, size in zip(shape, fed, strict=True):
            if symbol not in axes.symbols or symbol in kept:
                continue
            if sizes.setdefault(str(symbol), size) != size:
                return None
    ties = ((sizes.get(symbol), sizes.get(leader)) for symbol, leader in axes.ties.items())
    if any(None not in sides and sides[0] != sides[1] for sides in ties):
        return None
    return sizes


def _why_no_batch(case: Case, other: Case, fed: Sequence[InputSpec]) -> str:
    """Why one inference is one item, where the batch axis is fed what the baseline counts."""
    batches = {size for spec in fed for size in spec.resolved if size.origin == _ORIGIN}
    symbols = ModelAxes(case.model).batch_axis.symbols
    if not any(size.symbol in symbols and size.size != case.batch for size in batches):
        return ""
    return other.no_batch or "the batch axis is fed the default of the baseline"
