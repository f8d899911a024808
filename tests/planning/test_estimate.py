"""How long a case takes: from what it asks for, what starts take, and what was measured before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.generation import Generation
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.planning.estimate import Costs
from pytest_ortbench.yardstick.choice import SHARE, START_S
from tests.results_factory import make_case, make_failure, make_result


def _case(**sampling: Any) -> Case:
    return replace(make_case(), sampling=Sampling(**sampling))


def _small(**sampling: Any) -> Case:
    """A case whose inferences take next to no time."""
    return replace(_case(**sampling), model=replace(make_case().model, parameters=1000))


def _taking(case: Case, wall_s: float) -> CaseResult:
    return replace(make_result(case=case), wall_s=wall_s)


def test_a_case_takes_what_it_times_and_a_start_for_each_worker() -> None:
    costs = Costs(start_s={"current": 2.0})
    three, six = _case(workers=3), _case(workers=6)
    assert costs.expected(three).timed_s == 5.0
    more_s = costs.expected(six).total_s - costs.expected(three).total_s
    assert 3 * 2.0 < more_s < 3 * 4.0
    twice = _case(workers=3, time_s=10.0)
    # The turns of the yardstick are a share of what the model is timed for.
    assert costs.expected(twice).total_s - costs.expected(three).total_s == pytest.approx(
        5 * (1 + SHARE)
    )


def test_without_a_yardstick_a_case_takes_less() -> None:
    costs = Costs(start_s={"current": 2.0})
    three, twice = (_case(yardstick="off", time_s=time_s) for time_s in (5.0, 10.0))
    assert costs.expected(twice).total_s - costs.expected(three).total_s == pytest.approx(5.0)
    # One start, and the turns.
    assert costs.expected(_case()).total_s - costs.expected(three).total_s == pytest.approx(
        START_S + 5 * SHARE
    )


def test_workers_whose_median_is_known_end_early() -> None:
    # Two blocks of a quarter of a second each, by three workers.
    case = _small(yardstick="off")
    known, unknown, half = (Costs(unsettled_share=share).expected(case) for share in (0, 1, 0.5))
    assert known.timed_s == pytest.approx(1.5)
    assert unknown.timed_s == pytest.approx(5.0)
    assert half.timed_s == pytest.approx((1.5 + 5.0) / 2)


def test_one_thread_takes_twice_as_long_and_its_reference_does_not() -> None:
    both = _case(yardstick="off", time_s=0.1)
    one = replace(both, session=replace(both.session, intra_op_num_threads=1))
    many = replace(both, session=replace(both.session, intra_op_num_threads=16))
    on_both, on_one, on_many = (Costs().expected(case) for case in (both, one, many))
    assert on_one.timed_s == pytest.approx(2 * on_both.timed_s)
    assert on_one.reference_s == on_both.reference_s
    assert on_many == on_both


def test_no_worker_times_for_longer_than_was_asked_for() -> None:
    short = _small(time_s=0.9, yardstick="off")
    assert Costs(unsettled_share=0.0).expected(short).timed_s == pytest.approx(0.9)


def test_a_worker_of_a_slow_model_times_all_its_seconds() -> None:
    # A p99 takes 123 inferences of each worker, which are more than its seconds hold.
    slow = replace(_case(), model=replace(make_case().model, parameters=4 * 10**6))
    assert Costs(unsettled_share=0.0).expected(slow).timed_s == pytest.approx(5.0)


def test_turns_of_a_yardstick_that_do_not_come_take_no_time() -> None:
    case = _small()
    without = replace(case, sampling=replace(case.sampling, yardstick="off"))
    more_s = [
        costs.expected(case).total_s - costs.expected(without).total_s
        for costs in (Costs(unsettled_share=0.0), Costs())
    ]
    assert more_s == pytest.approx([START_S + 1.5 * SHARE, START_S + 5 * SHARE])


def test_slow_starts_make_a_case_longer() -> None:
    slow, quick = (Costs(start_s={"current": start_s}) for start_s in (3.0, 0.3))
    assert slow.expected(_case()).total_s > quick.expected(_case()).total_s + 3 * 2.5


def test_samples_that_a_limit_needs_take_longer_than_the_seconds_asked_for() -> None:
    costs = Costs()
    costs.learn(make_result(case=_case()))
    plain, limited = costs.expected(_case()), costs.expected(_case(min_samples=100_000))
    assert limited.timed_s > 10 * plain.timed_s


def test_a_case_that_was_measured_takes_what_it_took() -> None:
    costs = Costs()
    result = _taking(_case(), 30.0)
    costs.learn(result)
    assert costs.expected(result.case).total_s == pytest.approx(30.0, rel=0.2)


def test_another_case_of_the_model_takes_as_long_but_for_the_reference() -> None:
    costs = Costs()
    costs.learn(_taking(_case(), 30.0))
    other = replace(_case(), knobs={"threads": "1"})
    fresh = costs.expected(other)
    assert costs.expected(other, has_reference=True).total_s == pytest.approx(
        fresh.total_s - fresh.reference_s
    )
    assert fresh.reference_s > 5.0


def test_a_batch_of_four_takes_four_times_as_long_each() -> None:
    costs = Costs()
    small = _case(min_samples=10_000)
    costs.learn(make_result(case=small))
    first, *others = small.inputs[0].shape
    specs = (replace(small.inputs[0], shape=(4 * first, *others)),)
    large = replace(small, batch=4 * first, inputs=specs)
    ratio = costs.expected(large).timed_s / costs.expected(small).timed_s
    assert ratio == pytest.approx(4.0)


def test_what_failed_teaches_nothing() -> None:
    costs, case = Costs(), _case()
    before = costs.expected(case)
    costs.learn(make_result(case=case, status="crash", failure=make_failure()))
    assert costs.expected(case) == before


def test_no_case_takes_longer_than_its_timeout() -> None:
    case = replace(_case(timeout_s=20.0), model=replace(make_case().model, parameters=10**12))
    expected = Costs().expected(case)
    assert expected.total_s - expected.reference_s == pytest.approx(20.0)


def test_reference_outputs_are_made_once_for_cases_of_equal_sizes() -> None:
    costs = Costs()
    one = _case()
    two = replace(one, knobs={"threads": "1"})
    wide = replace(one, inputs=tuple(replace(spec, shape=(8, 3, 224, 224)) for spec in one.inputs))
    alone_s = costs.expected(one).total_s
    reference_s = costs.expected(one).reference_s
    assert costs.total_s([(one, ()), (two, ())]) == pytest.approx(2 * alone_s - reference_s)
    assert costs.total_s([(one, ()), (wide, ())]) > 2 * alone_s - reference_s


@pytest.mark.parametrize("entry", PASSES, ids=lambda entry: entry.name)
def test_every_pass_takes_time(entry: Any) -> None:
    case = _case(soak_s=60.0, processes=(1, 2), loads=("peak:p99:20ms",))
    asked = costs = Costs().expected(case, (entry.name,))
    assert asked.passes_s > 0
    assert costs.total_s == pytest.approx(Costs().expected(case).total_s + asked.passes_s)


def test_a_soak_and_the_search_for_a_peak_take_what_they_say() -> None:
    case = _case(soak_s=60.0, loads=("peak:p99:20ms",))
    assert Costs().expected(case, ("soak",)).passes_s == pytest.approx(60.0, abs=3.0)
    assert Costs().expected(case, ("load:peak:p99:20ms",)).passes_s >= 100.0


def test_a_request_takes_as_long_as_its_tokens() -> None:
    short = replace(
        _case(), generation=Generation(engine="session", prompt_tokens=16, new_tokens=16)
    )
    long = replace(
        _case(), generation=Generation(engine="session", prompt_tokens=512, new_tokens=256)
    )
    assert Costs().expected(long).total_s > Costs().expected(short).total_s + 3.0
