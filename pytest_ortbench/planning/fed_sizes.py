"""Whether the sizes of inputs can be fed: none below zero, none empty, none too large.

A refusal comes with sizes that can be fed, where a small change makes some.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from pytest_ortbench.core.arithmetic import element_count
from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.element_types import element_of
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.models.decoders import is_cache_of
from pytest_ortbench.models.symbols import derived, evaluate, free_symbols, named_shapes
from pytest_ortbench.planning.sizes import Sizes, refusal

#: No array of numpy has more axes.
_MOST_AXES = 64
#: One random input larger than this is a mistake in the sizes, not a workload.
_MOST_BYTES = 8 * 2**30
#: An example of smaller sizes is of an input that leaves room for the others.
_ROOMY_BYTES = 2**28
#: An example of a size that is too small is this one, or at most so much larger than what it was.
_USUAL, _FARTHEST = 128, 4096
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
        hint=advice_on_empty(model, empty),
    )


def advice_on_empty(model: Model, spec: InputSpec) -> str:
    """Return what helps where an input holds nothing; no option changes a size that is fixed.

    Args:
        model: The model.
        spec: The input as it is fed, with an axis of size 0.
    """
    declared = next((info.shape for info in model.inputs if info.name == spec.name), None)
    if declared is None:
        return f"Give the inputs as arrays: --ort-inputs=FILE.npz, with an array {spec.name!r}"
    axis = spec.shape.index(0)
    shapes = dict(
        zip([info.name for info in model.inputs], named_shapes(model.inputs), strict=True)
    )
    shape = shapes.get(spec.name)
    symbol = shape[axis] if shape is not None and axis < len(shape) else 0
    if isinstance(symbol, str):
        values = dict.fromkeys(free_symbols(tuple(shapes.values())), 0)
        values |= {known.symbol: known.size for known in spec.resolved if known.symbol in values}
        return set_size(symbol, values)
    return f"Export the model so that axis {axis} of input {spec.name!r} is dynamic"


def set_size(symbol: str, values: Mapping[str, int], which: str = "a larger") -> str:
    """Advise a size of one dimension at which an axis has one element or more.

    Args:
        symbol: The size of the axis: a dimension, or an expression of some.
        values: Sizes of dimensions.
        which: What the size is to be, for people.
    """
    example = _near(symbol, values, 1, lambda size: size > 0)
    if not example:
        names = " or ".join(map(repr, names_in(symbol, values)))
        return f"Set {which} size for {names} with --ort-dims"
    return f"Set {which} size, e.g. --ort-dims={example}"


def names_in(symbol: str, values: Mapping[str, int]) -> tuple[str, ...]:
    """Return the dimensions that a size is made of: itself, where it is no expression.

    Args:
        symbol: The size.
        values: Sizes of dimensions.
    """
    expression = derived(symbol, values.keys())
    return (symbol,) if expression is None else expression.names()


def lower_size(symbol: int | str, values: Mapping[str, int], most: int) -> str:
    """Advise a size of one dimension at which an axis has at most so many elements.

    Args:
        symbol: The size of the axis.
        values: Sizes of dimensions.
        most: How many it may have.

    Returns:
        A step; empty where no dimension decides.
    """
    names = names_in(symbol, values) if isinstance(symbol, str) else ()
    if not isinstance(symbol, str) or not names:
        return ""
    if names == (symbol,):
        return f"Set {symbol!r} to at most {most}, e.g. --ort-dims={symbol}:{most}"
    example = _near(symbol, values, -1, lambda size: size <= most)
    setting = f", e.g. --ort-dims={example}" if example else " with --ort-dims"
    return f"Set {' or '.join(map(repr, names))} so that {symbol!r} is at most {most}{setting}"


def _near(symbol: str, values: Mapping[str, int], step: int, fits: Callable[[int], bool]) -> str:
    """Return a size of one dimension at which a size fits, as ``--ort-dims`` takes it.

    Args:
        symbol: The size that is to fit: a dimension, or an expression of some.
        values: Sizes of dimensions.
        step: 1 for larger ones, -1 for smaller ones.
        fits: Whether a size is right.

    Returns:
        ``NAME:SIZE``; empty where none is near.
    """
    for name in names_in(symbol, values):
        if name == symbol:
            return f"{name}:{_USUAL}"
        now = max(values.get(name, 0), 0)
        for size in range(now + step, max(now + step * _FARTHEST, 0), step):
            try:
                if fits(evaluate(symbol, {**values, name: size})):
                    return f"{name}:{size}"
            except (ArithmeticError, KeyError):
                continue
    return ""


def told_with(symbol: str, values: Mapping[str, int]) -> str:
    """Return the sizes of the dimensions in an expression: ``S = 5 and P = 2``."""
    names = names_in(symbol, values)
    return " and ".join(f"{name} = {values[name]}" for name in names if name in values)


def check_size(
    info: TensorInfo,
    shape: tuple[int | str, ...],
    fed: tuple[int, ...],
    sizes: Sizes,
    *,
    dims: Container[str],
    may_be_empty: bool,
) -> None:
    """Refuse sizes that no input can have, and those that leave nothing to compute.

    Args:
        info: The input.
        shape: Its shape, with a name for every open axis.
        fed: The sizes of its axes.
        sizes: How they came about.
        dims: Names of the dimensions that the user set by name.
        may_be_empty: Whether an axis may have no element, as the length of a cache.

    Raises:
        RefusedCombination: with the axis.
    """
    if len(fed) > _MOST_AXES:
        raise refusal(
            f"input {info.name!r} has {len(fed)} axes, but an array of numpy has at most "
            f"{_MOST_AXES}",
            hint=f"Export the model so that input {info.name!r} has at most {_MOST_AXES} axes",
        )
    for axis, size in enumerate(fed):
        symbol = shape[axis]
        if size < 0:
            raise refusal(
                f"axis {axis} of input {info.name!r} has the size {symbol}, which is {size} for "
                f"{told_with(str(symbol), sizes.values)}, but no size may be below 0",
                hint=set_size(str(symbol), sizes.values),
            )
        if size == 0 and isinstance(symbol, str) and not may_be_empty:
            known = sizes.of(symbol, size)
            how = f"{known.how}={symbol}:0" if known.origin == "dims" else known.how
            raise refusal(
                f"axis {axis} of input {info.name!r} has size 0 ({how}), so there is "
                "nothing to time",
                hint=set_size(symbol, sizes.values),
            )
    total = _bytes_of(info, fed)
    if total is None or total > _MOST_BYTES:
        amount = (
            "more memory than can be addressed"
            if total is None
            else f"{total / 2**30:.1f} GiB of memory"
        )
        raise refusal(
            f"input {info.name!r} of shape {list(fed)} would take {amount}, but random values are "
            f"made for at most {_MOST_BYTES >> 30} GiB",
            hint=_set_smaller(info, shape, sizes, dims, is_addressable=total is not None),
        )


def _bytes_of(info: TensorInfo, fed: Sequence[int]) -> int | None:
    """Memory of an input, ``None`` for more than can be addressed."""
    count = element_count(fed)
    return None if count is None else count * _ITEM_BYTES.get(element_of(info.type), 2)


def _set_smaller(
    info: TensorInfo,
    shape: tuple[int | str, ...],
    sizes: Sizes,
    dims: Container[str],
    *,
    is_addressable: bool,
) -> str:
    """Advise sizes at which an input takes little memory: the largest ones are halved."""
    values = sizes.values
    texts = [size for size in shape if isinstance(size, str)]
    tried = {name: values[name] for text in texts for name in names_in(text, values)}
    if not tried and is_addressable:
        return f"Give the inputs as arrays: --ort-inputs=FILE.npz, with an array {info.name!r}"
    if not tried:
        return f"Export the model with a smaller input {info.name!r}"
    try:
        while True:
            fed = [evaluate(size, tried) if isinstance(size, str) else size for size in shape]
            total = _bytes_of(info, fed)
            if total is not None and total <= _ROOMY_BYTES:
                break
            largest = max(tried, key=lambda name: tried[name])
            if tried[largest] <= 1:
                return f"Export the model so that the fixed axes of input {info.name!r} are smaller"
            tried[largest] = 1 << ((tried[largest] - 1).bit_length() - 1)
    except (ArithmeticError, KeyError):
        return f"Set smaller sizes for {' and '.join(map(repr, tried))} with --ort-dims"
    smaller = {name: size for name, size in tried.items() if size != values[name]}
    batch = {name for name, known in sizes.known.items() if known.origin == "batch"}
    by_option = set() if any(name in dims for name in batch) else batch
    named = ",".join(f"{name}:{size}" for name, size in smaller.items() if name not in by_option)
    options = [f"--ort-batch-sizes={smaller[name]}" for name in smaller if name in by_option][:1]
    options += [f"--ort-dims={named}"] if named else []
    which = "a smaller size" if len(smaller) == 1 else "smaller sizes"
    return f"Set {which}, e.g. {' '.join(options)}"
