"""Bisecting runtimes whose speed is known."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.run import Machine
from pytest_ortbench.gate.measuring.bisect import Bisected, bisect, bisect_runtimes, is_worse
from pytest_ortbench.gate.measuring.gate import Gate
from pytest_ortbench.gate.numbers.rules import rules_for
from tests.execution.fakes import FakeLauncher
from tests.results_factory import make_case


def said(verdict: str) -> GateResult:
    failures = ("slower",) if verdict == "slower" else ()
    return GateResult(case_id="c", runtime="r", baseline="b", verdict=verdict, failures=failures)


@given(st.integers(2, 60), st.data())
def test_the_change_is_found_in_logarithmically_many_comparisons(count: int, data):
    change = data.draw(st.integers(1, count))
    found = bisect(count, lambda index: said("slower" if index >= change else "same"))
    assert found.first_bad == (change if change < count else None)
    assert found.last_good == (change - 1 if change < count else 0)
    assert len(found.results) <= 2 + math.ceil(math.log2(count))


def test_an_undecided_runtime_is_passed_over():
    verdicts = ["same", "same", "same", "inconclusive", "slower", "slower", "slower"]
    found = bisect(7, lambda index: said(verdicts[index]))
    assert (found.last_good, found.first_bad, found.undecided) == (2, 4, (3,))


def test_answers_that_could_not_be_judged_are_passed_over_and_other_ones_are_worse():
    unjudged = GateResult(
        case_id="c", runtime="r", baseline="b", verdict="unjudged", latency="same", failures=("?",)
    )
    assert is_worse(unjudged) is None
    assert is_worse(dataclasses.replace(unjudged, latency="slower")) is True
    assert is_worse(dataclasses.replace(unjudged, verdict="less accurate")) is True


def test_a_runtime_that_does_not_run_it_is_worse():
    launcher = FakeLauncher(lambda *_: 80e6)
    crash = Failure(kind="crash", phase="session", message="it died")
    launcher.fails = {f"ort-1.{minor}": crash for minor in range(3, 8)}
    found = bisect_eight(launcher)
    assert (found.last_good, found.first_bad) == (2, 3)


def test_a_first_runtime_that_does_not_run_it_is_nothing_to_be_worse_than():
    launcher = FakeLauncher(lambda *_: 80e6)
    launcher.fails["ort-1.0"] = Failure(kind="error", phase="session", message="opset 25")
    with pytest.raises(WorkerError, match="error: opset 25"):
        bisect_eight(launcher)


def test_two_are_the_fewest():
    with pytest.raises(ValueError, match="two runtimes"):
        bisect(1, lambda _: said("same"))


def bisect_eight(launcher: FakeLauncher) -> Bisected:
    """``ort-1.0`` to ``ort-1.7``."""
    machine = Machine(host="h", stable={"virtualisation": "KVM"})
    return bisect_runtimes(
        make_case(),
        [Runtime(label=f"ort-1.{minor}") for minor in range(8)],
        lambda: Gate(launcher=launcher, machine=machine, cases=1, scratch=Path("unused"), seed=0),
        rules_for("x", ()),
    )


def test_runtimes_are_held_against_the_first():
    def time_of(case: Case, _: int) -> float:
        return 80e6 * (1.1 if int(case.runtime.label[-1]) >= 5 else 1.0)

    found = bisect_eight(FakeLauncher(time_of))
    assert (found.last_good, found.first_bad) == (4, 5)
    assert found.results[7].baseline == "runtime:ort-1.0"
