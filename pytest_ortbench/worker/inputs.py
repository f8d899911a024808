"""Feeds: the values of every input, read from files or drawn from a seed."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.worker.draw import draw
from pytest_ortbench.worker.element_bits import represented
from pytest_ortbench.worker.element_types import (
    ValueType,
    numpy_name,
    parse_type,
)
from pytest_ortbench.worker.input_files import read_input

#: Elements of a drawn sequence; more than one, so that joining and splitting have work to do.
SEQUENCE_LENGTH = 2

_FLOATS = frozenset({"float", "double", "float16", "bfloat16"})


def make_feeds(
    specs: Sequence[InputSpec], *, seed: int, magnitude: float = 1.0, sample: int = 0
) -> dict[str, object]:
    """Make the value of every input.

    Args:
        specs: The inputs, every size resolved.
        seed: Seed of the drawn values; each input mixes in its name, so the order of the inputs and
            the presence of others don't matter.
        magnitude: Factor on drawn float inputs that nothing bounds (kind ``normal``).
        sample: Number of the input set; another one draws other values, and reads the next set of
            a file. Values from a file with one set and constant ones stay.

    Returns:
        By input name what ``InferenceSession.run`` takes: an array, a list of arrays for a
        sequence, a dict for a map, a list of dicts for a sequence of maps.

    Raises:
        WorkerError: ``unsupported`` if numpy has no such type, ``error`` if a file does not fit.
    """
    feeds: dict[str, object] = {}
    for spec in specs:
        if spec.path:
            feeds[spec.name] = read_input(spec.of_set(sample))
            continue
        kind = parse_type(spec.type, name=spec.name)
        feeds[spec.name] = _value(
            spec, kind, label=spec.name, seed=seed, magnitude=magnitude, sample=sample
        )
    return feeds


def varies(specs: Sequence[InputSpec]) -> bool:
    """Whether another sample number gives other values."""
    return any(spec.is_drawn or spec.sets > 1 for spec in specs)


def scales(specs: Sequence[InputSpec]) -> bool:
    """Whether another magnitude gives other values."""
    return any(
        not spec.path and spec.hint.kind == "normal" and _element(spec) in _FLOATS for spec in specs
    )


def _element(spec: InputSpec) -> str:
    kind: ValueType | None = parse_type(spec.type, name=spec.name)
    while kind is not None and kind.kind != "tensor":
        kind = kind.inner
    return kind.element if kind is not None else ""


def _value(
    spec: InputSpec, kind: ValueType, *, label: str, seed: int, magnitude: float, sample: int
) -> object:
    def inner(number: int) -> object:
        assert kind.inner is not None
        return _value(
            spec,
            kind.inner,
            label=f"{label}[{number}]",
            seed=seed,
            magnitude=magnitude,
            sample=sample,
        )

    if kind.kind == "tensor":
        dtype = numpy_name(kind.element, name=spec.name)
        values = draw(
            spec.shape,
            dtype,
            spec.hint,
            seed=seed,
            name=label,
            sample=sample,
            magnitude=magnitude,
        )
        return represented(values, kind.element)
    if kind.kind == "optional" and kind.inner is not None:
        # The value itself stands for an optional that is there.
        return _value(spec, kind.inner, label=label, seed=seed, magnitude=magnitude, sample=sample)
    if kind.kind == "seq":
        return [inner(number) for number in range(SEQUENCE_LENGTH)]
    if kind.kind == "map" and kind.inner is not None and kind.inner.kind == "tensor":
        return _map(spec, kind, label=label, seed=seed, magnitude=magnitude, sample=sample)
    raise case_error(
        f"input {spec.name!r} has the type {spec.type!r}, for which values can't be made",
        "Export the model with inputs that are tensors",
    )


def _map(
    spec: InputSpec, kind: ValueType, *, label: str, seed: int, magnitude: float, sample: int
) -> dict[object, object]:
    """One Python scalar for every key: the hint's choices, else as many as the last axis has."""
    assert kind.inner is not None
    choices = spec.hint.choices or tuple(str(n) for n in range(spec.shape[-1] if spec.shape else 3))
    keys: list[object] = (
        list(choices) if kind.element == "string" else [int(float(choice)) for choice in choices]
    )
    hint = spec.hint
    if hint.kind in ("choice", "constant"):
        # The choices are keys here, not values.
        hint = type(hint)(kind="normal", why=hint.why)
    dtype = numpy_name(kind.inner.element, name=spec.name)
    values = draw(
        (len(keys),), dtype, hint, seed=seed, name=label, sample=sample, magnitude=magnitude
    )
    return dict(zip(keys, values.tolist(), strict=True))
