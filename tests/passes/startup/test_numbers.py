"""Numbers of the start-up pass: conditions apart, and a reason for what can't be had."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.startup.declaration import PASS
from pytest_ortbench.passes.startup.facts import ShapeStart, StartTrial, StartUps
from pytest_ortbench.passes.startup.numbers import conditions, shape_times
from tests.results_factory import make_result

MS = 1_000_000
STAYED = "100 % of the model's pages stayed in memory"


def trial(page_cache: str, create_ms: int, engines: str = "none", **more: Any) -> StartTrial:
    made = StartTrial(
        page_cache=page_cache,
        engines=engines,
        import_ns=300 * MS,
        session_create_ns=create_ms * MS,
        first_inference_ns=5 * MS,
        again_ns=MS,
    )
    return replace(made, **more)


def result_of(*trials: StartTrial) -> CaseResult:
    return replace(make_result(), start_ups=StartUps(trials=trials))


def test_each_condition_has_its_median_and_interval_over_processes() -> None:
    cold = [trial("cold", ms) for ms in (50, 60, 55)]
    warm = [trial("warm", ms) for ms in (20, 20, 20)]
    found = summarise(result_of(*cold, *warm)).quantities
    disk, cached = found["session_create_disk"], found["session_create_cached"]
    # The logarithms' mean is that of 54.848 ms, their deviation 0.09119; t = 4.303, √3 processes.
    assert (disk.value, disk.low, disk.high) == pytest.approx((0.055, 0.04373, 0.06879), abs=5e-6)
    assert (cached.value, cached.low, cached.high) == pytest.approx((0.02, 0.02, 0.02))
    assert disk.samples == cached.samples == 3


def test_a_framework_reads_its_files_while_it_builds() -> None:
    trials = [trial(state, 10, build_ns=ms * MS) for state, ms in (("cold", 90), ("warm", 30))]
    found = summarise(result_of(*trials)).quantities
    assert found["session_create_disk"].value == 0.1
    assert found["session_create_cached"].value == 0.04


def test_a_start_with_cached_engines_is_none_without() -> None:
    trials = (trial("cold", 900, "cold"), trial("warm", 800, "cold"), trial("warm", 30, "warm"))
    result = result_of(*trials)
    found = summarise(result).quantities
    assert found["session_create_disk"].value == 0.9
    assert found["session_create_cached"].value == 0.8
    assert result.start_ups is not None
    states = [(each.page_cache, each.engines) for each in conditions(result.start_ups)]
    assert states == [("cold", "cold"), ("warm", "cold"), ("warm", "warm")]


def test_files_that_stayed_in_memory_give_no_cold_number() -> None:
    summary = summarise(result_of(trial("cold", 10, reason=STAYED), trial("warm", 10)))
    assert "session_create_disk" not in summary.quantities
    assert summary.missing["session_create_disk"] == STAYED
    assert summary.quantities["session_create_cached"].value == 0.01


def test_the_slowest_first_inference_of_a_further_shape() -> None:
    def shapes(first: int, second: int) -> tuple[ShapeStart, ...]:
        return (
            ShapeStart(label="b8", first_ns=first * MS, again_ns=2 * MS),
            ShapeStart(label="b64", first_ns=second * MS, again_ns=9 * MS),
            ShapeStart(label="b0", reason="refused"),
        )

    result = result_of(
        trial("cold", 10, shapes=shapes(7, 40)),
        trial("warm", 10, shapes=shapes(9, 60)),
        trial("warm", 10, shapes=shapes(8, 50)),
    )
    assert result.start_ups is not None
    assert shape_times(result.start_ups) == {
        "b8": pytest.approx((0.008, 0.002, 3)),
        "b64": pytest.approx((0.05, 0.009, 3)),
    }
    quantity = summarise(result).quantities["first_inference_shape"]
    assert (quantity.value, quantity.samples) == (pytest.approx(0.05), 3)


def test_what_was_not_asked_for_or_has_no_further_shape_says_so() -> None:
    summary = summarise(make_result())
    reasons = {summary.missing[name] for name in PASS.metric_names}
    assert reasons == {"no start-up pass was requested"}
    summary = summarise(result_of(trial("warm", 10)))
    assert "no further shape" in summary.missing["first_inference_shape"]
    assert summary.missing["session_create_disk"] == "no process was started in this way"
