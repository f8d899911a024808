"""What facts of generation must agree on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from pytest_ortbench.core.generation import Consistency
from pytest_ortbench.passes.generation.facts import (
    ContextGrowth,
    GenerationCheck,
    Likeness,
    TextScore,
)
from pytest_ortbench.schema.bound_kinds import FROM_ONE, Bound

BOUNDS: dict[tuple[type, str], Bound] = {
    (Likeness, "sequences"): FROM_ONE,
    (Likeness, "tokens"): FROM_ONE,
}


def _check(check: GenerationCheck) -> Iterator[tuple[str, str]]:
    if len(check.after) != len(check.consistent_db):
        yield "consistent_db", f"must be as many as the {len(check.after)} in after"


def _consistency(seen: Consistency) -> Iterator[tuple[str, str]]:
    if len(seen.after) != len(seen.sqnr_db):
        yield "sqnr_db", f"must be as many as the {len(seen.after)} in after"
    if seen.median_db is not None and not seen.after:
        yield "median_db", "must be of some token"


def _likeness(likeness: Likeness) -> Iterator[tuple[str, str]]:
    places = likeness.sequences * likeness.tokens
    for name in ("same_top", "same_greedy", "nonfinite"):
        if getattr(likeness, name) > places:
            yield name, f"must not be above {places}, the tokens of all sequences"
    if len(likeness.same_until) != likeness.sequences:
        yield "same_until", f"must be as many as the {likeness.sequences} sequences"
    elif max(likeness.same_until) > likeness.tokens:
        yield "same_until", f"must not be above {likeness.tokens}, the tokens of a sequence"
    for name in ("kl_nats", "kl_uniform_nats"):
        value = getattr(likeness, name)
        if value is not None and value < 0:
            yield name, "must not be below 0"


def _text(text: TextScore) -> Iterator[tuple[str, str]]:
    if len(text.nats) != len(text.tokens):
        yield "nats", f"must be as many as the {len(text.tokens)} windows"
    if text.reference_nats and len(text.reference_nats) != len(text.tokens):
        yield "reference_nats", f"must be as many as the {len(text.tokens)} windows"
    if any(count < 1 for count in text.tokens):
        yield "tokens", "must be above 0 in each window"
    if any(nats < 0 for nats in (*text.nats, *text.reference_nats)):
        yield "nats", "must not be below 0"
    if text.tokens and text.vocabulary < 1:
        yield "vocabulary", "must be above 0"


def _growth(growth: ContextGrowth) -> Iterator[tuple[str, str]]:
    readings = len(growth.tokens)
    if any(later <= earlier for earlier, later in itertools.pairwise(growth.tokens)):
        yield "tokens", "must rise"
    for name in ("resident_bytes", "cache_bytes"):
        if len(getattr(growth, name)) != readings:
            yield name, f"must be as many as the {readings} in tokens"
    if growth.peak_bytes and len(growth.peak_bytes) != readings:
        yield "peak_bytes", f"must be as many as the {readings} in tokens"


#: What must agree within each type: the field that does not, and the rule that it breaks.
RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {
    GenerationCheck: _check,
    Consistency: _consistency,
    Likeness: _likeness,
    TextScore: _text,
    ContextGrowth: _growth,
}
