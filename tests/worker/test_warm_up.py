"""When warm-up is over."""

from __future__ import annotations

import itertools
import random
import re
import statistics
from array import array
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.outcome import WarmUp
from pytest_ortbench.worker.timing import median
from pytest_ortbench.worker.warm_up import least_seconds, settled_by, trend_p, warm_up


@given(st.lists(st.integers(0, 30), min_size=3, max_size=40).filter(lambda v: len(set(v)) > 1))
def test_the_trend_test_is_spearmans(values: list[int]) -> None:
    expected = stats.spearmanr(range(len(values)), values).pvalue
    assert trend_p(values) == pytest.approx(expected, abs=1e-9)


def test_constant_durations_have_no_trend() -> None:
    assert trend_p([5] * 20) == 1.0


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30))
def test_the_median_is_the_middle(values: list[float]) -> None:
    assert median(values) == pytest.approx(statistics.median(values))


def noise(count: int, level: int, *, seed: int = 1, spread: float = 0.01) -> list[int]:
    draw = random.Random(seed)
    return [round(level * (1 + spread * draw.random())) for _ in range(count)]


def test_level_durations_are_steady() -> None:
    assert settled_by(noise(20, 1_000_000)) == (
        "no trend over 20, windows of 10 agree within 3 % or 3 MAD"
    )


def test_too_few_are_never_steady() -> None:
    assert not settled_by(noise(19, 1_000_000))


def test_a_falling_trend_is_not_steady() -> None:
    assert not settled_by([2_000_000 - 10_000 * step for step in range(20)])


def test_a_step_between_the_windows_is_not_steady() -> None:
    """The step must not widen its own tolerance."""
    assert not settled_by(noise(10, 1_300_000) + noise(10, 1_000_000))


def test_only_the_last_twenty_count() -> None:
    assert settled_by([9_000_000] * 30 + noise(20, 1_000_000))


LONG, VERY_LONG = 100_000_000, 1_000_000_000


def test_five_long_ones_that_agree_are_steady() -> None:
    assert settled_by(noise(5, LONG)) == (
        "no trend over 5 long runs, which agree within 3 % or 3 MAD"
    )
    assert not settled_by(noise(4, LONG))
    assert not settled_by(noise(5, LONG // 2))


@pytest.mark.parametrize(
    "last_five",
    [
        [1.30, 1.20, 1.12, 1.06, 1.00],  # falls
        [1.30, 1.12, 1.20, 1.06, 1.00],  # falls, two neighbours out of order
        [1.30, 1.30, 1.00, 1.01, 1.00],  # a step
        [1.00, 1.01, 1.00, 1.40, 1.01],  # one that took longer
    ],
)
def test_five_long_ones_with_a_trend_or_a_step_are_not(last_five: list[float]) -> None:
    assert not settled_by([round(LONG * value) for value in last_five])


def test_noise_widens_the_tolerance_of_five() -> None:
    assert settled_by([round(LONG * value) for value in (1.1, 1.0, 1.2, 1.05, 1.15)])


def test_three_of_a_second_each_are_steady_if_they_agree_within_three_per_cent() -> None:
    def seconds(*values: float) -> list[int]:
        return [round(VERY_LONG * value) for value in values]

    assert settled_by(seconds(1.02, 1.00, 1.01)) == "3 runs of a second or more agree within 3 %"
    assert not settled_by(seconds(1.06, 1.00, 1.02))
    assert not settled_by(seconds(1.02, 1.01, 1.00)), "it still falls"
    assert not settled_by(seconds(0.99, 0.98, 0.99)), "not long enough"


def test_noise_widens_the_tolerance() -> None:
    wide = noise(20, 1_000_000, spread=0.5, seed=3)
    assert abs(median(wide[10:]) / median(wide[:10]) - 1) > 0.03
    assert settled_by(wide)


class Recorded:
    """A clockless loop: durations that were recorded, and the time they would have taken."""

    def __init__(self, durations: Iterator[int], callers: int = 1) -> None:
        self._durations = durations
        self._callers = callers
        self.now_ns = 0

    def __call__(self, iterations: int) -> array[int]:
        taken = array("q", [next(self._durations) for _ in range(iterations)])
        self.now_ns += sum(taken) // self._callers
        return taken


def run(
    monkeypatch: pytest.MonkeyPatch,
    durations: Iterator[int],
    *,
    least_s: float,
    budget_s: float,
    callers: int = 1,
) -> WarmUp:
    recorded = Recorded(durations, callers)
    monkeypatch.setattr(
        "pytest_ortbench.worker.warm_up.time.perf_counter_ns", lambda: recorded.now_ns
    )
    return warm_up(recorded, least_s=least_s, budget_s=budget_s, callers=callers)


def settling(first: int, level: int) -> Iterator[int]:
    draw = random.Random(2)
    value = float(first)
    while True:
        value = level + (value - level) * 0.9
        yield round(value * (1 + 0.005 * draw.random()))


def falling(first: int) -> Iterator[int]:
    yield from (round(first * (1 - 0.03 * step)) for step in range(30))


def forever(level: int) -> Iterator[int]:
    yield from (value for seed in range(10**6) for value in noise(100, level, seed=seed))


def test_it_goes_on_until_the_trend_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, settling(50_000_000, 10_000_000), least_s=0.0, budget_s=60.0)
    assert found.steady
    assert found.durations_ns[-1] < 11_000_000
    assert found.count >= 30
    assert found.total_ns == sum(found.durations_ns)
    assert "20" in found.rule


def test_it_takes_its_least_time_even_if_nothing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, forever(1_000_000), least_s=0.25, budget_s=10.0)
    assert 250_000_000 <= found.total_ns < 300_000_000


def test_callers_that_run_side_by_side_take_no_longer_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    level = run(monkeypatch, itertools.repeat(8_000_000), least_s=0.5, budget_s=10.0, callers=8)
    assert level.total_ns == level.count * 1_000_000
    # It looks at the clock after ten rounds of 8 ms.
    assert 500_000_000 <= level.total_ns < 580_000_000
    rising = iter(range(8_000_000, 10**9, 20_000))
    cut = run(monkeypatch, rising, least_s=0.25, budget_s=1.0, callers=8)
    assert cut.rule.startswith("1.01 s ")


def test_long_runs_of_several_callers_come_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    class Noted(Recorded):
        def __call__(self, iterations: int) -> array[int]:
            counts.append(iterations)
            return super().__call__(iterations)

    monkeypatch.setitem(globals(), "Recorded", Noted)
    # Rounds of four that agree with each other, and get faster from round to round until the fifth.
    levels = (300, 280, 260, 240, 220, 200, 200, 200, 200, 200)
    rounds = (level * 1_000_000 for level in levels for _ in range(4))
    found = run(monkeypatch, rounds, least_s=0.25, budget_s=75.0, callers=4)
    assert counts == [4] * 10
    assert found.steady
    assert " 5 long " in found.rule
    assert found.total_ns == sum(level * 1_000_000 for level in levels)
    counts.clear()
    slow = itertools.repeat(2_000_000_000)
    cut = run(monkeypatch, slow, least_s=0.25, budget_s=3.0, callers=16)
    assert counts == [16, 16]
    assert re.findall(r"[\d.]+", cut.rule) == ["4", "2", "16"]


def test_many_short_ones_are_kept_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, forever(10_000), least_s=0.25, budget_s=10.0)
    assert found.count > 20_000
    assert 250 < len(found.durations_ns) <= 500


def test_a_slow_model_is_cut_off_by_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, falling(1_000_000_000), least_s=0.25, budget_s=3.5)
    assert not found.steady
    assert found.count == 4
    assert re.findall(r"[\d.]+", found.rule) == ["3.82", "4"]


def test_three_runs_happen_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, falling(1_000_000_000), least_s=0.25, budget_s=0.5)
    assert found.count == 3
    assert not found.steady
    assert re.findall(r"[\d.]+", found.rule) == ["2.91", "3"]


def test_a_slow_model_that_still_falls_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, falling(1_000_000_000), least_s=0.25, budget_s=7.0)
    assert not found.steady
    assert " s used while " in found.rule


@pytest.mark.parametrize(
    ("level", "runs", "rule"),
    [
        (150_000_000, 5, "no trend over 5 long runs, which agree within 3 % or 3 MAD"),
        (4_000_000_000, 3, "3 runs of a second or more agree within 3 %"),
    ],
)
def test_a_slow_and_steady_model_needs_few_runs(
    monkeypatch: pytest.MonkeyPatch, level: int, runs: int, rule: str
) -> None:
    level_runs = iter([round(level * factor) for factor in (1.01, 1.0, 1.012, 1.004, 1.008, 1.0)])
    found = run(monkeypatch, level_runs, least_s=0.25, budget_s=75.0)
    assert (found.steady, found.count, found.rule) == (True, runs, rule)


def test_the_least_time_holds_for_long_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    level_runs = iter([round(2e8 * (1 + 0.01 * (index % 3))) for index in range(99)])
    found = run(monkeypatch, level_runs, least_s=2.0, budget_s=75.0)
    assert found.steady
    assert 2_000_000_000 <= found.total_ns < 2_800_000_000


def test_an_endless_trend_is_cut_off_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    rising = iter(range(1_000_000, 10**9, 20_000))
    found = run(monkeypatch, rising, least_s=0.25, budget_s=1.0)
    assert not found.steady
    assert found.rule.startswith("1 s used while ")


@pytest.mark.parametrize(
    ("name", "options", "seconds"),
    [
        ("CPUExecutionProvider", {}, 0.25),
        ("CUDAExecutionProvider", {}, 1.0),
        ("TensorrtExecutionProvider", {}, 2.0),
        ("OpenVINOExecutionProvider", {}, 0.25),
        ("OpenVINOExecutionProvider", {"device_type": "GPU"}, 1.0),
        ("SomethingNewExecutionProvider", {}, 1.0),
    ],
)
def test_least_seconds_by_provider(name: str, options: dict[str, str], seconds: float) -> None:
    assert least_seconds(Provider(alias="p", name=name, options=options)) == seconds
