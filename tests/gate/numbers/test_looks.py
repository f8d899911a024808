"""The sequential rule: verdicts, looks, error rates and power by seeded simulation."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from pytest_ortbench.gate.numbers.looks import (
    DEDICATED,
    GO_ON,
    INCONCLUSIVE,
    NOT_SLOWER,
    SHARED_FLOOR,
    SHARED_TYPICAL,
    SLOWER,
    LookPlan,
    detectable_effect,
    deviation_of,
    smallest_margin,
    take_looks,
)
from pytest_ortbench.gate.numbers.signed_rank import upper_bound


def launches(count: int, shift: float, deviation: float, seed: int = 0) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(shift, deviation) for _ in range(count)]


def test_plans_are_those_of_the_design():
    assert [(look.launches, look.alpha) for look in SHARED_FLOOR.looks] == [
        (8, 0.004),
        (12, 0.003),
        (20, 0.003),
    ]
    assert (SHARED_FLOOR.margin, SHARED_TYPICAL.margin, DEDICATED.margin) == (0.03, 0.05, 0.02)
    assert SHARED_FLOOR.alpha == pytest.approx(0.01)
    assert DEDICATED.looks == SHARED_TYPICAL.looks == SHARED_FLOOR.looks


def test_a_clear_slowdown_is_found_at_the_first_look():
    judgement = take_looks(launches(8, math.log(1.07), 0.01), SHARED_FLOOR)
    assert judgement.verdict == SLOWER
    assert judgement.launches == 8
    assert judgement.estimate == pytest.approx(0.07, abs=0.01)
    assert judgement.low is not None
    assert judgement.high is not None
    assert 0 < judgement.low < judgement.estimate < judgement.high
    assert judgement.p == 2**-8


def test_equal_sides_pass_with_a_bound_below_the_margin():
    judgement = take_looks(launches(8, 0.0, 0.005), SHARED_FLOOR)
    assert judgement.verdict == NOT_SLOWER
    assert judgement.high is not None
    assert judgement.high < 0.03
    assert not judgement.improved


def test_a_slowdown_below_the_margin_never_regresses():
    judgement = take_looks(launches(8, math.log(1.015), 0.002), SHARED_FLOOR)
    assert judgement.low is not None
    assert judgement.low > 0
    assert judgement.verdict == NOT_SLOWER


def test_a_speed_up_passes_and_is_told():
    judgement = take_looks(launches(8, math.log(0.9), 0.01), SHARED_FLOOR)
    assert judgement.verdict == NOT_SLOWER
    assert judgement.improved
    assert judgement.estimate == pytest.approx(-0.1, abs=0.01)


def test_a_disturbed_launch_does_not_hide_a_speed_up():
    disturbed = [*launches(11, math.log(0.9), 0.01), 0.3]
    assert upper_bound(disturbed, SHARED_FLOOR.looks[1].alpha) > 0
    judgement = take_looks(disturbed, SHARED_FLOOR, not_before=12)
    assert judgement.verdict == NOT_SLOWER
    assert judgement.high is not None
    assert judgement.high < 0
    assert judgement.improved


def test_an_interval_that_holds_no_change_is_no_speed_up():
    judgement = take_looks([*launches(5, math.log(0.95), 0.001), 0.01, 0.02, 0.02], SHARED_FLOOR)
    assert judgement.high is not None
    assert judgement.high > 0
    assert not judgement.improved


def test_noise_ends_inconclusive_with_the_effect_that_could_be_seen():
    judgement = take_looks(launches(20, 0.02, 0.2), SHARED_FLOOR)
    assert judgement.verdict == INCONCLUSIVE
    assert judgement.launches == 20
    assert judgement.next_look is None
    assert judgement.detectable is not None
    assert 0.1 < judgement.detectable < 0.4


def test_nothing_is_decided_between_looks():
    clear = launches(20, math.log(1.2), 0.001)
    for count in range(1, 8):
        judgement = take_looks(clear[:count], SHARED_FLOOR)
        assert (judgement.verdict, judgement.next_look) == (GO_ON, 8)
    assert take_looks(clear[:2], SHARED_FLOOR).low is None
    noisy = launches(20, 0.02, 0.2)
    for count in range(8, 12):
        judgement = take_looks(noisy[:count], SHARED_FLOOR)
        assert (judgement.verdict, judgement.launches, judgement.next_look) == (GO_ON, 8, 12)


def test_more_launches_never_change_what_an_earlier_look_decided():
    values = launches(8, math.log(1.07), 0.01) + launches(12, -0.5, 0.01)
    assert take_looks(values, SHARED_FLOOR) == take_looks(values[:8], SHARED_FLOOR)


def test_a_case_that_was_sent_on_is_judged_at_a_later_look():
    values = launches(12, math.log(1.07), 0.01)
    waiting = take_looks(values[:8], SHARED_FLOOR, not_before=12)
    assert (waiting.verdict, waiting.next_look) == (GO_ON, 12)
    judgement = take_looks(values, SHARED_FLOOR, not_before=12)
    assert (judgement.verdict, judgement.launches) == (SLOWER, 12)
    with pytest.raises(ValueError, match="look"):
        take_looks(values, SHARED_FLOOR, not_before=21)


def test_no_launch_is_refused():
    with pytest.raises(ValueError, match="no launch"):
        take_looks([], SHARED_FLOOR)


@pytest.mark.parametrize("tail", ["normal", "heavy", "two-sided lumps"])
def test_size_on_equal_sides_is_within_its_error(tail: str):
    draw = random.Random(11)
    noise = {
        "normal": lambda: draw.gauss(0, 1),
        "heavy": lambda: draw.gauss(0, 0.01) / max(1e-3, abs(draw.gauss(0, 1))),
        "two-sided lumps": lambda: draw.choice((-1, 1)) * (1 + draw.random() / 10),
    }[tail]
    # Without a margin every excursion of the bound counts: the worst case for the rule.
    plan = replace(SHARED_FLOOR, margin=0.0)
    trials = 1000
    alarms = sum(
        take_looks([noise() for _ in range(20)], plan).verdict == SLOWER for _ in range(trials)
    )
    # At most 1 % are expected, and nearly that many: four binomial deviations above ten are 22, and
    # a rule that spends its error has none in a thousand with a chance of 1e-4.
    assert 1 <= alarms <= 22


@pytest.mark.parametrize(("deviation", "at_most"), [(0.02, 0), (0.06, 60), (0.2, 110)])
def test_equal_sides_are_seldom_called_faster(deviation: float, at_most: int):
    """For information only, so its looks have 5 % each. Of 3,000: none, 3.5 % and 7.4 %; four
    binomial deviations above that are the limits."""
    draw = random.Random(17)
    called = sum(
        take_looks([draw.gauss(0, deviation) for _ in range(20)], SHARED_FLOOR).improved
        for _ in range(1000)
    )
    assert called <= at_most


def test_five_per_cent_is_found_where_launches_scatter_by_two():
    plan = SHARED_FLOOR
    found = sum(
        take_looks(launches(20, math.log(1.05), 0.01, seed), plan).verdict == SLOWER
        for seed in range(200)
    )
    assert found >= 198


def test_detectable_effect_of_known_scatter():
    values = [-0.02, -0.01, 0.0, 0.01, 0.02] * 4
    # 1.4826 · .01 over the root of 20, times 2.3263 + 1.2816, times 1.05.
    assert detectable_effect(values) == pytest.approx(math.expm1(0.012559), rel=1e-3)
    assert detectable_effect([0.0, 0.1]) is None


def test_a_detectable_effect_tells_the_scatter_again():
    values = [-0.02, -0.01, 0.0, 0.01, 0.02] * 4
    assert deviation_of(detectable_effect(values), 20) == pytest.approx(0.014826, rel=1e-3)


def test_smallest_margin_is_twice_the_standard_error():
    assert smallest_margin(0.05, 25) == pytest.approx(math.expm1(0.02))


def test_a_plan_of_one_look_ends_there():
    plan = LookPlan(margin=0.03, looks=DEDICATED.looks[:1])
    assert take_looks(launches(8, 0.02, 0.2), plan).verdict == INCONCLUSIVE
