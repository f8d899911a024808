"""Dimensions that the user names, held against the models of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.model import Model
from pytest_ortbench.planning.feeds import batch_symbols, symbols_of


def check_dims(
    dims: Mapping[str, tuple[int, ...]], models: Sequence[Model], *, place: str = "--ort-dims"
) -> None:
    """Check the names of sizes that the user set, and that no batch is set to 0.

    Args:
        dims: Sizes by name.
        models: The models of the plan; one that has the name is enough.
        place: Where the sizes were written.

    Raises:
        UsageError: for a name that no model has, and for a batch of size 0.
    """
    known: set[str] = set()
    for model in models:
        known |= set(symbols_of(model))
    unknown = [name for name in dims if name not in known]
    if unknown and models:
        raise UsageError(
            f"no model has a dimension named {unknown[0]!r}",
            place=place,
            hint=did_you_mean(unknown[0], known),
        )
    for model in models:
        for name in batch_symbols(model):
            if 0 in dims.get(name, ()):
                raise UsageError(
                    f"{name}:0 is too small: {name!r} is the batch axis of model {model.name!r}, "
                    "the least is 1",
                    place=place,
                    hint=f"Write e.g. {name}:1, or --ort-batch-sizes=1",
                )
