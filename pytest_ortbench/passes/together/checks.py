"""What a case beside other models must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_ortbench.passes.together.facts import WAYS, Together, TogetherLaunch
from pytest_ortbench.schema.bound_kinds import Bound, Numbers, Words

#: What single values may be.
BOUNDS: dict[tuple[type, str], Bound] = {
    (Together, "way"): Words(tuple(WAYS)),
    (TogetherLaunch, "alone_ns"): Numbers(1, 2**53),
    (TogetherLaunch, "beside_ns"): Numbers(1, 2**53),
    # Beside nobody there is no block beside others.
    (TogetherLaunch, "neighbour_runs"): Numbers(1, 2**53),
}


def _launch(launch: TogetherLaunch) -> Iterator[tuple[str, str]]:
    for name in ("beside_ns", "neighbour_runs"):
        if len(getattr(launch, name)) != len(launch.alone_ns):
            yield name, "must have an entry for each of alone_ns"
    if not launch.alone_ns:
        yield "alone_ns", "must not be empty"


def _together(together: Together) -> Iterator[tuple[str, str]]:
    if not together.launches and not together.reason:
        yield "launches", "must not be empty where no reason says why"
    if together.launches and not together.neighbours:
        yield "neighbours", "must not be empty: something ran beside"


#: What must agree within each type: the field that does not, and the rule that it breaks.
RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {
    TogetherLaunch: _launch,
    Together: _together,
}
