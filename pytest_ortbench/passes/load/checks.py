"""What single values of a load may be, and what its tests must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_ortbench.passes.load.facts import Load, LoadSpec, LoadTest
from pytest_ortbench.schema.bound_kinds import FROM_ONE, Bound, Numbers

BOUNDS: dict[tuple[type, str], Bound] = {
    (LoadSpec, "percent"): Numbers(0, 100),
    (LoadTest, "stride"): FROM_ONE,
}


def _load(load: Load) -> Iterator[tuple[str, str]]:
    if load.answer is not None and load.answer >= len(load.tests):
        yield "answer", f"must be the index of one of {len(load.tests)} tests"


def _load_test(test: LoadTest) -> Iterator[tuple[str, str]]:
    if test.min_ns is not None and test.max_ns is not None and test.min_ns > test.max_ns:
        yield "min_ns", "must not be above max_ns"
    for name in ("percentiles_ns", "first_token_percentiles_ns", "token_time_percentiles_ns"):
        for percent in getattr(test, name):
            if not _is_percent(percent):
                yield name, f"{percent[:40]!r} is no percentile"


def _is_percent(text: str) -> bool:
    try:
        return 0 <= float(text) <= 100
    except ValueError:
        return False


#: What must agree within each type: the field that does not, and the rule that it breaks.
RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {
    Load: _load,
    LoadTest: _load_test,
}
