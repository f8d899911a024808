"""Every input of a model with every size resolved, and how each size came about.

One symbol has one size in all inputs. A size is taken from the first of these that knows it:
``--ort-dims`` or the marker, the batch axis, real inputs, the catalogue or the model's own
defaults, the graph itself (a weight that the axis is multiplied with), and the documented defaults
of :mod:`~pytest_ortbench.planning.default_sizes`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ortbench.core.case import InputSpec, SymbolSize
from pytest_ortbench.core.errors import UnknownSizeError, UsageError, did_you_mean
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.generation import Generation
from pytest_ortbench.core.model import Model, TensorInfo, ValueHint
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.models.decoders import is_cache_of
from pytest_ortbench.models.symbols import (
    UnknownSymbolError,
    derived,
    evaluate,
)
from pytest_ortbench.models.well_known import is_flag
from pytest_ortbench.planning.default_sizes import OTHER, PAST, SEQUENCE
from pytest_ortbench.planning.fed_sizes import (
    check_size,
    check_work,
    lower_size,
    set_size,
    told_with,
)
from pytest_ortbench.planning.real_inputs import StoredInput, stored_inputs
from pytest_ortbench.planning.sizes import (
    ModelAxes,
    RefusedCombination,
    Sizes,
    find_sizes,
    misfit,
    refusal,
)

__all__ = [
    "Workload",
    "inputs_at",
    "named_by",
    "resolve_inputs",
    "stored_batch",
    "workloads",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A named preset of sizes, for a model that does two kinds of work (``prefill``, ``decode``).

    Attributes:
        name: For ids and tables.
        dims: Sizes by symbol, to be given to :func:`resolve_inputs` as ``dims``.
        note: What a reader should know, empty if nothing.
        generation: The request that is timed, ``None`` where single inferences are.
        refusal: Why it can't be measured; ``None`` if it can.
    """

    name: str
    dims: dict[str, int]
    note: str = ""
    generation: Generation | None = None
    refusal: Failure | None = None

    @property
    def knobs(self) -> dict[str, str]:
        """What stands for it in ids."""
        request = self.generation
        if request is None:
            return {"workload": self.name}
        return {
            "workload": self.name,
            "engine": request.engine,
            "prompt": str(request.prompt_tokens),
            "new": str(request.new_tokens),
            "depth": str(request.depth),
        }


def workloads(axes: ModelAxes) -> tuple[Workload, ...]:
    """Return the named presets of a model, the default first; empty for a model with one workload.

    A model with a cache of keys and values has two: ``decode``, one token after 128, and
    ``prefill``, 128 tokens. Where the model does not document that it takes an empty cache, the
    prefill has a past of one token. One with an input that says whether the cache is used takes an
    empty one: its first step is another branch.
    """
    model = axes.model
    if model.workloads:
        return tuple(Workload(name=name, dims=dims) for name, dims in model.workloads.items())
    past, tokens = axes.cache
    if not past or not tokens:
        return ()
    decode = {tokens: model.default_dims.get(tokens, 1), past: model.default_dims.get(past, PAST)}
    if any(is_flag(info) for info in model.inputs):
        prefill = {tokens: SEQUENCE, past: 0}
        return (
            Workload(name="decode", dims=decode),
            Workload(name="prefill", dims=prefill, note="the branch without a cache"),
        )
    return (
        Workload(name="decode", dims=decode),
        Workload(
            name="prefill",
            dims={tokens: SEQUENCE, past: 1},
            note="a past of one token, since the model does not say that it takes an empty one",
        ),
    )


def named_by(
    preset: Workload | None, feed: tuple[InputSpec, ...] | Failure
) -> tuple[InputSpec, ...] | Failure:
    """Return inputs whose sizes by a preset say so, since nobody typed them."""
    if preset is None or isinstance(feed, Failure):
        return feed
    return tuple(
        replace(
            spec,
            resolved=tuple(
                replace(known, how=f"workload {preset.name}")
                if known.symbol in preset.dims and known.origin == "dims"
                else known
                for known in spec.resolved
            ),
        )
        for spec in feed
    )


def resolve_inputs(
    model: Model, *, batch: int | None, dims: Mapping[str, int], inputs_path: Path | None = None
) -> tuple[InputSpec, ...]:
    """Give every input of a model its sizes; for a model that is asked once.

    Arguments, results and errors are those of :func:`inputs_at`.
    """
    return inputs_at(ModelAxes(model), batch=batch, dims=dims, inputs_path=inputs_path)


def inputs_at(
    axes: ModelAxes, *, batch: int | None, dims: Mapping[str, int], inputs_path: Path | None = None
) -> tuple[InputSpec, ...]:
    """Give every input of a model its sizes and a complete value hint.

    Args:
        axes: The axes of the model.
        batch: Size of the batch axis; ``None``: nobody asked for one, so that whatever the model
            fixes is right.
        dims: Sizes that the user set, by symbol.
        inputs_path: Real inputs, see :func:`~pytest_ortbench.planning.real_inputs.stored_inputs`.

    Returns:
        One entry an input, in the model's order.

    Raises:
        UsageError: for a name in ``dims`` that the model does not have, and for real inputs that
            don't fit it.
        RefusedCombination: for sizes that this model can't have: another batch than the one it
            fixes, a tensor of size zero, an input that would not fit into memory.
    """
    model = axes.model
    _check_names(axes, dims)
    stored = {} if inputs_path is None else stored_inputs(model, inputs_path)
    sizes = find_sizes(axes, axes.batch_of(batch, dims), dims, stored)
    if batch is not None and not axes.batch_axis.symbols:
        _check_fixed_batch(axes, batch, stored)
    specs = tuple(
        _spec(
            info,
            shape,
            sizes,
            stored.get(info.name),
            dims=dims,
            may_be_empty=is_cache_of(model, info.name),
        )
        for info, shape in zip(model.inputs, axes.shapes, strict=True)
    )
    check_work(model, specs)
    return specs


def stored_batch(axes: ModelAxes, dims: Mapping[str, int], path: Path) -> int | None:
    """Return the batch that a file of real inputs holds, for a model whose batch axis is open.

    Args:
        axes: The axes of the model.
        dims: Sizes that the user set, by symbol.
        path: The real inputs.

    Returns:
        ``None`` where the model has no open batch, the user set its size, or the inputs in the
        file do not have one size there.

    Raises:
        UsageError: for real inputs that don't fit the model.
    """
    symbols = axes.batch_axis.symbols
    if not symbols or any(name in dims for name in symbols):
        return None
    stored = stored_inputs(axes.model, path)
    held = {
        size
        for info, shape in zip(axes.model.inputs, axes.shapes, strict=True)
        if shape is not None and info.name in stored
        for symbol, size in zip(shape, stored[info.name].shape or (), strict=False)
        if symbol in symbols
    }
    return (held.pop() or None) if len(held) == 1 else None


def _check_names(axes: ModelAxes, dims: Mapping[str, int]) -> None:
    known = axes.symbols
    for name in dims:
        if name not in known:
            raise UsageError(
                f"model {axes.model.name!r} has no dimension {name!r}",
                place="--ort-dims",
                hint=did_you_mean(name, known)
                if known
                else "All sizes are fixed in the file. Leave --ort-dims out",
            )


def _check_fixed_batch(axes: ModelAxes, batch: int, stored: Container[str]) -> None:
    axis = axes.batch_axis
    if axis.unranked:
        if batch != 1:
            raise refusal(
                f"batch size {batch} was requested, but the model does not state how many axes "
                f"input {axis.unranked!r} has, so no batch axis is known",
                hint="Leave --ort-batch-sizes out"
                if axis.unranked in stored
                else "Leave --ort-batch-sizes out, and give the inputs as arrays: "
                f"--ort-inputs=FILE.npz, with an array {axis.unranked!r}",
            )
        return
    if axis.fixed is None or (axis.refused and not axis.certain):
        if batch != 1:
            told = "; ".join(
                f"the dimension {name!r} is not a batch axis ({why})" for name, why in axis.refused
            )
            name = axis.refused[0][0] if axis.refused else ""
            raise refusal(
                f"batch size {batch} was requested, but model {axes.model.name!r} has no "
                + (f"batch axis: {told}" if told else "dynamic batch axis"),
                hint=f"Use --ort-batch-sizes=1. If you meant the dimension {name!r}, write "
                f"--ort-dims={name}:{batch}"
                if name
                else "Use --ort-batch-sizes=1. To measure another batch size, export the model "
                "with a dynamic batch axis",
            )
        return
    if batch == axis.fixed:
        return
    # A first axis other than 1 is a batch for sure only where a consumer reads it as one, or where
    # images stand behind it.
    image = any(shape is not None and len(shape) in (4, 5) for shape in axes.shapes)
    if batch != 1 or axis.certain or image:
        raise refusal(
            f"batch size {batch} was requested, but {axis.where} is fixed to {axis.fixed} in the "
            "model",
            hint=f"Use --ort-batch-sizes={axis.fixed}. To measure another batch size, export the "
            "model with a dynamic batch axis",
        )


def _spec(
    info: TensorInfo,
    shape: tuple[int | str, ...] | None,
    sizes: Sizes,
    stored: StoredInput | None,
    *,
    dims: Container[str],
    may_be_empty: bool,
) -> InputSpec:
    hint = info.hint or ValueHint(kind="normal")
    if stored is not None:
        _check_derived(info, shape, stored, sizes)
        return InputSpec(
            name=info.name,
            type=info.type,
            shape=stored.shape or (),
            hint=hint,
            path=str(stored.path.absolute()),
            member=stored.member,
            resolved=_taken(shape, stored, sizes) or (_shape_of(stored),),
        )
    if shape is None:
        if "map(" in info.type:
            return InputSpec(name=info.name, type=info.type, shape=(), hint=hint)
        if "seq(" in info.type:
            # Its tensors may differ in shape, so most models declare none.
            how = f"default: one axis of {OTHER} for the tensors of a sequence"
            size = SymbolSize(symbol="", size=OTHER, origin="default", how=how)
            return InputSpec(
                name=info.name, type=info.type, shape=(OTHER,), hint=hint, resolved=(size,)
            )
        raise refusal(
            f"the model does not state how many axes input {info.name!r} has",
            hint=f"Give the inputs as arrays: --ort-inputs=FILE.npz, with an array {info.name!r}",
        )
    fed, resolved = _resolved_shape(info, shape, sizes)
    check_size(info, shape, fed, sizes, dims=dims, may_be_empty=may_be_empty)
    values = resolve_hint(info, hint, fed, sizes.values, shape)
    if isinstance(values, Failure):
        raise RefusedCombination(values)
    return InputSpec(name=info.name, type=info.type, shape=fed, hint=values, resolved=resolved)


def _resolved_shape(
    info: TensorInfo, shape: tuple[int | str, ...], sizes: Sizes
) -> tuple[tuple[int, ...], tuple[SymbolSize, ...]]:
    fed: list[int] = []
    resolved: dict[SymbolSize, None] = {}
    for size in shape:
        if isinstance(size, int):
            fed.append(size)
            continue
        try:
            value = evaluate(size, sizes.values)
        except (ArithmeticError, KeyError) as error:
            raise refusal(
                f"the size {size} of input {info.name!r} can't be fed"
                + (f" for {given}" if (given := told_with(size, sizes.values)) else "")
                + f": {error}",
                hint=set_size(size, sizes.values, "another"),
            ) from None
        fed.append(value)
        resolved[sizes.of(size, value)] = None
    return tuple(fed), tuple(resolved)


def _taken(
    shape: tuple[int | str, ...] | None, stored: StoredInput, sizes: Sizes
) -> tuple[SymbolSize, ...]:
    """Sizes of the symbols of an input that is fed what a file holds, and their origins."""
    fed = stored.shape or ()
    if shape is None or len(shape) != len(fed):
        return ()
    return tuple(
        sizes.of(symbol, size)
        for symbol, size in dict(zip(shape, fed, strict=True)).items()
        if isinstance(symbol, str)
    )


def _shape_of(stored: StoredInput) -> SymbolSize:
    return SymbolSize(symbol="", size=0, origin="shape", how=f"shape of {stored.path.name}")


def _check_derived(
    info: TensorInfo,
    shape: tuple[int | str, ...] | None,
    stored: StoredInput,
    sizes: Sizes,
) -> None:
    """Expressions must come out as the stored shape says."""
    fed = stored.shape or ()
    for axis, size in enumerate(shape or ()):
        if not isinstance(size, str) or derived(size, set(sizes.values)) is None:
            continue
        value = evaluate(size, sizes.values)
        if axis < len(fed) and fed[axis] != value:
            raise misfit(info, stored, f"{size} comes to {value}")


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z")


def resolve_hint(
    info: TensorInfo,
    hint: ValueHint,
    shape: tuple[int, ...],
    sizes: Mapping[str, int],
    named: tuple[int | str, ...] = (),
) -> ValueHint | Failure:
    """Replace every symbol in a hint by its size.

    Args:
        info: The input.
        hint: What it holds.
        shape: The sizes of its axes.
        sizes: Sizes by symbol.
        named: Its shape with a name for every open axis, for advice.

    Returns:
        A hint with concrete ``low``, ``high`` and ``choices``; or a failure, where the values that
        such an input must hold don't exist at this size (positions past the end of a table).
    """
    low = _size(hint.low_dim, sizes, hint.low)
    high = _size(hint.high_dim, sizes, hint.low if hint.high_dim else hint.high)
    if hint.kind in ("constant", "coordinates") and "string" not in info.type:
        choices = tuple(_text(choice, sizes) for choice in hint.choices)
        return replace(hint, choices=choices, low_dim="", high_dim="")
    plain = hint
    if (low, high, "", "") != (hint.low, hint.high, hint.low_dim, hint.high_dim):
        plain = replace(hint, low=low, high=high, low_dim="", high_dim="")
    if hint.kind in ("integers", "permutation"):
        return replace(plain, high=max(low, high))
    if hint.kind == "arange":
        return _positions(info, plain, shape, named, sizes)
    return plain


def _positions(
    info: TensorInfo,
    hint: ValueHint,
    shape: tuple[int, ...],
    named: tuple[int | str, ...],
    sizes: Mapping[str, int],
) -> ValueHint | Failure:
    count = shape[-1] if shape else 1
    last = int(hint.low) + count - 1
    if 0 <= hint.high < last:
        most = int(hint.high - hint.low) + 1
        return case_failure(
            f"input {info.name!r} would hold positions up to {last}, but the model knows "
            f"positions up to {int(hint.high)} only",
            lower_size(named[-1] if named else "", sizes, most)
            or f"Export the model with at most {most} on the last axis of {info.name!r}",
        )
    if hint.low == 0:
        return hint
    # Counting from elsewhere than 0: the same values in every row, written out.
    values = tuple(str(int(hint.low) + step) for step in range(count))
    return replace(hint, kind="constant", choices=values)


def _size(expression: str, sizes: Mapping[str, int], otherwise: float) -> float:
    if not expression:
        return otherwise
    try:
        return float(evaluate(expression, sizes))
    except (UnknownSymbolError, ArithmeticError):
        return otherwise  # a symbol of an intermediate value: only the smallest one is safe


def _text(choice: str, sizes: Mapping[str, int]) -> str:
    if _NUMBER.match(choice):
        return choice
    try:
        return str(evaluate(choice, sizes))
    except (UnknownSymbolError, ArithmeticError):
        return "1"


def check_dims(
    dims: Mapping[str, tuple[int, ...]], models: Sequence[Model], *, place: str = "--ort-dims"
) -> None:
    """Check the names of sizes that the user set, and that no batch is set to 0.

    Args:
        dims: Sizes by name.
        models: The models of the plan; one that has the name is enough.
        place: Where the sizes were written.

    Raises:
        UnknownSizeError: for a name that no model has.
        UsageError: for a batch of size 0.
    """
    all_axes = [ModelAxes(model) for model in models]
    known = {symbol for axes in all_axes for symbol in axes.symbols}
    unknown = [name for name in dims if name not in known]
    if unknown and models:
        raise UnknownSizeError(
            f"no model has a dimension named {unknown[0]!r}",
            name=unknown[0],
            place=place,
            hint=did_you_mean(unknown[0], known)
            if known
            else f"All sizes are fixed in the model files. Leave {place} out",
        )
    for axes in all_axes:
        for name in axes.batch_axis.symbols:
            if 0 in dims.get(name, ()):
                raise UsageError(
                    f"{name}:0 is too small. {name!r} is the batch axis of model "
                    f"{axes.model.name!r}, and the smallest batch is 1",
                    place=place,
                    hint=f"Write e.g. {name}:1",
                )
