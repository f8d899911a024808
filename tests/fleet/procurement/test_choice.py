"""Ways to serve that a reader expects, and that the bill does not take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.fleet.numbers.facts import CaseFacts, ParallelPoint, ServedRate
from pytest_ortbench.fleet.procurement.choice import Lead, passed_over
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms
from pytest_ortbench.fleet.procurement.ranking import Tender, tenders
from pytest_ortbench.fleet.procurement.remarks import capacity_sources, choices
from tests.fleet.numbers.runs import case, exact, run

BOX = PricedMachine(name="box", host="box", price=1000)
TERMS = Terms(currency="EUR", rate_per_s=300, limit_s=0.05, machines=(BOX,))


def served(provider: str, p50: float, mean: float, *points: ParallelPoint) -> CaseFacts:
    spans = {
        "latency_p50": exact(p50),
        "latency_mean": exact(mean),
        "throughput": exact(1 / mean),
    }
    made = case(spans, provider=provider, service_s=[mean] * 50, cpus=1)
    return replace(made, parallel=points)


def only(*cases: CaseFacts, terms: Terms = TERMS) -> Tender:
    (tender,) = tenders([run("box", *cases)], terms)
    return tender


def test_more_processes_that_make_requests_late_are_passed_over() -> None:
    two = ParallelPoint(
        processes=2,
        threads=2,
        rate_per_s=150,
        service_s=(0.004,) * 45 + (0.0499,) * 5,
        latency_s=0.004,
    )
    (passed,) = passed_over(only(served("cpu", 0.01, 0.01, two)))
    assert passed.lead is Lead.THROUGHPUT
    assert (passed.taken.case.processes, passed.other.case.processes) == (1, 2)
    assert passed.other.rate.value > passed.taken.rate.value
    assert len(choices(only(served("cpu", 0.01, 0.01, two)))) == 1


def test_a_variant_with_a_lower_median_but_less_throughput_is_passed_over() -> None:
    (passed,) = passed_over(only(served("cpu", 0.004, 0.02), served("openvino", 0.008, 0.008)))
    assert passed.lead is Lead.LATENCY
    assert (passed.taken.case.provider, passed.other.case.provider) == ("openvino", "cpu")


def test_the_way_that_everybody_expects_needs_no_word() -> None:
    assert passed_over(only(served("cpu", 0.01, 0.01), served("openvino", 0.02, 0.02))) == []


@pytest.mark.parametrize(
    ("load", "used"),
    [
        (ServedRate(rate_per_s=90, beyond_per_s=95, percent=99, latency_s=0.05, searched=True), 1),
        (ServedRate(rate_per_s=90, beyond_per_s=95, percent=99, latency_s=0.06, searched=True), 0),
        (
            ServedRate(
                rate_per_s=90, beyond_per_s=None, percent=99, latency_s=0.05, searched=False
            ),
            0,
        ),
    ],
)
def test_a_measured_load_is_used_or_it_is_said_why_not(load: ServedRate, used: int) -> None:
    tender = only(replace(served("cpu", 0.01, 0.01), served=(load,)))
    assert (tender.offers[0].economics.capacity_source == "arrivals") == bool(used)
    told = capacity_sources(tender, TERMS)
    assert len(told) == (1 if used else 2)
    assert all("box" in text for text in told)
