"""Three synthetic machines whose right answer is worked out here by hand.

Every request takes the same time, so that a machine alone is an M/D/1 queue, and every measured
number is exact unless a test widens it. Years of 8766 hours.

======== ========== ============ ========= ============= ================= =====
machine  latency    throughput   price     power price   power idle → load owned
======== ========== ============ ========= ============= ================= =====
desk     10 ms      100 items/s  1,000     0.50 a kWh    50 W → 150 W      1
rack     2 ms       500 items/s  8,000     0.50 a kWh    100 W → 400 W     0
cloud    5 ms       200 items/s  0.10 an h none          unknown           0
======== ========== ============ ========= ============= ================= =====
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_ortbench.analysis.proof import Proof
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.numbers.facts import RunFacts, ServedRate
from pytest_ortbench.fleet.procurement.award import Sureness, award_of
from pytest_ortbench.fleet.procurement.economics import Economics
from pytest_ortbench.fleet.procurement.entrants import Absence
from pytest_ortbench.fleet.procurement.figure import Figure
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms
from pytest_ortbench.fleet.procurement.queueing import capacity
from pytest_ortbench.fleet.procurement.ranking import Tender, tenders
from pytest_ortbench.fleet.procurement.sentences import assumptions, cheapest_machines, count, money
from tests.fleet.numbers.runs import Span, case, exact, run

HOURS = 2 * 8766

DESK = PricedMachine(
    name="desk", host="desk", price=1000, power_price=0.5, idle_power_w=50, units_owned=1
)
RACK = PricedMachine(name="rack", host="rack", price=8000, power_price=0.5, idle_power_w=100)
CLOUD = PricedMachine(name="cloud", host="cloud", price_per_hour=0.1)
TERMS = Terms(currency="EUR", years=2, machines=(DESK, RACK, CLOUD))
TARGET = replace(TERMS, rate_per_s=300, limit_s=0.05)


def measured(seconds: float, power_w: float | None = None, *, spread: float = 0.0) -> RunFacts:
    """One case of a constant service time; ``spread`` widens the intervals of its times."""
    host = {0.01: "desk", 0.002: "rack", 0.005: "cloud"}[seconds]
    wide = (seconds * (1 - spread), seconds, seconds * (1 + spread))
    spans: dict[str, Span] = {
        "latency_p50": wide,
        "latency_mean": wide,
        "throughput": (1 / wide[2], 1 / seconds, 1 / wide[0]),
    }
    if power_w is not None:
        spans["power"] = exact(power_w)
    return run(host, case(spans, service_s=[seconds] * 50, idle_w=20.0))


# The devices idle at 20 W, so the machines rise by 100 W and by 300 W over their idle power.
RUNS = [measured(0.01, 120), measured(0.002, 320), measured(0.005)]


def only(runs: list[RunFacts], terms: Terms) -> Tender:
    (tender,) = tenders(runs, terms)
    return tender


def offers(tender: Tender) -> dict[str, Economics]:
    return {offer.economics.machine.name: offer.economics for offer in tender.offers}


def test_energy_and_performance_per_watt() -> None:
    found = offers(only(RUNS, TERMS))
    desk, rack, cloud = found["desk"], found["rack"], found["cloud"]
    assert desk.power is not None
    assert rack.power is not None
    # The reading of the device carries 5 % either way, what stands on the wall does not.
    assert desk.power.load_w.value == 150
    assert (desk.power.load_w.low, desk.power.load_w.high) == pytest.approx((144, 156))
    assert rack.power.load_w.value == 400
    assert desk.per_joule is not None
    assert rack.per_joule is not None
    assert desk.per_joule.value == pytest.approx(100 / 150)
    assert rack.per_joule.value == pytest.approx(500 / 400)
    # A million items take 10,000 s of 150 W: 1.5 MJ, 0.4167 kWh.
    assert desk.kwh_per_million is not None
    assert desk.kwh_per_million.value == pytest.approx(1.5 / 3.6)
    assert cloud.power is None
    assert cloud.kwh_per_million is None
    assert "no energy measurement" in cloud.missing["power"]


def test_performance_per_unit_of_money() -> None:
    found = offers(only(RUNS, TERMS))
    assert found["desk"].per_price is not None
    assert found["desk"].per_price.value == pytest.approx(0.1)
    assert found["desk"].per_money_hour is None
    assert found["cloud"].per_price is None
    assert found["cloud"].per_money_hour is not None
    assert found["cloud"].per_money_hour.value == pytest.approx(200 * 3600 / 0.1)


def test_cost_of_a_million_items() -> None:
    tender = only(RUNS, TERMS)
    found = offers(tender)
    # desk: 2.7778 h at 1000/17532 of price and 0.075 of power an hour.
    desk = (1e6 / 100 / 3600) * (1000 / HOURS + 0.150 * 0.5)
    rack = (1e6 / 500 / 3600) * (8000 / HOURS + 0.400 * 0.5)
    cloud = (1e6 / 200 / 3600) * 0.1
    for name, expected in (("desk", desk), ("rack", rack), ("cloud", cloud)):
        figure = found[name].cost_million
        assert figure is not None
        assert figure.value == pytest.approx(expected)
    assert (round(desk, 4), round(rack, 4), round(cloud, 4)) == (0.3668, 0.3646, 0.1389)
    assert tender.deciding == "cost_million"
    # desk and rack are 0.6 % apart, which 5 % on the power reading covers: not told apart.
    assert [offer.economics.machine.name for offer in tender.offers] == ["cloud", "rack", "desk"]
    assert [offer.mark for offer in tender.offers] == ["best", "", ""]


def test_machines_and_money_for_a_target() -> None:
    tender = only(RUNS, TARGET)
    found = offers(tender)
    # What one machine can do is M/D/1; its own tests hold it to a simulation.
    able = {name: capacity([seconds], 0.05)[0] for name, seconds in SECONDS.items()}
    # 10 ms of service leave four services of waiting: a bit over half of the time busy. With 2 ms
    # the machine may be busy for more than nine tenths of the time.
    assert 50 < able["desk"] < 60
    assert 450 < able["rack"] < 495
    assert 140 < able["cloud"] < 170
    counts = {name: math.ceil(300 / rate) for name, rate in able.items()}
    assert counts == {"desk": 6, "rack": 1, "cloud": 2}
    # desk: one of six is owned; 300 of 600 items/s, so each is busy half of the time: 100 W.
    desk = 5 * 1000 + HOURS * 6 * 0.100 * 0.5
    # rack: busy for 300/500 of the time: 100 + 0.6 · 300 = 280 W.
    rack = 8000 + HOURS * 0.280 * 0.5
    cloud = HOURS * 2 * 0.1
    assert (desk, rack, cloud) == pytest.approx((10259.6, 10454.48, 3506.4))
    for name, expected in (("desk", desk), ("rack", rack), ("cloud", cloud)):
        one = found[name]
        assert one.units is not None
        assert one.cost is not None
        assert one.units.value == one.units.low == one.units.high == counts[name]
        assert one.cost.value == pytest.approx(expected)
        assert one.capacity_source == "queue"
    assert [offer.economics.machine.name for offer in tender.offers] == ["cloud", "desk", "rack"]
    said = cheapest_machines([tender], TARGET)
    assert said == [
        "net b1, 300 requests/s with p99 ≤ 50 ms: cheapest cloud with native/cpu, 2 machines, "
        "3506 EUR over 2 years (146 a month); ×0.342 of desk"
    ]


def test_a_month_is_a_twelfth_of_a_year_of_all_that_is_paid() -> None:
    for found in offers(only(RUNS, TARGET)).values():
        assert found.cost is not None
        assert found.cost_month is not None
        assert found.cost_month.value == pytest.approx(found.cost.value / 24)
    # Rent alone: two clouds at 0.10 for the 730.5 hours of a month.
    cloud = offers(only(RUNS, TARGET))["cloud"].cost_month
    assert cloud is not None
    assert cloud.value == pytest.approx(2 * 0.1 * 730.5)


def test_a_spare_machine_is_paid_for_and_idles() -> None:
    plain, spared = offers(only(RUNS, TARGET)), offers(only(RUNS, replace(TARGET, spare=1)))
    for name, price, idle_w, hourly in (("desk", 1000, 50, 0), ("cloud", 0, 0, 0.1)):
        before, after = plain[name], spared[name]
        assert before.units is not None
        assert after.units is not None
        assert before.cost is not None
        assert after.cost is not None
        assert after.units.value == before.units.value + 1
        # The same requests take the same energy; one more machine only adds its idle power.
        more = price + HOURS * (hourly + idle_w / 1000 * 0.5)
        assert after.cost.value - before.cost.value == pytest.approx(more)


SECONDS = {"desk": 0.01, "rack": 0.002, "cloud": 0.005}


def test_without_the_cloud_the_other_two_tie() -> None:
    # desk and rack are 1.9 % apart; a power reading that is 5 % off covers that:
    # desk 10,259.6 ± 6 · 3 W … and rack 10,454.5 ± 9.6 W of draw, 0.50 a kWh.
    terms = replace(TARGET, machines=(DESK, RACK))
    tender = only(RUNS[:2], terms)
    found = offers(tender)
    assert found["desk"].cost is not None
    assert found["rack"].cost is not None
    low, high = (5000 + HOURS * 6 * (0.05 + rise * 0.5) * 0.5 for rise in (0.094, 0.106))
    assert (found["desk"].cost.low, found["desk"].cost.high) == pytest.approx((low, high))
    assert [offer.mark for offer in tender.offers] == ["best", "tie"]
    # Units of one model differ by more than that: neither is probably the cheaper.
    assert award_of(tender).kind is Sureness.TIE


def test_the_uncertainty_of_the_latency_reaches_the_number_of_machines() -> None:
    # 300 requests/s at some 56 a machine are 6 machines; slower by a seventh, and they are 7.
    tender = only([measured(0.01, 120, spread=0.14)], replace(TARGET, machines=(DESK,)))
    units = offers(tender)["desk"].units
    assert units is not None
    slow, fast = capacity([0.01], 0.05, scales=(1.14, 0.86))
    assert (units.low, units.value, units.high) == (
        math.ceil(300 / fast),
        6,
        math.ceil(300 / slow),
    )
    assert units.high == 7


def test_each_of_several_callers_is_a_queue_of_its_own() -> None:
    spans: dict[str, Span] = {
        "latency_p50": exact(0.02),
        "latency_mean": exact(0.02),
        "throughput": exact(180.0),
    }
    # An inference takes 20 ms beside three others. Their rate of 180/s is where a queue of random
    # arrivals has no end: in 50 ms there is room for one and a half services of waiting.
    for knobs in ({"concurrency": "4"}, {"sessions": "4"}):
        loaded = case(spans, knobs=knobs, callers=4, service_s=[0.02] * 50)
        one = offers(only([run("cloud", loaded)], TARGET))["cloud"]
        assert one.capacity is not None
        assert one.capacity.value == pytest.approx(4 * capacity([0.02], 0.05)[0])
        assert 10 < one.capacity.value / 4 < 12
        assert (one.rate.value, one.queues.measured, one.capacity_source) == (180, 4, "queue")


def test_random_arrivals_at_several_callers_count() -> None:
    spans: dict[str, Span] = {"latency_p50": exact(0.02), "throughput": exact(180.0)}
    loaded = case(spans, knobs={"concurrency": "4"}, callers=4)
    loaded = replace(loaded, served=(served(160.0, beyond=166.0),))
    tender = only([run("cloud", loaded)], TARGET)
    one = offers(tender)["cloud"]
    assert one.capacity_source == "arrivals"
    assert one.capacity == Figure(value=160.0, low=160.0, high=166.0)
    assert one.units == Figure(value=2.0, low=2.0, high=2.0)


def served(
    rate: float, *, bound: float = 0.05, percent: float = 99.0, beyond: float | None = None
) -> ServedRate:
    return ServedRate(
        rate_per_s=rate,
        beyond_per_s=beyond,
        percent=percent,
        latency_s=bound,
        searched=beyond is not None,
    )


def with_loads(*loads: ServedRate) -> Economics:
    (one,) = RUNS[0].cases
    loaded = replace(RUNS[0], cases=(replace(one, served=loads),))
    return offers(only([loaded], TARGET))["desk"]


def test_a_search_for_the_peak_goes_before_the_queue() -> None:
    # 300 requests a second at 61 to 64 each: five machines, whatever the end of the bracket.
    one = with_loads(served(61.0, beyond=64.0))
    assert one.capacity_source == "arrivals"
    assert one.capacity == Figure(value=61.0, low=61.0, high=64.0)
    assert one.units == Figure(value=5.0, low=5.0, high=5.0)
    # A tighter bound was kept, too, at less.
    one = with_loads(served(40.0, bound=0.02, beyond=42.0))
    assert one.capacity == Figure(value=40.0, low=40.0, high=42.0)
    assert one.units == Figure(value=8.0, low=8.0, high=8.0)


def test_a_rate_that_was_only_tried_settles_no_more_than_itself() -> None:
    # 20/s was VALID: that the machine can do no more was never said.
    assert with_loads(served(20.0)).capacity_source == "queue"
    enough = with_loads(served(300.0))
    assert enough.capacity_source == "arrivals"
    assert enough.units == Figure(value=1.0, low=1.0, high=1.0)


@pytest.mark.parametrize(
    "load", [served(300.0, bound=0.06, beyond=310.0), served(300.0, percent=95.0, beyond=310.0)]
)
def test_a_looser_bound_or_percentile_is_no_measurement_of_the_target(load: ServedRate) -> None:
    assert with_loads(load).capacity_source == "queue"


def test_a_machine_that_is_late_by_itself_is_not_offered() -> None:
    tender = only(RUNS, replace(TARGET, limit_s=0.008))
    reasons = {offer.economics.machine.name: offer.reason for offer in tender.offers}
    assert reasons["rack"] == reasons["cloud"] == ""
    assert "even without waiting" in reasons["desk"]
    assert [(entry.machine, entry.absence) for entry in tender.left_out] == [
        ("desk", Absence.NO_FIGURE)
    ]


def test_the_bill_needs_the_power_of_the_whole_machine() -> None:
    bare = replace(DESK, idle_power_w=None)
    tender = only(RUNS[:1], replace(TARGET, machines=(bare,)))
    one = offers(tender)["desk"]
    assert one.power is not None
    assert (one.power.whole, one.power.load_w.value) == (False, 120)
    assert one.cost is None
    assert "idle_power is not given" in one.missing["cost"]
    stated = replace(DESK, load_power_w=150)
    one = offers(only(RUNS[:1], replace(TARGET, machines=(stated,))))["desk"]
    assert one.cost is not None
    assert one.cost.value == one.cost.low == one.cost.high == pytest.approx(10259.6)


def test_power_that_two_ways_disagree_on_is_no_part_of_the_bill() -> None:
    (one,) = RUNS[0].cases
    doubted = replace(RUNS[0], cases=(replace(one, power_reason="ENERGY-DISAGREE"),))
    found = offers(only([doubted], TERMS))["desk"]
    assert (found.power, found.cost_million) == (None, None)
    assert found.missing["cost_million"] == (
        "the power under this load is not certain: ENERGY-DISAGREE, and load_power is not given"
    )
    stated = replace(TERMS, machines=(replace(DESK, load_power_w=150),))
    assert offers(only([doubted], stated))["desk"].cost_million is not None


def test_a_machine_that_may_draw_nothing_has_no_upper_bound_a_watt() -> None:
    free = replace(TERMS, machines=(replace(DESK, idle_power_w=0),))

    def at(watts: float) -> Economics:
        return offers(only([measured(0.01, watts)], free))["desk"]

    # Of 21 W, known to 5 %, the idle device's 20 W are all at the low end: 0, 1 or 2.05 W.
    joule = at(21).per_joule
    assert joule is not None
    assert (joule.low, joule.value, joule.high) == pytest.approx((100 / 2.05, 100, math.inf))
    assert at(20).per_joule is None
    energy = at(20).kwh_per_million
    assert energy is not None
    assert (energy.low, energy.value, energy.high) == pytest.approx((0, 0, 1 / 360))


def test_the_front_holds_what_no_other_variant_beats_in_both() -> None:
    tender = only(RUNS, TARGET)
    front = {tender.variants[index].machine.name for index in tender.front}
    # cloud is the cheapest, rack the fastest; desk is slower and dearer than cloud.
    assert front == {"cloud", "rack"}


def test_a_rented_machine_is_ranked_without_a_price_of_power() -> None:
    rent = replace(CLOUD, table_power_price=0.5)
    terms = replace(TARGET, machines=(DESK, RACK, rent))
    tender = only(RUNS, terms)
    assert [offer.reason for offer in tender.offers] == ["", "", ""]
    assert [offer.mark for offer in tender.offers] == ["best", "", ""]
    assert "The rent of cloud" in " ".join(assumptions([tender], terms))


def test_a_cost_without_power_is_so_much_or_more_beside_rent() -> None:
    dry = replace(DESK, power_price=None, idle_power_w=None)
    terms = replace(TARGET, machines=(dry, CLOUD))
    tender = only([RUNS[0], RUNS[2]], terms)
    cost = offers(tender)["desk"].cost
    # Five of six desks are bought. cloud costs less than they do, whatever their power.
    assert cost == Figure(value=5000, low=5000, high=math.inf, is_open=True)
    assert money(cost) == "5000 or more"
    assert [offer.mark for offer in tender.offers] == ["best", ""]
    dear = replace(terms, machines=(dry, replace(CLOUD, price_per_hour=0.2)))
    tender = only([RUNS[0], RUNS[2]], dear)
    assert {offer.mark for offer in tender.offers} == {"open"}
    assert "Without power_price" in " ".join(assumptions([tender], dear))


def test_only_the_best_variant_of_a_machine_is_offered_and_inaccurate_ones_never() -> None:
    base = measured(0.005)
    slow = replace(base.cases[0], precision="fp32", case_id="net/fp32/cpu/b1")
    half = measured(0.01).cases[0].quantities["throughput"]
    slow = replace(slow, quantities={**slow.quantities, "throughput": half})
    wrong = replace(base.cases[0], precision="int8", case_id="net/int8/cpu/b1", reason="INACCURATE")
    tender = only([replace(base, cases=(slow, base.cases[0], wrong))], TERMS)
    assert [offer.economics.case.precision for offer in tender.offers] == ["native"]
    assert len(tender.variants) == 2


def test_warnings_name_the_single_unit_and_the_model_of_the_queue() -> None:
    said = " ".join(assumptions(tenders(RUNS, TARGET), TARGET))
    for words in ("8 %", "22 %", "M/G/1"):
        assert words in said


def test_runs_of_other_machines_are_refused_with_the_names() -> None:
    with pytest.raises(UsageError, match="The runs come from attic"):
        tenders([replace(RUNS[0], host="attic")], TERMS)


def test_a_lead_within_what_units_differ_by_is_said() -> None:
    near = replace(CLOUD, name="near", host="rack", price_per_hour=0.265)
    tender = only([measured(0.002), measured(0.005)], replace(TERMS, machines=(CLOUD, near)))
    # 0.1/200 against 0.265/500 an hour: ×0.943.
    assert (
        "×0.943 of near; units of one hardware model differ by more than that on average (8 %)"
        in (cheapest_machines([tender], TERMS)[0])
    )


def test_another_workload_is_another_question_and_more_callers_are_not() -> None:
    spans: dict[str, Span] = {"latency_p50": exact(0.01), "throughput": exact(100.0)}
    cases = [
        case(spans, knobs={"workload": "prefill"}),
        case(spans, knobs={"workload": "decode"}),
        case(spans, knobs={"workload": "decode", "concurrency": "4"}),
    ]
    found = tenders([run("desk", *cases)], replace(TERMS, machines=(DESK,)))
    assert [(tender.label, len(tender.variants)) for tender in found] == [
        ("b1/workload:prefill", 1),
        ("b1/workload:decode", 2),
    ]


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Figure(value=1, low=1, high=1), "1 machine"),
        (Figure(value=1, low=1, high=2), "1 machine (1 to 2)"),
        (Figure(value=3, low=2, high=6), "3 machines (2 to 6)"),
        (Figure(value=40, low=1, high=math.inf), "40 machines (1 or more)"),
    ],
)
def test_one_machine_is_not_machines(figure: Figure, text: str) -> None:
    assert count(figure) == text


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Figure(value=26.41, low=26.40, high=26.42), "26.4"),
        (Figure(value=26.4, low=26.4, high=26.6), "26.4 [26.4, 26.6]"),
    ],
)
def test_bounds_that_round_to_the_value_are_left_out(figure: Figure, text: str) -> None:
    assert money(figure) == text


def test_a_precision_that_only_drawn_inputs_speak_for_decides_no_purchase() -> None:
    rack = measured(0.002)
    small = replace(rack.cases[0], precision="int8-static", case_id="net/int8-static/cpu/b1")
    quick = replace(
        small,
        needs=Proof.REAL_INPUTS,
        quantities={
            **small.quantities,
            "throughput": replace(small.quantities["throughput"], value=5000, low=5000, high=5000),
        },
    )
    runs = [replace(rack, cases=(*rack.cases, quick)), measured(0.01)]
    (tender,) = tenders(runs, TERMS)
    assert {offer.economics.case.precision for offer in tender.offers} == {"native"}
    assert tender.unproven is not None
    assert tender.unproven.case.precision == "int8-static"
    (alone,) = tenders([replace(rack, cases=(quick,)), measured(0.01)], TERMS)
    assert [offer.reason for offer in alone.offers][-1] == ("int8-static: real inputs needed")


@pytest.mark.parametrize("percent", [90.0, 95.0])
def test_a_less_strict_percentile_has_its_own_capacity(percent: float) -> None:
    strict, other = (
        offers(only(RUNS, replace(TARGET, percent=asked)))["desk"].capacity
        for asked in (99.0, percent)
    )
    assert strict is not None
    assert other is not None
    assert other.value == pytest.approx(capacity([0.01] * 50, 0.05, percent=percent)[0])
    assert other.value > strict.value


@pytest.mark.parametrize(
    ("measured_at", "asked", "counts"),
    [(95.0, 95.0, True), (99.0, 95.0, True), (95.0, 99.0, False), (90.0, 95.0, False)],
)
def test_a_peak_counts_at_its_percentile_and_at_less_strict_ones(
    measured_at: float, asked: float, counts: bool
) -> None:
    peak = ServedRate(
        rate_per_s=77.0, beyond_per_s=80.0, percent=measured_at, latency_s=0.05, searched=True
    )
    (desk,) = RUNS[0].cases
    runs = [replace(RUNS[0], cases=(replace(desk, served=(peak,)),)), *RUNS[1:]]
    offer = offers(only(runs, replace(TARGET, percent=asked)))["desk"]
    assert offer.capacity_source == ("arrivals" if counts else "queue")
    assert offer.capacity is not None
    assert (offer.capacity.value == 77.0) is counts
