"""A result that no reader of the document could believe is a failure of its case alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pytest_ortbench.core.outcome import Accuracy, CaseResult, OutputAccuracy
from pytest_ortbench.execution.execution import sound
from pytest_ortbench.passes.profile.facts import OperatorProfile
from pytest_ortbench.passes.task.facts import TaskAccuracy
from pytest_ortbench.schema.meaning import faults_of
from tests.results_factory import make_placement, make_result


def test_a_sensible_result_stays_as_it_is() -> None:
    result = make_result()
    assert sound(result) is result


def test_one_impossible_number_makes_a_failure_that_names_it() -> None:
    result = make_result()
    first = result.measurements[0]
    samples = dataclasses.replace(first.samples, sum_ns=2**70)
    bad = dataclasses.replace(
        result,
        measurements=(dataclasses.replace(first, samples=samples), *result.measurements[1:]),
    )
    failed = sound(bad)
    assert (failed.case, failed.status, failed.measurements) == (result.case, "error", ())
    assert failed.failure is not None
    assert "$.measurements[0].samples.sum_ns is 1180591620717411303424" in failed.failure.message
    assert list(faults_of(failed)) == []


def spoilt(part: str) -> CaseResult:
    """A result with one fact of a later phase that can't be."""
    result = make_result()
    placement = dataclasses.replace(make_placement(), nodes_on_provider=9, nodes_total=3)
    output = OutputAccuracy(name="y", kind="float", finite=False, exact=True)
    facts: dict[str, Any] = {
        "placement": placement,
        "accuracy": Accuracy(samples=1, outputs=(output,)),
        "profile": OperatorProfile(run_ns=-1),
        "task": TaskAccuracy(dataset="d.npz", samples=-1),
    }
    return dataclasses.replace(result, **{part: facts[part]})


@pytest.mark.parametrize("part", ["placement", "accuracy", "profile", "task"])
def test_what_was_measured_stays_where_a_later_phase_makes_no_sense(part: str) -> None:
    bad = spoilt(part)
    assert list(faults_of(bad))
    kept = sound(bad)
    assert (kept.status, kept.measurements) == ("measured", bad.measurements)
    assert "contradict each other" in getattr(kept, part).reason
    assert list(faults_of(kept)) == []
    if part in ("placement", "accuracy"):
        assert "UNJUDGED" in [flag.name for flag in kept.flags]


def test_two_faults_are_dropped_one_after_the_other() -> None:
    bad = dataclasses.replace(spoilt("placement"), accuracy=spoilt("accuracy").accuracy)
    kept = sound(bad)
    assert (kept.status, kept.measurements) == ("measured", bad.measurements)
    assert list(faults_of(kept)) == []
