"""What ended the launches of a gate: the budget of the run, or the time limit of the case."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.gate.measuring.gate import _Measuring
from pytest_ortbench.gate.measuring.pair import Pair
from pytest_ortbench.gate.measuring.until import Until
from tests.results_factory import make_case


@pytest.mark.parametrize(("budget_s", "cause"), [(97.0, "budget"), (500.0, "time"), (None, "time")])
def test_the_earlier_of_two_ends_is_the_cause(budget_s: float | None, cause: str) -> None:
    now = time.monotonic()
    until = None if budget_s is None else Until(at=now + budget_s, launch_s=16.0, budget="3 min")
    gate: Any = SimpleNamespace(scratch=Path("scratch"))
    profile: Any = None
    pair = Pair(baseline=make_case(), contender=make_case())
    measuring = _Measuring(gate=gate, pair=pair, profile=profile, until=until)
    measuring._deadline = now + 300.0
    hindrance = measuring._ended_by("the time limit was reached", 6, 8)
    assert hindrance.cause == cause
    assert ("--ort-budget" in hindrance.reason) is (cause == "budget")
    assert ("--ort-timeout" in hindrance.reason) is (cause == "time")


def test_a_budget_says_what_the_launches_would_have_taken() -> None:
    until = Until(at=0.0, launch_s=5.0, budget="1 min")
    assert until.hindrance(1, 8).reason.rpartition("about ")[2] == "40 s"
    assert until.hindrance(1, 8, longest_s=10.0).reason.rpartition("about ")[2] == "1 min 20 s"
