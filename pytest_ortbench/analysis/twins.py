"""Models beside forms of themselves without one trait: pruned weights, weights that are inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.precisions import PrecisionRatio, ratio_between
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.model import Model
from pytest_ortbench.core.precision import BASE
from pytest_ortbench.core.recipe import GRAPH_BASES


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrasted:
    """A model with a trait and a form of it without, under the same settings.

    Attributes:
        marked: The case of the model that has the trait.
        plain: That of the form that lacks it; ``None`` where this run measured none.
        latency: Median of the marked one ÷ that of the plain one; ``None`` without a plain form.
    """

    marked: Case
    plain: Case | None = None
    latency: PrecisionRatio | None = None


def pruned_pairs(summaries: Sequence[Summary]) -> list[Contrasted]:
    """Return an entry for each measured case of a pruned file as it is, beside its dense form.

    A dense form has the same operators, the same number of weights and the same inputs, and few
    zeros. A model without one gets a single entry.
    """
    return _pairs(summaries, lambda model: model.is_pruned, made=False)


def unfolded_pairs(summaries: Sequence[Summary]) -> list[Contrasted]:
    """Return an entry for each case of a file whose weights are inputs, beside a clean one.

    That is a file with the same operators, weights and inputs, or a graph that was made of the
    same file. A model without one gets a single entry.
    """
    return _pairs(summaries, lambda model: model.weights_as_inputs > 0, made=True)


def _pairs(
    summaries: Sequence[Summary], is_marked: Callable[[Model], bool], *, made: bool
) -> list[Contrasted]:
    """Pair cases of marked files with plain ones; with ``made``, with graphs made of them, too."""
    measured = [summary for summary in summaries if summary.status == "measured"]
    as_is = [summary for summary in measured if not summary.case.variant.recipe]
    files = [summary for summary in as_is if not is_marked(summary.case.model)]
    graphs = [
        summary
        for base in GRAPH_BASES
        for summary in measured
        if made and summary.case.variant.recipe.get(BASE) == base
    ]
    plain = {_likeness(summary.case): summary for summary in reversed([*files, *graphs])}
    pairs: list[Contrasted] = []
    alone: set[str] = set()
    for summary in as_is:
        model = summary.case.model
        if not is_marked(model):
            continue
        twin = plain.get(_likeness(summary.case))
        if twin is not None:
            ratio = ratio_between(twin, summary, "latency_p50")
            pairs.append(Contrasted(marked=summary.case, plain=twin.case, latency=ratio))
        elif model.name not in alone:
            alone.add(model.name)
            pairs.append(Contrasted(marked=summary.case))
    return pairs


def _likeness(case: Case) -> tuple[object, ...]:
    """What a case of a marked model shares with that of its plain form."""
    return (
        _structure(case.model),
        case.provider.label,
        case.runtime.label,
        case.batch,
        tuple(sorted(case.dims.items())),
        tuple(sorted(case.knobs.items())),
    )


def _structure(model: Model) -> tuple[object, ...]:
    return (
        model.parameters,
        tuple(sorted(model.op_types.items())),
        tuple((tensor.name, tensor.type, tensor.shape) for tensor in model.inputs),
    )
