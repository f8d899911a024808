"""What the trials of a self-test come to."""

from __future__ import annotations

import math

import pytest

from pytest_ortbench.gate.numbers.looks import detectable_effect
from pytest_ortbench.gate.numbers.self_test import Trial, kinds_of, resolution, tally
from pytest_ortbench.gate.report.self_test import model_rows, self_test_sentences


def trial(verdict: str = "same", **facts) -> Trial:
    facts = {"kind": "equal", "slowdown": 0.0, "model": "m", **facts}
    return Trial(verdict=verdict, **facts)


def test_a_tally_has_exact_intervals():
    found = tally([trial()] * 99 + [trial("slower")] + [trial("slower", kind="+5 %")], "equal")
    assert (found.trials, found.slower) == (100, 1)
    # Clopper-Pearson of one in a hundred.
    assert found.slower_low == pytest.approx(0.000253, abs=1e-6)
    assert found.slower_high == pytest.approx(0.0545, abs=1e-4)
    with pytest.raises(ValueError, match="kind"):
        tally([trial()], "+3 %")


def test_kinds_go_by_slowdown():
    trials = [trial(kind="+10 %", slowdown=0.1), trial(), trial(kind="+5 %", slowdown=0.05)]
    assert kinds_of(trials) == ["equal", "+5 %", "+10 %"]


def test_models_have_rows_of_their_own_the_fastest_first():
    trials = [
        trial(model="slow", latency_s=0.03, wall_s=61.0),
        trial("inconclusive", model="slow", latency_s=0.03, wall_s=63.0),
        trial(model="fast", latency_s=0.0001, wall_s=21.0),
        trial("slower", model="fast", latency_s=0.0001, kind="+5 %", slowdown=0.05, wall_s=40.0),
    ]
    rows = model_rows(trials)
    assert [(row[0], row[2], row[3], row[4], row[-1]) for row in rows] == [
        ("fast", "equal", "1", "0", "21"),
        ("fast", "+5 %", "1", "1", "40"),
        ("slow", "equal", "2", "0", "62"),
    ]
    assert rows[0][1] == "100 µs"
    text = " ".join(self_test_sentences(trials))
    assert "33.3 % [0.8 %, 90.6 %]" in text


def test_seconds_a_gate_are_told_by_the_length_of_an_inference():
    took = [(0.1, 20.0), (5, 30.0), (10, 50.0), (17, 44.0), (60, 46.0), (61, 90.0)]
    trials = [trial(latency_s=ms / 1000, wall_s=wall_s) for ms, wall_s in took]
    assert self_test_sentences(trials)[-1] == (
        "seconds a gate of any kind, median: 30 with inferences up to 10 ms (3 gates), "
        "45 with inferences up to 60 ms (2 gates), 90 with inferences that take longer (1 gate)"
    )
    assert "seconds a gate" not in self_test_sentences([trial()])[-1]


def test_resolution_is_that_of_the_model_that_is_known_best():
    def seen(deviation: float, count: int) -> float:
        effect = detectable_effect([deviation / 1.4826 * sign for sign in (-1, 0, 1, 0)[:3]] * 7)
        assert effect is not None
        return math.expm1(math.log1p(effect) * math.sqrt(21 / count))

    noisy = [trial(model="noisy", detectable=seen(0.05, 20), launches=20)] * 5
    fine = [trial(model="fine", detectable=seen(0.01, 8), launches=8)] * 5
    few = [trial(model="few", detectable=seen(0.001, 8), launches=8)] * 4
    slower = [trial(model="few", kind="+5 %", detectable=seen(0.001, 8), launches=8)] * 9
    # Twice the standard error of 20 launches that scatter by 1 %.
    expected = math.expm1(2 * 0.01 / math.sqrt(20))
    assert resolution([*noisy, *fine, *few, *slower]) == pytest.approx(expected, rel=1e-6)
    assert resolution([*few, *slower]) is None
    assert resolution([]) is None
