"""Which sizes a case was really measured at, and where each came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.core.case import DEFAULT_ORIGINS, Case

#: The batch is said apart from all other sizes, and an expression is not a size of its own.
_NOT_OWN = ("batch", "computed", "shape")
#: Origins that are told shorter than where all of it is shown. Not a default: it is a guess, so its
#: reason stands beside it.
_SHORT = {
    "graph": "fixed by the graph",
    "builder": "default of the model",
}
#: Sizes of one axis that are spelt out; more are given as their range.
_SPELT_OUT = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSize:
    """Size of one symbolic dimension other than the batch.

    Attributes:
        size: The size.
        origin: ``default: image size``, ``catalogue``, ``--ort-dims``, ``in x.npz``, ….
    """

    size: int
    origin: str


def resolved_sizes(case: Case) -> dict[str, ResolvedSize]:
    """Return the sizes of all symbolic dimensions but the batch, those that the user set first.

    Of a case without inputs (it was refused) only what the user set is known.
    """
    sizes = {name: ResolvedSize(size=size, origin="--ort-dims") for name, size in case.dims.items()}
    for spec in case.inputs:
        for known in spec.resolved:
            if known.origin in _NOT_OWN:
                continue
            origin = _SHORT.get(known.origin, known.how)
            if known.origin == "dims" and known.symbol not in case.dims:
                # Nobody typed it: the preset of the workload that the case is named after.
                origin = "workload"
            sizes.setdefault(known.symbol, ResolvedSize(size=known.size, origin=origin))
    return sizes


def default_sizes(case: Case) -> dict[str, int]:
    """Return the sizes that nobody said, by symbol: those that a user may have to set."""
    return {
        known.symbol: known.size
        for spec in case.inputs
        for known in spec.resolved
        if known.origin in DEFAULT_ORIGINS and known.symbol
    }


def fed_shapes(cases: Sequence[Case]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the shape of each input over all ``cases`` of a model, in the model's order.

    Returns:
        Name and shape as written, ``("x", ("[1|8, 3, 224, 224]",))``: sizes that differ between
        cases stand side by side in ascending order, many as ``1…300``, and shapes of different rank
        one after the other.
    """
    shapes: dict[str, dict[tuple[int, ...], None]] = {}
    for case in cases:
        for spec in case.inputs:
            shapes.setdefault(spec.name, {})[spec.shape] = None
    return [(name, tuple(_merged(list(variants)))) for name, variants in shapes.items()]


def _merged(shapes: Sequence[tuple[int, ...]]) -> list[str]:
    by_rank: dict[int, list[tuple[int, ...]]] = {}
    for shape in shapes:
        by_rank.setdefault(len(shape), []).append(shape)
    return [
        "[" + ", ".join(_axis(sizes) for sizes in zip(*same, strict=True)) + "]"
        for same in by_rank.values()
    ]


def _axis(sizes: Sequence[int]) -> str:
    distinct = sorted(set(sizes))
    if len(distinct) > _SPELT_OUT:
        return f"{distinct[0]}…{distinct[-1]}"
    return "|".join(map(str, distinct))


def fixed_words(case: Case) -> str:
    """Say which sizes the session of a case was told; empty for none.

    Args:
        case: Any case.
    """
    told = case.session.fixed_dims
    sizes = ", ".join(f"{name}={size}" for name, size in told.items())
    return f"the session is told {sizes} (--ort-fix-dims)" if told else ""
