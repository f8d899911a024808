"""Whether the sizes of inputs can be fed: none below zero, none empty, none too large."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.core.arithmetic import element_count
from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.element_types import element_of
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.models.decoders import is_cache_of
from pytest_ortbench.planning.sizes import Sizes, refusal

#: No array of numpy has more axes.
_MOST_AXES = 64
#: One random input larger than this is a mistake in the sizes, not a workload.
_MOST_BYTES = 8 * 2**30
_SIZE_OR_VALUES = "Set a size with --ort-dims, or use real inputs (--ort-inputs)"
_ITEM_BYTES = {"double": 8, "int64": 8, "uint64": 8, "float": 4, "int32": 4, "uint32": 4}


def check_work(model: Model, specs: Sequence[InputSpec]) -> None:
    """Refuse a model that is declared to give nothing, because of an input that holds nothing.

    An empty input is no reason by itself: it may only lend its type, or say "all axes". Where the
    model does not declare what it gives, the first run tells. What a file holds is fed as it is.
    """
    empty = next(
        (
            spec
            for spec in specs
            if 0 in spec.shape and not spec.path and not is_cache_of(model, spec.name)
        ),
        None,
    )
    if empty is None or not all(
        info.shape is not None and 0 in info.shape for info in model.outputs
    ):
        return
    raise refusal(
        f"axis {empty.shape.index(0)} of input {empty.name!r} has size 0, and "
        "every output is empty, so there is nothing to time",
        hint=advice_on_empty(model, empty.name),
    )


def advice_on_empty(model: Model, name: str) -> str:
    """Return what helps where an input holds nothing; no option changes a size that is fixed.

    Args:
        model: The model.
        name: Name of the input.
    """
    declared = next((info.shape for info in model.inputs if info.name == name), None)
    if declared is not None and 0 in declared:
        return "Export the model with a size above 0, or with an open size"
    return _SIZE_OR_VALUES


def check_size(
    info: TensorInfo,
    shape: tuple[int | str, ...],
    fed: tuple[int, ...],
    sizes: Sizes,
    *,
    may_be_empty: bool,
) -> None:
    """Refuse sizes that no input can have, and those that leave nothing to compute.

    Args:
        info: The input.
        shape: Its shape, with a name for every open axis.
        fed: The sizes of its axes.
        sizes: How they came about.
        may_be_empty: Whether an axis may have no element, as the length of a cache.

    Raises:
        RefusedCombination: with the axis.
    """
    if len(fed) > _MOST_AXES:
        raise refusal(
            f"input {info.name!r} has {len(fed)} axes, and no array has more than {_MOST_AXES}",
            hint=f"Export the model with at most {_MOST_AXES} axes",
        )
    for axis, size in enumerate(fed):
        symbol = shape[axis]
        if size < 0:
            raise refusal(
                f"axis {axis} of input {info.name!r} has the size {symbol}, which comes to {size}, "
                "and a size can't be below 0",
                hint="Set larger sizes with --ort-dims",
            )
        if size == 0 and isinstance(symbol, str) and not may_be_empty:
            how = sizes.of(symbol, size).how
            raise refusal(
                f"axis {axis} of input {info.name!r} has size 0 ({how}), so there is "
                "nothing to time",
                hint=_SIZE_OR_VALUES,
            )
    element = element_of(info.type)
    count = element_count(fed)
    total = None if count is None else count * _ITEM_BYTES.get(element, 2)
    if total is None or total > _MOST_BYTES:
        amount = (
            "more memory than can be addressed" if total is None else f"{total / 2**30:.1f} GiB"
        )
        raise refusal(
            f"input {info.name!r} of shape {list(fed)} would take {amount}"
            + ("" if total is None else " of memory"),
            hint="Set smaller sizes with --ort-dims",
        )
