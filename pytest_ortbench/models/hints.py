"""One value hint for every input, from the operators that read it and from its name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest_ortbench.models.arrangements
import pytest_ortbench.models.categories
import pytest_ortbench.models.image_inputs
import pytest_ortbench.models.numeric_ranges
import pytest_ortbench.models.shape_inputs  # noqa: F401  # all of them register their rules
from pytest_ortbench.core.element_types import element_of
from pytest_ortbench.core.model import AxisRole, TensorInfo, ValueHint
from pytest_ortbench.models.attention import cache_facts
from pytest_ortbench.models.categories import WORDS
from pytest_ortbench.models.consumers import finding_of
from pytest_ortbench.models.dataflow import Dataflow, Use
from pytest_ortbench.models.findings import ConsumerFinding, combine, unshift
from pytest_ortbench.models.implied import AxisFact, axis_facts
from pytest_ortbench.models.masks import mask_hint
from pytest_ortbench.models.signals import signal_hint
from pytest_ortbench.models.symbols import named_shapes, quote
from pytest_ortbench.models.well_known import Surroundings, by_name, is_past, past_symbol

_RANGES = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "uint4": (0, 15),
    "int4": (-8, 7),
    "uint2": (0, 3),
    "int2": (-2, 1),
}

#: Channels of pictures, those in colour first.
_OF_PICTURES = (3, 1)
#: Shapes of one number, and operators that multiply or divide by it.
_ONE_NUMBER: tuple[tuple[int, ...], ...] = ((), (1,))
_FACTORS = frozenset({"Mul", "Div", "Reciprocal"})

#: Kinds of hints that a mask may have by what its consumers accept.
_OF_MASKS = frozenset({"integers", "ones", "zeros"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HintedInputs:
    """Inputs with their hints.

    Attributes:
        inputs: The declared inputs, each with a hint and, where a consumer tells, its batch axis.
        implied_dims: Sizes that the graph fixes, by symbol or generated name.
    """

    inputs: tuple[TensorInfo, ...]
    implied_dims: dict[str, int]


def hint_inputs(
    inputs: Sequence[TensorInfo],
    flow: Dataflow,
    roles: Mapping[str, Sequence[AxisRole]] | None = None,
    pixels: Mapping[str, ValueHint | None] | None = None,
    pasts: Collection[str] = (),
) -> HintedInputs:
    """Find, for every input, values that the graph accepts and sizes that it fixes.

    Args:
        inputs: The declared inputs.
        flow: The graph.
        roles: What the graph says about their axes, by input.
        pixels: Values of pixels that a file beside the model or its weights tell, by input.
        pasts: Inputs that are a cache whatever they are called.
    """
    pixels = pixels or {}
    shapes = named_shapes(inputs)
    implied: dict[str, int] = {}
    found: list[tuple[TensorInfo, ValueHint | None, bool]] = []
    for info, shape in zip(inputs, shapes, strict=True):
        rank = None if shape is None else len(shape)
        uses = list(flow.uses(info.name, rank, element=element_of(info.type)))
        findings = _findings(uses, flow)
        facts = list(axis_facts(uses, flow))
        if is_past(info.name) or info.name in pasts:
            facts += cache_facts(uses, flow, shape)
        _imply(shape, findings, facts, implied)
        batch_axis = next((fact.axis for fact in facts if fact.is_batch), None)
        # The first that names values decides, see combine().
        is_guess = next((finding.is_guess for finding in findings if finding.values), False)
        length_axis = next((fact.axis for fact in facts if fact.is_length), None)
        told = replace(info, batch_axis=batch_axis, length_axis=length_axis)
        found.append((told, combine(findings), is_guess))
    infos = [info for info, *_ in found]
    surroundings = _surroundings(infos, shapes, implied)
    hinted = []
    for (info, hint, is_guess), shape in zip(found, shapes, strict=True):
        named = by_name(info, hint, surroundings, is_guess=is_guess)
        if named is None or named is hint:
            named = _lone_factor(info, hint, infos, flow) or named
        sized = _sized(info, shape, implied)
        known_roles = (roles or {}).get(info.name, ())
        chosen = (
            _mask_hint(info, hint, flow)
            or named
            or signal_hint(sized, known_roles, flow, pixels.get(info.name))
            or default_hint(info.type)
        )
        hinted.append(replace(info, hint=chosen))
    return HintedInputs(inputs=tuple(hinted), implied_dims=implied)


def _sized(
    info: TensorInfo, shape: tuple[int | str, ...] | None, implied: Mapping[str, int]
) -> TensorInfo:
    """An input with the sizes that consumers fix for it."""
    if shape is None:
        return info
    return replace(info, shape=tuple(implied.get(str(size), size) for size in shape))


def _lone_factor(
    info: TensorInfo, found: ValueHint | None, inputs: Sequence[TensorInfo], flow: Dataflow
) -> ValueHint | None:
    """One number that multiplies or divides what other inputs hold: that which changes nothing."""
    if info.shape not in _ONE_NUMBER or "float" not in info.type:
        return None
    if all(other.shape in _ONE_NUMBER for other in inputs):
        return None
    if found is not None and not (found.kind == "uniform" and found.low <= 1 <= found.high):
        return None
    uses = list(flow.uses(info.name, len(info.shape or ())))
    if not uses or not all(use.op in _FACTORS for use in uses):
        return None
    by = f"{uses[0].op} {uses[0].node.output[0]!r}"
    return ValueHint(kind="constant", choices=("1",), why=f"one number that multiplies, by {by}")


def _mask_hint(info: TensorInfo, found: ValueHint | None, flow: Dataflow) -> ValueHint | None:
    """What an input that masks something holds, where its consumers accept 0 and 1 alone."""
    if not info.shape or (found is not None and (found.high > 1 or found.high_dim)):
        return None
    return mask_hint(info.name, flow) if found is None or found.kind in _OF_MASKS else None


def default_hint(type_name: str) -> ValueHint:
    """The hint of an input that nothing is known about, by its type."""
    element = element_of(type_name)
    if element == "bool":
        return ValueHint(kind="integers", low=0, high=1, why="any truth value")
    if element == "string":
        return ValueHint(kind="choice", choices=WORDS, why="no consumer names categories")
    if element in _RANGES:
        low, high = _RANGES[element]
        return ValueHint(kind="integers", low=low, high=high, why=f"the range of {element}")
    if "int" in element:
        return ValueHint(kind="integers", low=0, high=9, why="no consumer bounds it: small numbers")
    if element == "float8e8m0":
        return ValueHint(kind="uniform", low=0.5, high=2.0, why="a type of powers of two")
    return ValueHint(kind="normal", why="mean 0, deviation 1")


def _findings(uses: Sequence[Use], flow: Dataflow) -> list[ConsumerFinding]:
    findings: list[ConsumerFinding] = []
    for use in uses:
        finding = finding_of(use, flow)
        if finding is not None:
            shifted = unshift(finding, use.scale, use.offset)
            if shifted is not None:
                findings.append(shifted)
    return findings


def _imply(
    shape: tuple[int | str, ...] | None,
    findings: Sequence[ConsumerFinding],
    facts: Sequence[AxisFact],
    implied: dict[str, int],
) -> None:
    """Note sizes that consumers fix, for axes that the model leaves open; the first one wins."""
    if shape is None:
        return
    for fact in facts:
        symbol = shape[fact.axis]
        if isinstance(symbol, str) and fact.size is not None:
            implied.setdefault(symbol, fact.size)
    for finding in findings:
        if finding.length is not None and len(shape) == 1 and isinstance(shape[0], str):
            implied.setdefault(shape[0], finding.length)


def _surroundings(
    inputs: Sequence[TensorInfo],
    shapes: Sequence[tuple[int | str, ...] | None],
    implied: Mapping[str, int],
) -> Surroundings:
    batch = _likely_batch(shapes, [info.batch_axis for info in inputs])
    lengths: dict[str, str] = {}
    for info in inputs:
        counted = _counted(info.name, inputs, shapes, batch)
        if counted:
            lengths[info.name] = counted
    sized = [_sized(info, shape, implied).shape for info, shape in zip(inputs, shapes, strict=True)]
    return Surroundings(
        batch=batch,
        past=past_symbol(inputs, shapes, batch),
        lengths=lengths,
        sides=_sides(inputs, sized),
        patches=_patches(shapes),
    )


def _sides(
    inputs: Sequence[TensorInfo], shapes: Sequence[tuple[int | str | None, ...] | None]
) -> tuple[str, ...]:
    """Height and width of the picture among inputs, of one in colour before others."""
    for channels in _OF_PICTURES:
        for info, shape in zip(inputs, shapes, strict=True):
            if shape is None or len(shape) != 4 or "mask" in info.name.lower():
                continue
            for place, sides in ((1, shape[2:]), (3, shape[1:3])):
                if shape[place] == channels:
                    return tuple(quote(size or 1) for size in sides)
    return ()


def _patches(shapes: Sequence[tuple[int | str, ...] | None]) -> str:
    """Symbol of the rows that hold a patch each, empty if there are none."""
    leading = (shape[0] for shape in shapes if shape is not None and len(shape) == 2)
    return next((str(size) for size in leading if "patch" in str(size).lower()), "")


def _counted(
    name: str,
    inputs: Sequence[TensorInfo],
    shapes: Sequence[tuple[int | str, ...] | None],
    batch: str,
) -> str:
    """The size that a length counts: of the input that it is named after before others."""
    others = [
        (other.name, shape)
        for other, shape in zip(inputs, shapes, strict=True)
        if other.name != name and shape is not None and len(shape) >= 2
        if not is_past(other.name)
    ]
    others.sort(key=lambda pair: not name.lower().startswith(pair[0].lower()))
    for _, shape in others:
        symbols = [size for size in shape[:0:-1] if isinstance(size, str) and size != batch]
        if symbols:
            return symbols[0]
    fixed = [size for _, shape in others[:1] for size in shape[1:] if isinstance(size, int)]
    return str(max(fixed)) if fixed else ""


def _likely_batch(
    shapes: Sequence[tuple[int | str, ...] | None], batch_axes: Sequence[int | None]
) -> str:
    """The symbol where a consumer reads the batch, else that of the first axis."""
    for shape, axis in zip(shapes, batch_axes, strict=True):
        if shape and axis is not None and isinstance(shape[axis], str):
            return str(shape[axis])
    for shape in shapes:
        if shape and isinstance(shape[0], str):
            return shape[0]
    return ""
