"""Other sizes for what a graph refused at its default sizes: the next ones that a user would try.

Only sizes that nobody named change. Each of the few tries changes one of them, or all that were
taken for the same thing, such as the height and the width of an image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pytest_ortbench.core.case import DEFAULT_ORIGINS, Case, InputSpec, SymbolSize
from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.model import AxisRole
from pytest_ortbench.planning import default_sizes
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.planning.fixed_sizes import with_fixed_sizes
from pytest_ortbench.planning.sizes import ModelAxes

#: Tries at most.
MOST_TRIES = 5

#: What comes next, by the default that was refused.
_NEXT: dict[int, tuple[int, ...]] = {
    default_sizes.IMAGE: (256, 640, 320, 512, 128),
    640: (320, 416, 512, 1_280, default_sizes.IMAGE),
    736: (640, 960, 512, 320, default_sizes.IMAGE),
    512: (256, 640, 320, 1_024, default_sizes.IMAGE),
    48: (32, 64, 96, default_sizes.IMAGE),
    default_sizes.SAMPLES: (32_000, 512, 160_000, 480_000, 1_536),
    default_sizes.FEATURES: (128, 80, 256, 512, 768),
    default_sizes.OTHER: (1, 128, 64, 256, 32),
    100: (128, 3_000, 96, 200, 64),
}
#: Of a length, whether tokens are counted or real numbers.
_NEXT_TOKENS = (64, 32, 256, 512, 16)
_NEXT_LENGTHS = (512, 64, 1_024, 16_000, 256)
#: Of rows that the graph mixes: a batch of one may be all that it takes.
_NEXT_ROWS = (1, 512, 64, 1_024, 16)


def default_symbols(case: Case) -> dict[str, SymbolSize]:
    """Return the sizes of a case that nobody named, without those of 1."""
    if any(spec.path for spec in case.inputs):
        return {}
    sizes = {size.symbol: size for spec in case.inputs for size in spec.resolved}
    return {
        name: size
        for name, size in sizes.items()
        if size.origin in DEFAULT_ORIGINS and size.size > 1
    }


def next_sizes(case: Case, *, smaller: bool = False) -> Iterator[dict[str, int]]:
    """Yield sizes to try, the most likely first; nothing where no size is a default.

    Args:
        case: What was refused.
        smaller: Whether it took too much memory.
    """
    groups: dict[tuple[int, str], list[str]] = {}
    for name, size in default_symbols(case).items():
        groups.setdefault((size.size, size.how), []).append(name)
    ladders = [
        (names, _filled(case, names[0], _ladder(case, names[0], size, smaller=smaller)))
        for (size, _), names in groups.items()
    ]
    for number in range(MOST_TRIES if ladders else 0):
        names, ladder = ladders[number % len(ladders)]
        place = number // len(ladders)
        if place < len(ladder):
            yield dict.fromkeys(names, ladder[place])


def _ladder(case: Case, symbol: str, size: int, *, smaller: bool) -> tuple[int, ...]:
    halves = tuple(size >> step for step in range(1, MOST_TRIES + 1) if size >> step)
    if smaller:
        return halves
    if size == default_sizes.SEQUENCE and _leads(case, symbol):
        return _NEXT_ROWS
    if size == default_sizes.SEQUENCE:
        return _NEXT_TOKENS if _counts_tokens(case, symbol) else _NEXT_LENGTHS
    return _NEXT.get(size, (2 * size, *halves[:1], 4 * size, *halves[1:2], 1))


def _filled(case: Case, symbol: str, ladder: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes, each so much larger that the windows of a sound are all full."""
    role = _role_of(case, symbol)
    if role is None or not role.samples or role.hop < 2:
        return ladder
    return tuple(size + (role.least - size) % role.hop for size in ladder)


def _role_of(case: Case, symbol: str) -> AxisRole | None:
    return next((role for name, role in ModelAxes(case.model).roles if name == symbol), None)


def _leads(case: Case, symbol: str) -> bool:
    """Whether it is the first of several axes."""
    shapes = [info.shape for info in case.model.inputs if info.shape and symbol in info.shape]
    return bool(shapes) and all(len(shape) > 1 and shape[0] == symbol for shape in shapes)


def _counts_tokens(case: Case, symbol: str) -> bool:
    return any(
        info.type in ("tensor(int64)", "tensor(int32)")
        for info, spec in zip(case.model.inputs, case.inputs, strict=True)
        if any(size.symbol == symbol for size in spec.resolved)
    )


def with_sizes(case: Case, sizes: Mapping[str, int]) -> Case | None:
    """Return the case at other default sizes; ``None`` if its inputs can't have them.

    It keeps its id, since the user named none of these sizes.
    """
    known = {size.symbol: size for spec in case.inputs for size in spec.resolved}
    dims = {
        name: size.size
        for name, size in known.items()
        if size.origin not in (*DEFAULT_ORIGINS, "sum", "computed", "shape")
    }
    try:
        specs = resolve_inputs(case.model, batch=None, dims={**dims, **sizes})
    except OrtbenchError:
        return None
    types = {spec.name: spec.type for spec in case.inputs}
    hops = {name: role.hop for name, role in ModelAxes(case.model).roles if role.hop > 1}
    told = tuple(_told(spec, known, sizes, hops).typed(types[spec.name]) for spec in specs)
    return None if told == case.inputs else with_fixed_sizes(replace(case, inputs=told))


def _told(
    spec: InputSpec,
    known: Mapping[str, SymbolSize],
    tried: Mapping[str, int],
    hops: Mapping[str, int],
) -> InputSpec:
    resolved = []
    for size in spec.resolved:
        before = known.get(size.symbol)
        if before is None or (before.size == size.size and size.symbol not in tried):
            resolved.append(size if before is None else before)
        elif size.symbol in tried:
            how = f"{before.how}, since {before.size} was refused"
            if size.symbol in hops:
                how += f"; windows {hops[size.symbol]} apart fill it"
            resolved.append(replace(size, origin="default", how=how))
        else:
            resolved.append(size)
    return replace(spec, resolved=tuple(resolved))
