"""At which sizes an export is held against its source."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ortbench.core.case import Case, InputSpec
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.passes.export_check.facts import FixedSize
from pytest_ortbench.planning.axes import parse_choices
from pytest_ortbench.planning.feeds import inputs_at
from pytest_ortbench.planning.sizes import ModelAxes, RefusedCombination

#: Sizes that every open dimension gets beside its usual one: batches that models are often exported
#: with, and so may be frozen at. The next size and the double tell of models that
#: can't take less than their usual size.
SMALL_SIZES = (1, 2, 3, 4, 8)
#: A size that is doubled only up to here.
_MOST_DOUBLED = 512
#: Choices of sizes at most.
_MOST_CHOICES = 40
#: Strides of networks on images multiply to this or less, so such a step keeps sizes that fit.
_STRIDE = 32
#: Tokens of a prompt.
_PROMPT = 16
_WAYS = ("auto", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedInputs:
    """Inputs of one choice of sizes.

    Attributes:
        sizes: Size of each open dimension.
        changed: Dimensions whose size is another one than in the first choice.
        inputs: The inputs.
    """

    sizes: dict[str, int]
    changed: tuple[str, ...]
    inputs: tuple[InputSpec, ...]


def has_source(case: Case) -> bool:
    """Whether a case runs an ONNX file that was exported in this run, and is to be checked."""
    return (
        case.model.exported_from is not None
        and case.provider.role != "framework"
        and case.sampling.export_check != "off"
    )


def sizes_to_check(case: Case) -> tuple[SizedInputs, ...]:
    """Return the choices of sizes at which an export is checked, the usual one first.

    Every open dimension gets other sizes alone, then all of them get another one at once. Sizes
    that the inputs can't have together are left out.

    Args:
        case: A case of the exported model.
    """
    axes = ModelAxes(case.model)
    if case.model.decoder is not None and any(axes.cache):
        return _sizes_of_prompts(axes)
    example = _example_sizes(case, axes)
    usual = _inputs(axes, {**example, **case.dims})
    if usual is None:
        usual = case.inputs
    if any(spec.path for spec in case.inputs):
        # Real inputs say more than drawn ones.
        usual = case.inputs
    known = _sizes_of(usual, axes)
    choices = [SizedInputs(sizes=known, changed=(), inputs=usual)]
    for sizes in _other_sizes(known):
        inputs = _inputs(axes, sizes)
        if inputs is None or len(choices) >= _MOST_CHOICES:
            continue
        seen = _sizes_of(inputs, axes)
        changed = tuple(name for name in known if seen.get(name) != known[name])
        if changed and all(choice.sizes != seen for choice in choices):
            choices.append(SizedInputs(sizes=seen, changed=changed, inputs=inputs))
    return tuple(choices)


def _sizes_of_prompts(axes: ModelAxes) -> tuple[SizedInputs, ...]:
    """Choices for a decoder: prompts of several lengths and batches, with an empty cache.

    Lengths of mask, past and tokens depend on each other, and drawn keys and values mean nothing.
    """
    past, tokens = axes.cache
    batches = axes.batch_axis.symbols
    choices: list[SizedInputs] = []
    sizes_of = [(1, _PROMPT), *((1, size) for size in SMALL_SIZES), (1, _PROMPT + 1)]
    sizes_of += [(batch, _PROMPT) for batch in SMALL_SIZES[1:] if batches]
    for batch, prompt in sizes_of:
        asked = {past: 0, tokens: prompt, **dict.fromkeys(batches, batch)}
        inputs = _inputs(axes, {name: size for name, size in asked.items() if name})
        if inputs is None:
            continue
        sizes = {name: size for name, size in asked.items() if name not in (past, "")}
        known = choices[0].sizes if choices else sizes
        changed = tuple(name for name, size in sizes.items() if size != known[name])
        choices.append(SizedInputs(sizes=sizes, changed=changed, inputs=inputs))
    return tuple(choices)


def _other_sizes(known: Mapping[str, int]) -> Iterator[dict[str, int]]:
    for name, size in known.items():
        others = [*SMALL_SIZES, size + 1]
        if SMALL_SIZES[-1] < size <= _MOST_DOUBLED:
            others.append(2 * size)
        for other in dict.fromkeys(others):
            if other != size:
                yield {**known, name: other}
    if len(known) > 1:
        yield {name: size + 1 for name, size in known.items()}


def _inputs(axes: ModelAxes, sizes: Mapping[str, int]) -> tuple[InputSpec, ...] | None:
    """Inputs of these sizes, ``None`` where they can't have them."""
    try:
        return inputs_at(axes, batch=None, dims=sizes)
    except (RefusedCombination, UsageError):
        return None


def _sizes_of(inputs: tuple[InputSpec, ...], axes: ModelAxes) -> dict[str, int]:
    """Size of each open dimension, by what the inputs have."""
    sizes: dict[str, int] = {}
    for spec, shape in zip(inputs, axes.shapes, strict=True):
        for symbol, size in zip(shape or (), spec.shape, strict=False):
            if isinstance(symbol, str) and symbol in axes.symbols:
                sizes.setdefault(symbol, size)
    return sizes


def _example_sizes(case: Case, axes: ModelAxes) -> dict[str, int]:
    """Sizes of the example inputs that the source was exported with."""
    source = case.model.exported_from
    if source is None or not source.example:
        return {}
    shapes = _stored_shapes(Path(source.example))
    sizes: dict[str, int] = {}
    for info, shape in zip(case.model.inputs, axes.shapes, strict=True):
        for symbol, size in zip(shape or (), shapes.get(info.name, ()), strict=False):
            if isinstance(symbol, str) and symbol in axes.symbols and size > 0:
                sizes.setdefault(symbol, size)
    return sizes


def _stored_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays in an ``.npz`` file by name; nothing where it can't be read."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name].shape for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile):
        return {}


def other_fixed_sizes(
    case: Case, inputs: tuple[InputSpec, ...]
) -> tuple[tuple[FixedSize, tuple[InputSpec, ...]], ...]:
    """Return sizes that the file fixes, each with inputs that have another one there.

    Inputs that have one size on one axis get the other size together, since a batch is a batch of
    all of them.

    Args:
        case: A case of the exported model.
        inputs: Inputs that the file takes.
    """
    if case.model.decoder is not None:
        return ()  # heads and their sizes are what the model is
    groups: dict[tuple[int, int], list[str]] = {}
    for info in case.model.inputs:
        for axis, size in enumerate(info.shape or ()):
            if isinstance(size, int) and size > 0:
                groups.setdefault((axis, size), []).append(info.name)
    trials = []
    for (axis, size), names in groups.items():
        tried = size + (_STRIDE if axis and not size % _STRIDE else 1)
        fixed = FixedSize(axis=axis, size=size, inputs=tuple(names), tried=tried, taken=False)
        trials.append((fixed, tuple(_resized(spec, fixed) for spec in inputs)))
    return tuple(trials)


def _resized(spec: InputSpec, fixed: FixedSize) -> InputSpec:
    if spec.name not in fixed.inputs:
        return spec
    shape = (*spec.shape[: fixed.axis], fixed.tried, *spec.shape[fixed.axis + 1 :])
    return replace(spec, shape=shape, path="", member="", stored_type="", sets=1)


def read_export_check(written: OptionText) -> str:
    """Read whether exports are checked.

    Raises:
        UsageError: for another word.
    """
    return parse_choices(written.last, _WAYS, place=written.place, several=False)[0]
