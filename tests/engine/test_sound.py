"""A result that no reader of the document could believe is a failure of its case alone."""

from __future__ import annotations

import dataclasses

from pytest_ortbench.engine.engine import sound
from pytest_ortbench.schema.meaning import faults_of
from tests.results_factory import make_result


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
