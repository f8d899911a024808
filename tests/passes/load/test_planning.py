"""Loads that no case of a run can have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.passes.load.planning.asked import refuse_unwritten_tokens
from tests.passes.test_generating_rows import generating

TOKENS = "server:2:ttft=2s:tpot=200ms"
REQUEST = generating()
BATCHED = replace(REQUEST, batch=8)
INFERENCE = replace(REQUEST, generation=None)


@dataclass
class Options:
    """Options of a run, as far as loads look at them."""

    load: tuple[str, ...]
    generate: str = "off"
    given: dict[str, str] = field(default_factory=lambda: {"generate": "off"})

    def place_of(self, field: str) -> str:
        return f"--ort-{field}"


@pytest.mark.parametrize(
    ("load", "cases"),
    [
        ((), (INFERENCE,)),
        (("server:2:2s",), (INFERENCE,)),
        ((TOKENS,), (REQUEST,)),
        # Beside requests, rows of single inferences go without.
        ((TOKENS, "offline"), (INFERENCE, BATCHED, REQUEST)),
        ((TOKENS,), ()),
    ],
)
def test_what_one_case_can_have_stays(load: tuple[str, ...], cases: Sequence[Case]) -> None:
    refuse_unwritten_tokens(Options(load), cases)


@pytest.mark.parametrize(
    ("cases", "way_out"),
    [
        ((INFERENCE,), "server:2:20ms. To test requests of a language model, leave out --ort-gen"),
        ((INFERENCE, BATCHED), "--ort-batch-sizes"),
    ],
)
def test_limits_of_tokens_that_no_case_has_are_refused_once(
    cases: Sequence[Case], way_out: str
) -> None:
    with pytest.raises(UsageError) as error:
        refuse_unwritten_tokens(Options(("offline", TOKENS)), cases)
    assert error.value.place == "--ort-load"
    assert way_out in error.value.hint


def test_only_options_that_were_given_are_to_be_left_out() -> None:
    for given in ({}, {"generate": "auto"}):
        with pytest.raises(UsageError) as error:
            refuse_unwritten_tokens(Options((TOKENS,), generate="auto", given=given), [INFERENCE])
        assert "--ort-" not in error.value.hint
