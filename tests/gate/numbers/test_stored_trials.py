"""Runs of one code, judged by each other: what is counted, and what is known of their spread."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_ortbench.analysis.relative_latency import RelativeLatency, relative_latency
from pytest_ortbench.core.outcome import Flag, YardstickTurns
from pytest_ortbench.gate.numbers.stored_relative import (
    SPREAD,
    STORED_MARGIN,
    RunSpread,
    relative_contrast,
)
from pytest_ortbench.gate.numbers.stored_trials import (
    StoredTally,
    StoredTrial,
    Way,
    run_spreads,
    spreads_of,
    tallies,
    trial_of,
    verdict_on,
)
from tests.results_factory import make_case, make_result, make_turns


def measured_ratio() -> RelativeLatency:
    estimate = relative_latency(make_result(workers=3, turns=[make_turns(spread=0.0)] * 3))
    assert isinstance(estimate, RelativeLatency)
    return estimate


RATIO = measured_ratio()


def trial(value: float | None, *, model: str = "net", estimator: str = "blocks") -> StoredTrial:
    if value is None:
        return StoredTrial(model=model, threads=1, cause="CPU-SHARE")
    ratio = dataclasses.replace(
        RATIO, value=value, low=value, high=value, ratios=(value,) * 3, estimator=estimator
    )
    return StoredTrial(model=model, threads=1, relative=ratio)


def wandering(count: int, deviation: float, *, seed: int = 0) -> list[StoredTrial]:
    draw = random.Random(seed)
    return [trial(6 * math.exp(deviation * draw.gauss(0, 1))) for _ in range(count)]


def tally_of(trials: Sequence[StoredTrial], way: Way, slowdown: float) -> StoredTally:
    (found,) = (
        tallied for tallied in tallies(trials) if (tallied.way, tallied.slowdown) == (way, slowdown)
    )
    return found


@pytest.mark.parametrize("way", [Way.NEAREST, Way.EARLIER])
def test_calm_runs_are_told_apart_from_slower_ones(way: Way) -> None:
    trials = wandering(60, 0.01)
    equal, slower = tally_of(trials, way, 0.0), tally_of(trials, way, 0.10)
    assert equal.verdicts.get("slower", 0) <= 1
    assert equal.verdicts["same"] >= 50
    assert slower.verdicts["slower"] >= 54
    assert slower.verdicts.get("same", 0) == 0
    assert slower.slower_low > 0.85
    # The first run has none before it.
    assert equal.verdicts.get("incomparable", 0) == (way is Way.EARLIER)
    assert equal.judged == 60 - (way is Way.EARLIER)


def test_runs_that_differ_much_are_called_neither_slower_nor_same() -> None:
    trials = wandering(60, 0.20)
    equal, slower = (tally_of(trials, Way.EARLIER, by) for by in (0.0, 0.20))
    assert equal.verdicts.get("slower", 0) <= 1
    assert slower.verdicts.get("same", 0) == 0
    assert slower.verdicts["inconclusive"] >= 50


def test_a_state_that_the_machine_was_seen_in_is_no_slowdown() -> None:
    """One run in ten of the same code takes half as long again."""
    states = [trial(9.0 if index % 10 == 5 else 6 + 0.001 * index) for index in range(60)]
    assert tally_of(states, Way.NEAREST, 0.0).verdicts.get("slower", 0) == 0
    assert run_spreads(states)["blocks"].largest == pytest.approx(math.log(9 / 6.03), abs=0.01)


@pytest.mark.parametrize("flag", ["DRIFT", "UNSTEADY"])
def test_runs_whose_flags_leave_no_verdict_get_none_and_serve_nobody(flag: str) -> None:
    flagged = dataclasses.replace(trial(60.0), flags=(flag,))
    trials = [*(trial(6.0 + 0.001 * index) for index in range(12)), flagged, trial(6.0)]
    assert verdict_on(12, trials, {}, slowdown=0.2, way=Way.EARLIER) == "flagged"
    assert run_spreads(trials)["blocks"].largest < 0.01
    assert (
        verdict_on(2, [trials[0], flagged, trials[1]], {}, slowdown=0.0, way=Way.EARLIER) == "same"
    )
    noted = [dataclasses.replace(run, flags=("FAR-CPUS",)) for run in trials[:2]]
    assert verdict_on(1, noted, {}, slowdown=0.0, way=Way.EARLIER) == "same"


def test_runs_without_a_ratio_are_incomparable_and_serve_nobody() -> None:
    trials = [trial(6.0), trial(None), trial(6.0)]
    assert tally_of(trials, Way.NEAREST, 0.0).verdicts["incomparable"] == 1
    assert verdict_on(1, trials, {}, slowdown=0.0, way=Way.NEAREST) == "incomparable"
    nobody = tallies([trial(None)])
    assert {tallied.judged for tallied in nobody} == {0}
    assert {(tallied.slower_low, tallied.slower_high) for tallied in nobody} == {(0.0, 1.0)}


def test_another_case_or_estimator_serves_nobody() -> None:
    other = [trial(6.0), trial(9.0, model="other"), trial(9.0, estimator="lows")]
    for index in range(3):
        verdict = verdict_on(index, other, {}, slowdown=0.0, way=Way.NEAREST)
        assert verdict == "incomparable"


def test_no_more_stored_runs_are_used_than_a_baseline_has() -> None:
    trials = [trial(9.0)] * 30 + [trial(6.0)] * 11
    spreads = {"blocks": RunSpread(deviation=0.01, degrees=20)}
    assert verdict_on(40, trials, spreads, slowdown=0.0, way=Way.EARLIER) == "same"


def test_the_spread_is_pooled_over_cases_and_needs_ten_degrees_of_freedom() -> None:
    few = [trial(6.0 * (1 + 0.02 * (index % 2))) for index in range(6)]
    other = [dataclasses.replace(trial(60.0), model="other") for _ in range(6)]
    assert run_spreads(few) == {}
    pooled = run_spreads([*few, *other])["blocks"]
    half = math.log(1.02) / 2
    assert pooled.degrees == 10
    assert pooled.deviation == pytest.approx(math.sqrt(6 * half**2 / 10))


@pytest.mark.parametrize(
    ("trials", "decides"),
    [
        (wandering(110, 0.01), True),
        (wandering(100, 0.01), False),
        (wandering(110, 0.06), False),
        # One false alarm of 110 is too many, since it is not above what was seen elsewhere.
        ([*wandering(109, 0.003), trial(6.9), trial(6.9)], False),
    ],
    ids=["calm", "too few", "nothing is found", "a false alarm"],
)
def test_verdicts_decide_where_they_were_right(trials: list[StoredTrial], decides: bool) -> None:
    assert spreads_of(trials)["blocks"].decides is decides


def test_a_machine_that_is_known_to_wander_resolves_less() -> None:
    slower = trial(6.6).relative
    before = trial(6.0).relative
    assert slower is not None
    assert before is not None

    def verdict(spread: RunSpread | None) -> tuple[str, float]:
        found = relative_contrast([before], slower, STORED_MARGIN, asked=False, spread=spread)
        return found.verdict, found.margin

    assert verdict(None)[0] == "slower"
    assert verdict(RunSpread(deviation=SPREAD["blocks"], degrees=10))[0] == "slower"
    assert verdict(RunSpread(deviation=0.03, degrees=20))[0] == "inconclusive"
    seen = RunSpread(deviation=0.001, degrees=40, largest=math.log(1.3))
    assert verdict(seen)[0] != "slower"


def test_a_trial_keeps_the_ratio_or_its_cause() -> None:
    turns = [make_turns(seed=seed) for seed in range(3)]
    kept = trial_of(make_result(turns=turns), load=0.5, at="2026-01-02T03:04:05+00:00", version="1")
    assert kept.relative is not None
    assert (kept.cause, kept.load, len(kept.relative.ratios)) == ("", 0.5, 3)
    causes = {
        "CPU-SHARE": make_result(turns=turns, flags=[Flag(name="CPU-SHARE")]),
        "absence": make_result(turns=[YardstickTurns(absence="short")] * 3),
        "crash": make_result(case=make_case(), status="crash"),
    }
    for cause, result in causes.items():
        left = trial_of(result, load=0.0, at="", version="")
        assert (left.relative, left.cause) == (None, cause)


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": 0.0},
        {"low": -1.0},
        {"high": math.inf},
        {"ratios": ()},
        {"ratios": (1.0, 0.0)},
        {"estimator": "guess"},
    ],
)
def test_a_ratio_that_can_not_be_one_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"ratio|none of"):
        StoredTrial(model="net", threads=1, relative=dataclasses.replace(RATIO, **wrong))
