"""Several models as one workload, worked out by hand.

On ``box`` (1 CPU, 1,000 EUR) a request of det takes 10 ms and one of rec 2 ms, each always as long.
A mix of 40 and 120 requests a second is busy with det for 0.40 s and with rec for 0.24 s of each
second, so it holds 160 requests in 0.64 s: 250 a second at full load.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.numbers.facts import CaseFacts, ParallelPoint, RunFacts, ServedRate
from pytest_ortbench.fleet.procurement.award import Sureness, award_of
from pytest_ortbench.fleet.procurement.entrants import Absence
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms, parse_machines
from pytest_ortbench.fleet.procurement.mix import (
    MixPart,
    mix_words,
    parse_mix,
    parse_rate,
    total_rate,
)
from pytest_ortbench.fleet.procurement.queueing import capacity
from pytest_ortbench.fleet.procurement.ranking import Tender, tenders
from pytest_ortbench.fleet.procurement.remarks import capacity_sources
from pytest_ortbench.fleet.procurement.sentences import cheapest_machines
from tests.fleet.numbers.runs import Span, case, exact, run

BOX = PricedMachine(name="box", host="box", price=1000)
MIX = parse_mix("det:40/s,rec:120/s", "--mix")
TERMS = Terms(currency="EUR", years=2, rate_per_s=160, limit_s=0.1, machines=(BOX,), mix=MIX)


def model(name: str, seconds: float, *, batch: int = 1, cpus: int = 1, **more: float) -> CaseFacts:
    spans: dict[str, Span] = {
        "latency_p50": exact(seconds),
        "latency_mean": exact(seconds),
        "throughput": exact(batch / seconds),
        **{metric: exact(value) for metric, value in more.items()},
    }
    return case(spans, model=name, batch=batch, service_s=[seconds] * 50, cpus=cpus, idle_w=10.0)


DET, REC = model("det", 0.01), model("rec", 0.002)


def only(*runs: RunFacts, terms: Terms = TERMS) -> Tender:
    (tender,) = tenders(runs, terms)
    return tender


def test_a_mix_has_one_total_and_one_bill() -> None:
    tender = only(run("box", DET, REC, model("cls", 0.005)))
    (offer,) = tender.offers
    found = offer.economics
    assert (tender.model, tender.label) == ("det 40/s + rec 120/s", "as one workload")
    assert found.rate.value == pytest.approx(250)
    assert found.busy == pytest.approx((0.4 / 0.64, 0.24 / 0.64))
    assert found.capacity is not None
    assert found.units is not None
    # A det finds on average more work before it than alone, and still leaves 64 % busy in time.
    assert 160 < found.capacity.value < 250
    assert (found.units.value, found.cost and found.cost.value) == (1, 1000)
    assert "160 requests/s" in cheapest_machines([tender], TERMS)[0]


def test_a_mix_of_one_model_is_that_model() -> None:
    one = replace(TERMS, mix=(MixPart(name="det", rate_per_s=160),))
    alone = replace(TERMS, mix=())
    mixed = only(run("box", DET), terms=one).offers[0].economics
    single = only(run("box", DET), terms=alone).offers[0].economics
    assert mixed.capacity is not None
    assert single.capacity is not None
    assert mixed.capacity.value == pytest.approx(single.capacity.value, rel=1e-6)
    assert (mixed.units, mixed.cost) == (single.units, single.cost)


def test_every_model_of_a_mix_must_be_in_time() -> None:
    service = [0.002] * 199 + [0.08]
    # Of 200 requests one takes 80 ms: all together would be in time for longer than it is.
    together = capacity(service, 0.1)[0]
    each = capacity(service, 0.1, kinds=[[0.002], [0.08]])[0]
    assert 0 < each < together


def test_the_capacity_of_a_mix_agrees_with_a_simulation() -> None:
    generator = np.random.default_rng(5)
    service = [0.01] * 40 + [0.002] * 120
    limit = 0.05
    rate = capacity(service, limit, kinds=[[0.01], [0.002]])[0]
    count = 400_000
    kinds = generator.random(count) < 0.25
    took = np.where(kinds, 0.01, 0.002)
    gaps = generator.exponential(1 / rate, count)
    waited, waits = 0.0, np.empty(count)
    for index in range(count):
        waited = max(0.0, waited - gaps[index])
        waits[index] = waited
        waited += took[index]
    late = [np.mean(waits[mask] + took[mask] > limit) for mask in (kinds, ~kinds)]
    assert max(late) == pytest.approx(0.01, rel=0.2)


def test_processes_that_were_measured_of_all_models_count() -> None:
    def wide(name: str, seconds: float, *counts: int) -> CaseFacts:
        points = tuple(
            ParallelPoint(
                processes=count,
                threads=count,
                rate_per_s=count / seconds,
                service_s=(seconds,) * 50,
                latency_s=seconds,
            )
            for count in counts
        )
        return replace(model(name, seconds, cpus=2), parallel=points)

    settled = only(run("box", wide("det", 0.01, 2), wide("rec", 0.002, 2))).offers[0].economics
    assert (settled.case.processes, settled.queues.is_open) == (2, False)
    assert settled.rate.value == pytest.approx(500)
    # Of rec nobody knows what two do, so the machine is one queue or two.
    half = only(run("box", wide("det", 0.01, 2), wide("rec", 0.002)))
    found = half.offers[0].economics
    assert (found.queues.measured, found.queues.most) == (1, 2)
    assert (found.rate.low, found.rate.high) == pytest.approx((250, 500))


def test_peaks_of_all_models_share_the_time() -> None:
    def with_peak(one: CaseFacts, rate: float) -> CaseFacts:
        peak = ServedRate(
            rate_per_s=rate, beyond_per_s=rate * 1.1, percent=99, latency_s=0.1, searched=True
        )
        return replace(one, served=(peak,))

    found = only(run("box", with_peak(DET, 80), with_peak(REC, 400))).offers[0].economics
    # 40 of 80 and 120 of 400 are 0.8 of a machine, which serves 160 / 0.8 of the mix.
    assert found.capacity_source == "arrivals"
    assert found.capacity is not None
    assert found.capacity.value == pytest.approx(200)


def test_the_variants_of_a_mix_are_chosen_together() -> None:
    # What serves most of rec alone need not be the best beside det.
    steady = replace(model("rec", 0.01), provider="steady", case_id="rec/steady")
    quick = replace(
        model("rec", 0.002),
        provider="quick",
        case_id="rec/quick",
        service_s=(0.001,) * 49 + (0.09,),
    )
    terms = replace(
        TERMS, limit_s=0.1, mix=parse_mix("det:10/s,rec:120/s", "--mix"), rate_per_s=130
    )
    alone = replace(terms, mix=(), rate_per_s=120)
    able = {
        variant.case.provider: variant.capacity
        for tender in tenders([run("box", DET, steady, quick)], alone)
        for variant in tender.variants
        if tender.model == "rec"
    }
    chosen = only(run("box", DET, steady, quick), terms=terms).offers[0].economics
    bills = {
        variant.provider: only(run("box", DET, variant), terms=terms).offers[0].economics.cost
        for variant in (steady, quick)
    }
    assert set(able) == {"steady", "quick"}
    assert chosen.cost == min(filter(None, bills.values()), key=lambda cost: cost.value)
    assert [part.model for part in chosen.parts] == ["det", "rec"]


def test_a_load_of_one_model_bounds_what_the_mix_can_be_served() -> None:
    late = ServedRate(rate_per_s=10, beyond_per_s=12, percent=99, latency_s=0.1, searched=True)
    loaded = replace(DET, served=(late,))
    found = only(run("box", loaded, REC)).offers[0].economics
    # det is a quarter of the mix, and late at 12 a second.
    assert found.capacity_source == "queue"
    assert found.capacity is not None
    assert found.units is not None
    assert found.capacity.high == pytest.approx(48)
    assert found.units.low == 4
    told = " ".join(capacity_sources(only(run("box", loaded, REC)), TERMS))
    assert "upper bound" in told
    # A looser limit says nothing of a tighter one.
    loose = replace(DET, served=(replace(late, latency_s=0.2),))
    plain, other = (only(run("box", one, REC)).offers[0].economics for one in (DET, loose))
    assert plain.capacity == other.capacity


def test_power_is_the_mean_over_the_busy_time() -> None:
    paid = replace(BOX, idle_power_w=50, power_price=0.5)
    cases = [model("det", 0.01, power=100), model("rec", 0.002, power=60)]
    found = only(run("box", *cases), terms=replace(TERMS, machines=(paid,))).offers[0].economics
    device = 100 * 0.625 + 60 * 0.375
    assert found.power is not None
    assert found.power.load_w.value == pytest.approx(50 + device - 10)


def test_a_machine_without_one_of_the_models_is_told_and_left_out() -> None:
    tender = only(
        run("box", DET, REC),
        run("small", DET),
        terms=replace(TERMS, machines=(BOX, PricedMachine(name="small", host="small", price=1))),
    )
    assert [offer.economics.machine.name for offer in tender.offers] == ["box"]
    assert [(entry.machine, entry.absence, entry.subject) for entry in tender.left_out] == [
        ("small", Absence.NOT_MEASURED, "rec")
    ]
    assert award_of(tender).kind is Sureness.ALONE


def test_models_of_one_worker_have_to_be_measured_with_several() -> None:
    of_one = [replace(each, one_worker=True) for each in (DET, REC)]
    with pytest.raises(UsageError) as caught:
        only(run("box", *of_one))
    assert "--ort-workers=3" in caught.value.hint
    assert "rec were " in caught.value.message


def test_a_request_of_a_batch_counts_as_one() -> None:
    found = only(run("box", model("det", 0.01, batch=8), REC)).offers[0].economics
    assert found.rate.value == pytest.approx(250)


def test_a_model_with_several_workloads_has_to_be_named_with_one() -> None:
    several = run("box", DET, model("det", 0.05, batch=8), REC)
    with pytest.raises(UsageError, match="2 batches or sizes") as caught:
        only(several)
    assert caught.value.hint == "In place of 'det', write one of: det/b1, det/b8"
    named = replace(TERMS, mix=parse_mix("det/b8:4/s,rec:120/s", "--mix"))
    assert only(several, terms=named).offers[0].economics.units is not None


def test_an_unknown_model_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no model 'dett'") as caught:
        only(run("box", DET, REC), terms=replace(TERMS, mix=parse_mix("dett:4/s", "--mix")))
    assert caught.value.hint == "Did you mean 'det'?"


def test_a_mix_is_read_with_its_units() -> None:
    mix = parse_mix("det:40/s, zoo:rec/b8:120/min", "--mix")
    assert mix == (
        MixPart(name="det", rate_per_s=40),
        MixPart(name="zoo:rec/b8", rate_per_s=2),
    )
    assert (total_rate(mix), mix_words(mix)) == (42, "det 40/s + zoo:rec/b8 2/s")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("det:40", "without a unit"),
        ("det:/s", "not a number"),
        ("det:forty/s", "not a number"),
        ("det:0/s", "above 0"),
        ("det:-1/s", "above 0"),
        ("det:nan/s", "above 0"),
        ("det:inf/s", "above 0"),
        ("det:1/s,det:2/s", "twice"),
        ("det:1/s,", "is empty"),
        ("", "is empty"),
        ("det", "has no rate"),
        (":4/s", "names no model"),
        ("det:4/s rec:2/s", "separated by commas"),
        ("det:4/s;rec:2/min", "separated by commas"),
        ("det:4/s + rec:2/h", "separated by commas"),
        ("det:4/s and rec:2/h", "separated by commas"),
    ],
)
def test_a_mix_that_can_not_be_gets_one_message(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_mix(text, "--mix")


@pytest.mark.parametrize(
    ("text", "mended"),
    [("det:1/s,det:120/min", '"det:3/s"'), ("det:1/s,,rec:2/s,", '"det:1/s,rec:2/s"')],
)
def test_the_step_holds_the_mended_mix(text: str, mended: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_mix(text, "--mix")
    assert mended in caught.value.hint


def test_a_mix_without_commas_is_written_with_them() -> None:
    with pytest.raises(UsageError) as caught:
        parse_mix("det:40/s zoo:rec/b8:120/min; cls:3/h", "--mix")
    assert '"det:40/s,zoo:rec/b8:120/min,cls:3/h"' in caught.value.hint


@pytest.mark.parametrize(
    ("text", "rate"), [("500", 500), ("500/s", 500), ("30000/min", 500), ("1.8e6 / h", 500)]
)
def test_a_rate_may_have_the_units_of_a_mix(text: str, rate: float) -> None:
    assert parse_rate(text, "--rate") == pytest.approx(rate)


@pytest.mark.parametrize("text", ["", "fast", "5/day", "0/s", "-3", "nan", "inf/s", "5/s/s"])
def test_a_rate_that_can_not_be_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rate(text, "--rate")
    assert caught.value.place == "--rate"


def test_the_table_of_machines_may_hold_the_mix() -> None:
    table = 'p99 = "50 ms"\n{}\n[machines.box]\nprice = 1\n'
    terms = parse_machines(table.format('mix = "det:40/s,rec:120/s"'), "m.toml")
    assert (terms.mix, terms.rate_per_s) == (MIX, 160)
    with pytest.raises(UsageError, match="both mix and rate"):
        parse_machines(table.format('rate = 4\nmix = "det:40/s"'), "m.toml")
    with pytest.raises(UsageError, match="mix is 4"):
        parse_machines(table.format("mix = 4"), "m.toml")
