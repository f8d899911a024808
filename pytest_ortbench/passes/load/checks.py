"""What single values of a load may be, and what its tests must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pytest_ortbench.core.endpoint_address import ENCODINGS, FORMS, OPENAI, OWN_ENCODING
from pytest_ortbench.core.exchange import COMPARED_WITH, DELAY_FROM, EXCHANGE_FAILURES, Exchanges
from pytest_ortbench.passes.load.facts import Load, LoadSpec, LoadTest
from pytest_ortbench.schema.bound_kinds import FROM_ONE, Bound, Numbers, Words

BOUNDS: dict[tuple[type, str], Bound] = {
    (Exchanges, "protocol"): Words(FORMS),
    (Exchanges, "compared_with"): Words(COMPARED_WITH),
    (Exchanges, "delay_from"): Words(DELAY_FROM),
    (Exchanges, "encoding"): Words((*ENCODINGS, OWN_ENCODING, OPENAI)),
    (LoadSpec, "percent"): Numbers(0, 100),
    (LoadTest, "stride"): FROM_ONE,
}


def _load(load: Load) -> Iterator[tuple[str, str]]:
    if load.answer is not None and load.answer >= len(load.tests):
        yield "answer", f"must be the index of one of {len(load.tests)} tests"


def _load_test(test: LoadTest) -> Iterator[tuple[str, str]]:
    if test.min_ns is not None and test.max_ns is not None and test.min_ns > test.max_ns:
        yield "min_ns", "must not be above max_ns"
    if (test.exchanges is None) != (test.client_kept_rate is None):
        yield "client_kept_rate", "must be null exactly where exchanges is"
    yield from _percentiles(
        test, ("percentiles_ns", "first_token_percentiles_ns", "token_time_percentiles_ns")
    )


def _exchanges(exchanges: Exchanges) -> Iterator[tuple[str, str]]:
    yield from _percentiles(exchanges, ("round_trip_ns", "send_delay_ns"))
    for kind in exchanges.failed:
        if kind not in EXCHANGE_FAILURES:
            yield "failed", f"{kind[:40]!r} is no kind of failure"
    if not exchanges.failures and (exchanges.away_s or not exchanges.came_back):
        yield "away_s", "must be 0, and came_back true: no request failed"
    if exchanges.compared > exchanges.sent:
        yield "compared", f"must be {exchanges.sent} at most, as many as were sent"
    if exchanges.failures > exchanges.sent:
        yield "failed", f"must be {exchanges.sent} together at most, as many as were sent"


def _percentiles(facts: object, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        for percent in getattr(facts, name):
            if not _is_percent(percent):
                yield name, f"{percent[:40]!r} is no percentile"


def _is_percent(text: str) -> bool:
    try:
        return 0 <= float(text) <= 100
    except ValueError:
        return False


#: What must agree within each type: the field that does not, and the rule that it breaks.
RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {
    Exchanges: _exchanges,
    Load: _load,
    LoadTest: _load_test,
}
