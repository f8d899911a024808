"""Earlier states of model files, called and fed as what became of them.

A name may come from a catalogue, from the configuration, or from the other models of the plan; so
a file as it was at a revision can't find its own. Nor does the catalogue say of it what sizes and
values it takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.planning.unreadable import UnreadableModel


def named_alike(
    models: Sequence[Model | UnreadableModel], later: Mapping[str, Model]
) -> list[Model | UnreadableModel]:
    """Give earlier states the names of what they became.

    Args:
        models: As they were read.
        later: What they became, by the path of the earlier state; others stay as they are.
    """
    return [_like(model, later[model.path]) if model.path in later else model for model in models]


def _like(model: Model | UnreadableModel, later: Model) -> Model | UnreadableModel:
    if isinstance(model, UnreadableModel):
        return replace(model, name=later.name)
    model = replace(
        model,
        name=later.name,
        reference=later.reference,
        default_dims=later.default_dims,
        workloads=later.workloads,
    )
    if not _takes_the_same(model.inputs, later.inputs):
        return model
    return replace(model, inputs=later.inputs, implied_dims=later.implied_dims)


def _takes_the_same(inputs: Sequence[TensorInfo], others: Sequence[TensorInfo]) -> bool:
    """Whether both take the same tensors, whatever their symbols are called."""
    return [_fixed(info) for info in inputs] == [_fixed(info) for info in others]


def _fixed(info: TensorInfo) -> tuple[str, str, tuple[int | None, ...] | None]:
    sizes = info.shape
    if sizes is not None:
        sizes = tuple(size if isinstance(size, int) else None for size in sizes)
    return info.name, info.type, sizes
