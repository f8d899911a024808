"""The one printed page about a purchase."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from pytest_ortbench.fleet.numbers.facts import CaseFacts, RunFacts
from pytest_ortbench.fleet.procurement.award import Sureness, award_of
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms
from pytest_ortbench.fleet.procurement.sentences import chance_words
from pytest_ortbench.fleet.report.decision import MACHINES, WORKLOADS, decision
from pytest_ortbench.fleet.report.procurement import Procurement, procure
from pytest_ortbench.fleet.report.procurement_page import draw_purchase, purchase_pdf
from tests.fleet.numbers.runs import Span, case, run
from tests.report.fleet_views import TERMS, costs, view
from tests.report.test_sheet import pages


@cache
def priced(spread: float, *prices: float, models: int = 1, target: bool = True) -> Procurement:
    wide: Span = (0.01 / spread, 0.01, 0.01 * spread)
    fast: Span = (100 / spread, 100, 100 * spread)
    spans = {"latency_p50": wide, "latency_mean": wide, "throughput": fast}
    names = [f"m{index}" for index in range(len(prices))]
    runs = [
        run(name, *(case(spans, model=f"net{i}", service_s=[0.01] * 20) for i in range(models)))
        for name in names
    ]
    machines = tuple(
        PricedMachine(name=name, host=name, price=price)
        for name, price in zip(names, prices, strict=True)
    )
    terms = Terms(currency="EUR", machines=machines)
    return procure(runs, replace(terms, rate_per_s=500, limit_s=0.05) if target else terms)


SHOWN = {
    "three machines": costs,
    "clear": lambda: priced(1.0, 1000, 3000),
    "tie": lambda: priced(1.3, 1000, 1001),
    "alone": lambda: priced(1.1, 1000),
    "no target": lambda: priced(1.1, 1000, 2000, target=False),
    "many": lambda: priced(1.2, *(1000.0 + 10 * index for index in range(7)), models=6),
}


@pytest.mark.parametrize("name", SHOWN)
def test_it_is_one_page_and_the_same_each_time(name: str) -> None:
    shown = SHOWN[name]()
    page = decision(shown, view().runs)
    pdf = purchase_pdf(page, shown)
    assert pdf.startswith(b"%PDF-")
    assert pages(pdf) == 1
    assert purchase_pdf(page, shown) == pdf


@pytest.mark.parametrize("name", SHOWN)
def test_nothing_lies_outside_and_the_lower_half_is_not_blank(name: str) -> None:
    shown = SHOWN[name]()
    drawn = draw_purchase(decision(shown, view().runs), shown)
    text_axes = drawn.axes[0]
    lowest = 0.0
    for text in text_axes.texts:
        box = text.get_window_extent().transformed(drawn.transFigure.inverted())
        assert box.x0 >= 0
        assert box.x1 <= 1, text.get_text()
        assert box.y0 >= 0
        assert box.y1 <= 1
        lowest = max(lowest, 1 - box.y0) if text is not text_axes.texts[0] else lowest
    assert lowest > 0.6


def test_it_has_the_answer_and_what_it_costs_in_all_and_a_month() -> None:
    shown = SHOWN["clear"]()
    page = decision(shown, view().runs)
    assert page.title.endswith(": m0")
    (bill,) = page.bills
    assert bill.sureness is Sureness.CLEAR
    assert [row[:2] for row in bill.rows] == [("best", "m0"), ("", "m1")]
    assert bill.answer.startswith("Cheapest: m0 (cpu), 9 machines, 9000 EUR over 3 years")
    # 500 requests of 10 ms each within 50 ms: some 56 a second of one machine.
    assert bill.rows[0][3:6] == ("9", "9000", "250")
    assert "3 years" in page.asked
    assert "50 ms" in page.asked


def test_a_probable_machine_is_told_with_how_probable_it_is() -> None:
    (bill,) = decision(priced(1.2, 1000, 1500), view().runs).bills
    probability = award_of(bill.tender).probability
    assert probability is not None
    assert f"({chance_words(probability)} probable): m0" in bill.answer
    assert bill.rows[0][0] == "probably"


def test_without_a_rival_the_page_says_so_and_names_no_winner() -> None:
    page = decision(SHOWN["alone"](), view().runs)
    assert page.title == "What m0 costs"
    assert page.bills[0].sureness is Sureness.ALONE
    assert page.bills[0].answer.startswith("m0: ")
    runs, terms = two("m0", m1=case(None, reason="UNJUDGED"))
    page = decision(procure(runs, terms), runs)
    assert page.title == "Only m0 could be priced"
    assert "m1" in page.bills[0].answer


def two(*names: str, **cases: CaseFacts) -> tuple[list[RunFacts], Terms]:
    """Machines with a table; of those without a case of their own one takes exactly 10 ms."""
    exact: Span = (0.01, 0.01, 0.01)
    spans = {"latency_p50": exact, "latency_mean": exact, "throughput": (100.0, 100.0, 100.0)}
    known = {name: case(spans, service_s=[0.01] * 20) for name in names} | cases
    machines = tuple(PricedMachine(name=name, host=name, price=1000) for name in known)
    terms = Terms(currency="EUR", machines=machines, rate_per_s=50, limit_s=0.5)
    return [run(name, made) for name, made in known.items()], terms


def test_a_tie_tells_its_probability_and_above_all_else_why_it_is_none_of_the_two() -> None:
    page = decision(SHOWN["tie"](), view().runs)
    award = award_of(page.bills[0].tender)
    assert award.probability is not None
    chance = chance_words(award.probability)
    assert f"m0 is cheaper with a probability of {chance}" in page.bills[0].answer
    assert "m0 and m1" in page.why
    assert decision(SHOWN["clear"](), view().runs).why == ""


def test_each_flag_of_the_numbers_reaches_the_page_and_the_bill() -> None:
    wide: Span = (0.001, 0.01, 0.02)
    spans = {"latency_p50": wide, "latency_mean": wide, "throughput": (50.0, 100.0, 160.0)}
    noisy = case(spans, blurred_by=("CPU-SHARE",), service_s=[0.01] * 20)
    runs, terms = two("m1", m0=replace(noisy, noted=("MEMORY-BUSY", "SPREAD")))
    shown = procure(runs, terms)
    page = decision(shown, runs)
    for word in ("CPU-SHARE", "MEMORY-BUSY", "SPREAD", "unstable"):
        (text,) = [text for text in page.not_proven if word in text and "Between" not in text]
        assert ("m0" in text, "m1" in text) == (True, False)
        assert f"{word} (m0)" in page.why
    for word in ("MEMORY-BUSY", "SPREAD", "unstable"):
        assert sum(word in text for text in shown.warnings) == 1


def test_two_names_of_one_machine_are_told_first_of_all() -> None:
    runs, terms = two("small", "big")
    one = [replace(run, own_host="vm", machine={"cpu": "C", "memory": "8 GB"}) for run in runs]
    shown = procure(one, terms)
    assert shown.same_machines
    assert shown.warnings[0] == str(shown.answer[-1]) == shown.same_machines[0]
    assert shown.same_machines[0] in decision(shown, one).why
    for name in ("small", "big", "vm"):
        assert name in shown.same_machines[0]
    assert procure(runs, terms).same_machines == ()


def test_the_page_says_what_each_machine_and_the_model_is_and_how_they_were_measured() -> None:
    runs, terms = two("small", "big")
    fact = replace(
        runs[0].cases[0],
        model_file="segment.onnx",
        model_bytes=4_570_000,
        shapes=(("image", (1, 3, 320, 320)),),
        drawn_values=True,
        knobs=(("threads", "1"),),
        workers=3,
    )
    stable = {
        "cpu": "Xeon",
        "cpus_usable": "2",
        "memory": "23.5 GiB",
        "system": "Linux 6",
        "virtualisation": "none seen",
    }
    other = replace(fact, knobs=(), case_id="net/native/cpu/b1")
    runs = [
        replace(runs[0], cases=(fact,), machine=stable, own_host="vm"),
        replace(runs[1], cases=(other,)),
    ]
    page = decision(procure(runs, terms), runs)
    (small,) = [text for text in page.measured if text.startswith("small")]
    assert len(page.measured) == 3
    assert (page.measured[0], small) == (
        "segment.onnx: 4.57 MB, image [1, 3, 320, 320], random values",
        "small: host vm, Xeon, 2 CPUs, 23.5 GiB, Linux 6; onnxruntime 1.32.0, cpu, 1 thread; "
        "measured 2026-01-01 03:04 UTC in 3 processes, one after the other, 1000 inferences",
    )
    rows = {row[1]: row[2] for row in page.bills[0].rows}
    assert rows == {"small": "cpu, 1 thread", "big": "cpu"}


def test_bounds_are_explained_below_the_bill_that_has_them() -> None:
    assert decision(SHOWN["tie"](), view().runs).bills[0].caption
    assert not decision(SHOWN["clear"](), view().runs).bills[0].caption


def test_numbers_of_a_busy_machine_are_less_certain_on_the_page_too() -> None:
    wide: Span = (0.01, 0.01, 0.01)
    spans = {"latency_p50": wide, "latency_mean": wide, "throughput": (100.0, 100.0, 100.0)}
    runs = [
        run("m0", case(spans, blurred_by=("CPU-SHARE",), service_s=[0.01] * 20)),
        run("m1", case(spans, service_s=[0.01] * 20)),
    ]
    machines = tuple(PricedMachine(name=name, host=name, price=1000) for name in ("m0", "m1"))
    terms = Terms(currency="EUR", machines=machines, rate_per_s=50, limit_s=0.5)
    page = decision(procure(runs, terms), view().runs)
    first = page.not_proven[0]
    assert ("CPU-SHARE" in first, "m0" in first, "m1" in first) == (True, True, False)


def test_prices_are_told_where_no_machine_could_be_priced() -> None:
    terms = Terms(
        currency="EUR",
        machines=(PricedMachine(name="m0", host="m0", price=1000),),
        rate_per_s=50,
        limit_s=0.5,
    )
    page = decision(procure([run("m0", case(None, reason="UNJUDGED"))], terms), view().runs)
    assert [text.partition(":")[0] for text in page.prices] == ["m0"]


@pytest.mark.parametrize("name", SHOWN)
def test_cells_of_a_bill_are_whole_and_apart(name: str) -> None:
    shown = SHOWN[name]()
    page = decision(shown, view().runs)
    drawn = draw_purchase(page, shown)
    rows: dict[float, list[tuple[float, float]]] = {}
    texts = drawn.axes[0].texts
    for bill in page.bills:
        for row in bill.rows:
            assert {text for text in row if text} <= {text.get_text() for text in texts}
    for text in texts:
        if text.get_text() and text.get_fontsize() <= 7.5:
            box = text.get_window_extent()
            rows.setdefault(round(box.y1), []).append((box.x0, box.x1))
    for cells in rows.values():
        for (_, right), (left, _) in pairwise(sorted(cells)):
            assert left > right


def test_what_has_no_room_is_counted() -> None:
    page = decision(SHOWN["many"](), view().runs)
    assert len(page.bills) == WORKLOADS
    assert page.more == 6 - WORKLOADS
    assert {len(bill.rows) for bill in page.bills} == {MACHINES}
    assert {bill.left_out for bill in page.bills} == {7 - MACHINES}


def test_terms_are_those_of_the_comparison() -> None:
    shown = costs()
    assert shown.terms == TERMS
    prices = decision(shown, view().runs).prices
    assert [text.partition(":")[0] for text in prices] == list(shown.priced)
