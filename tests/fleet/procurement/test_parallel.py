"""What a machine serves at a time: measured, or bounded; worked out here by hand.

Every request takes the same time. One process of ``wide`` (4 CPUs, 1,000 EUR) takes 10 ms and makes
100 items/s; four at a time take 12.5 ms each and make 320 items/s. ``narrow`` (1 CPU, 600 EUR)
takes 5 ms and makes 200 items/s.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_ortbench.fleet.numbers.facts import CaseFacts, ParallelPoint, RunFacts, ServedRate
from pytest_ortbench.fleet.procurement.economics import Economics
from pytest_ortbench.fleet.procurement.figure import Figure
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms
from pytest_ortbench.fleet.procurement.parallel import counts_to_measure
from pytest_ortbench.fleet.procurement.queueing import capacity
from pytest_ortbench.fleet.procurement.ranking import Tender, tenders
from pytest_ortbench.fleet.procurement.sentences import (
    assumptions,
    cheapest_machines,
    count,
    money,
    span,
)
from tests.fleet.numbers.runs import Span, case, exact, run

WIDE = PricedMachine(name="wide", host="wide", price=1000)
NARROW = PricedMachine(name="narrow", host="narrow", price=600)
TERMS = Terms(currency="EUR", years=2, rate_per_s=400, limit_s=0.05, machines=(WIDE, NARROW))

#: What one process of the wide machine serves in 50 ms where it takes 10 ms, and 12.5 ms.
ALONE = capacity([0.01], 0.05)[0]
OF_FOUR = capacity([0.0125], 0.05)[0]


def served(seconds: float, *, cpus: int, callers: int = 1) -> CaseFacts:
    spans: dict[str, Span] = {
        "latency_p50": exact(seconds),
        "latency_mean": exact(seconds),
        "throughput": exact(callers / seconds),
    }
    knobs = {"concurrency": str(callers)} if callers > 1 else {}
    return case(spans, service_s=[seconds] * 50, cpus=cpus, callers=callers, knobs=knobs)


def point(processes: int, seconds: float, *, threads: int | None = None) -> ParallelPoint:
    return ParallelPoint(
        processes=processes,
        threads=processes if threads is None else threads,
        rate_per_s=processes / seconds,
        service_s=(seconds,) * 50,
        latency_s=seconds,
    )


def wide(*points: ParallelPoint, loads: tuple[ServedRate, ...] = ()) -> RunFacts:
    return run("wide", replace(served(0.01, cpus=4), parallel=points, served=loads))


NARROW_RUN = run("narrow", served(0.005, cpus=1))


def only(runs: list[RunFacts], terms: Terms = TERMS) -> Tender:
    (tender,) = tenders(runs, terms)
    return tender


def offer(tender: Tender, name: str) -> Economics:
    return next(one.economics for one in tender.offers if one.economics.machine.name == name)


def marks(tender: Tender) -> dict[str, str]:
    return {one.economics.machine.name: one.mark for one in tender.offers}


def test_processes_that_were_measured_decide_machines_needed_and_items_for_the_price() -> None:
    tender = only([wide(point(1, 0.01), point(4, 0.0125)), NARROW_RUN])
    one = offer(tender, "wide")
    assert 50 < ALONE < 60
    assert 35 < OF_FOUR < 40
    assert one.capacity is not None
    assert one.capacity.value == pytest.approx(4 * OF_FOUR)
    # 400 of some 148 a second each: three machines, where one queue alone would be eight.
    assert one.units == Figure(value=3, low=3, high=3)
    assert one.rate.value == pytest.approx(320)
    assert one.per_price is not None
    assert one.per_price.value == pytest.approx(0.32)
    assert (one.case.processes, one.queues.is_open) == (4, False)
    assert sorted(variant.case.processes for variant in tender.variants) == [1, 1, 4]
    # narrow: 400 of some 155 a second are three machines, too, at 600 each.
    assert marks(tender) == {"narrow": "best", "wide": ""}
    assert cheapest_machines([tender], TERMS)[0].lead


def test_without_a_measurement_there_are_bounds_and_no_recommendation() -> None:
    tender = only([wide(), NARROW_RUN])
    one = offer(tender, "wide")
    assert (one.queues.measured, one.queues.most) == (1, 4)
    most, least = math.ceil(400 / ALONE), math.ceil(400 / (4 * ALONE))
    assert (least, most) == (2, 8)
    assert one.units == Figure(value=8, low=2, high=8, is_open=True)
    assert one.cost == Figure(value=8000, low=2000, high=8000, is_open=True)
    assert (one.rate.low, one.rate.high) == pytest.approx((100, 400))
    # narrow costs 1,800, which is less than even the lower bound.
    assert marks(tender) == {"narrow": "best", "wide": ""}
    dearer = replace(TERMS, machines=(WIDE, replace(NARROW, price=1200)))
    tender = only([wide(), NARROW_RUN], dearer)
    assert marks(tender) == {"narrow": "open", "wide": "open"}
    said = cheapest_machines([tender], dearer)[0]
    assert not said.winner
    assert "wide 2 to 8 machines, 2000 to 8000 EUR" in said


def test_one_machine_alone_is_not_recommended_by_its_bounds() -> None:
    tender = only([wide()])
    assert marks(tender) == {"wide": "open"}
    assert not cheapest_machines([tender], TERMS)[0].winner


def test_the_bounds_are_about_throughput_too_where_nothing_is_to_be_served() -> None:
    terms = replace(TERMS, rate_per_s=None, limit_s=None)
    tender = only([wide(), NARROW_RUN], terms)
    # 1000 EUR over 17,532 h at 100 to 400 items/s, and 600 EUR at 200.
    wide_cost, narrow_cost = (
        offer(tender, "wide").cost_million,
        offer(tender, "narrow").cost_million,
    )
    assert wide_cost is not None
    assert narrow_cost is not None
    assert (wide_cost.low, wide_cost.high) == pytest.approx(
        (1e6 / 400 / 3600 * 1000 / 17532, 1e6 / 100 / 3600 * 1000 / 17532)
    )
    assert wide_cost.low < narrow_cost.value < wide_cost.high
    assert marks(tender) == {"narrow": "open", "wide": "open"}


def test_another_variant_of_the_machine_that_may_be_better_keeps_it_open() -> None:
    measured = replace(served(0.01, cpus=4), parallel=(point(4, 0.0125),))
    other = replace(served(0.008, cpus=4), precision="int8", case_id="net/int8/cpu/b1")
    terms = replace(TERMS, machines=(WIDE, replace(NARROW, price=900)))
    # narrow: 2,700. wide as measured: 3,000; its int8, at four at a time, might do with two.
    tender = only([run("wide", measured, other), NARROW_RUN], terms)
    assert offer(tender, "wide").cost == Figure(value=3000, low=3000, high=3000)
    assert marks(tender) == {"narrow": "open", "wide": "open"}


@pytest.mark.parametrize(
    ("points", "most"),
    [
        # Two processes of one thread leave two of the four CPUs idle, and bring twice as much.
        ((point(2, 0.01),), 4),
        # They have a thread for every CPU.
        ((point(2, 0.01, threads=4),), 2),
        # They bring but a twentieth more than one: something else is full.
        ((point(2, 0.019),), 2),
        # One process is no measurement of several.
        ((point(1, 0.01, threads=4),), 4),
    ],
)
def test_what_several_at_a_time_settle(points: tuple[ParallelPoint, ...], most: int) -> None:
    (tender,) = tenders([wide(*points)], TERMS)
    assert max(variant.queues.most or 0 for variant in tender.variants) == most


def test_a_search_for_the_peak_settles_it_where_every_cpu_has_a_thread() -> None:
    peak = ServedRate(rate_per_s=140, beyond_per_s=150, percent=99, latency_s=0.05, searched=True)
    one = replace(served(0.01, cpus=4), served=(peak,), threads=4)
    found = offer(only([run("wide", one)]), "wide")
    assert found.capacity == Figure(value=140, low=140, high=150)
    found = offer(only([run("wide", replace(one, threads=1))]), "wide")
    assert found.capacity == Figure(value=140, low=140, high=600, is_open=True)


def test_more_callers_settle_what_fewer_left_open() -> None:
    cases = [served(0.01, cpus=4), served(0.0125, cpus=4, callers=4)]
    tender = only([run("wide", *cases)])
    found = offer(tender, "wide")
    assert found.case.callers == 4
    assert found.units == Figure(value=3, low=3, high=3)
    assert not any(variant.queues.is_open for variant in tender.variants)


def test_a_machine_of_unknown_size_has_no_upper_bound() -> None:
    found = offer(only([run("wide", served(0.01, cpus=0))]), "wide")
    assert found.queues.most is None
    assert found.units == Figure(value=8, low=1, high=8, is_open=True)
    assert found.rate.high == math.inf


def test_power_of_several_processes_grows_with_their_throughput() -> None:
    paid = replace(WIDE, idle_power_w=50, power_price=0.5)
    terms = replace(TERMS, machines=(paid,))
    one = replace(
        served(0.01, cpus=4),
        parallel=(point(4, 0.0125),),
        idle_w=20.0,
        power=served(0.01, cpus=4).quantities["throughput"],
    )
    # The device draws 100 W beside 20 W idle at 100 items/s; at 320 it rises by 3.2 times 80 W.
    found = offer(only([run("wide", one)], terms), "wide")
    assert found.power is not None
    assert found.power.load_w.value == pytest.approx(50 + 3.2 * 80)
    assert found.per_joule is not None
    assert found.per_joule.value == pytest.approx(320 / 306)
    # Without the measurement: as it is, and four times that.
    alone = replace(one, parallel=())
    found = offer(only([run("wide", alone)], terms), "wide")
    assert found.power is not None
    assert found.power.load_w.is_open
    assert found.power.load_w.high == pytest.approx(50 + 4 * (105 - 20))


def test_the_median_of_a_way_is_that_which_the_run_tells() -> None:
    several = replace(point(4, 0.0125), service_s=(0.01, 0.02, 0.03), latency_s=0.0125)
    tender = only([run("wide", replace(served(0.01, cpus=4), parallel=(several,)))])
    medians = {
        variant.case.processes: variant.case.quantities["latency_p50"].value
        for variant in tender.variants
    }
    assert medians == {1: pytest.approx(0.01), 4: pytest.approx(0.0125)}


def test_bounds_are_written_as_bounds() -> None:
    both = Figure(value=100, low=100, high=1600, is_open=True)
    assert (span(both), money(both), count(both)) == (
        "100 to 1600",
        "100 to 1600",
        "100 to 1600 machines",
    )
    said = " ".join(assumptions([only([wide(), NARROW_RUN])], TERMS))
    assert "Bounds" in said


def test_the_counts_to_measure_end_at_the_number_of_cpus() -> None:
    assert [counts_to_measure(cpus) for cpus in (0, 2, 6, 16)] == [
        "1,2",
        "1,2",
        "1,2,4,6",
        "1,2,4,8,16",
    ]
