"""Pruned models beside their dense forms: whether the zeros made anything faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.precisions import PrecisionRatio, ratio_between
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedPair:
    """A pruned model and its dense form under the same settings.

    Attributes:
        pruned: The case of the model whose weights were pruned.
        dense: That of its dense form; ``None`` where this run measured none.
        latency: Median of the pruned one ÷ that of the dense one; ``None`` without a dense form.
    """

    pruned: Case
    dense: Case | None = None
    latency: PrecisionRatio | None = None


def pruned_pairs(summaries: Sequence[Summary]) -> list[PrunedPair]:
    """Return an entry for each measured case of a pruned file as it is, beside its dense form.

    A dense form has the same operators, the same number of weights and the same inputs, and few
    zeros. A model without one gets a single entry.
    """
    measured = [
        summary
        for summary in summaries
        if summary.status == "measured" and not summary.case.variant.recipe
    ]
    dense = {
        _likeness(summary.case): summary
        for summary in reversed(measured)
        if not summary.case.model.is_pruned
    }
    pairs: list[PrunedPair] = []
    alone: set[str] = set()
    for summary in measured:
        model = summary.case.model
        if not model.is_pruned:
            continue
        twin = dense.get(_likeness(summary.case))
        if twin is not None:
            ratio = ratio_between(twin, summary, "latency_p50")
            pairs.append(PrunedPair(pruned=summary.case, dense=twin.case, latency=ratio))
        elif model.name not in alone:
            alone.add(model.name)
            pairs.append(PrunedPair(pruned=summary.case))
    return pairs


def _likeness(case: Case) -> tuple[object, ...]:
    """What a case of a pruned model shares with that of its dense form."""
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
