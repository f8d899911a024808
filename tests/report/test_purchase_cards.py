"""Cards of a page about a purchase: cost first, each with its model."""

from __future__ import annotations

import math

import pytest

from pytest_ortbench.fleet.report.cards import comparison_cards
from pytest_ortbench.fleet.report.html import render_comparison_html
from pytest_ortbench.fleet.report.procurement import with_costs
from pytest_ortbench.report.cards.card import AnswerCard
from tests.report.fleet_views import costs, view
from tests.report.page_reader import read_page
from tests.report.test_purchase_page import SHOWN, priced


def cards_of(name: str) -> tuple[AnswerCard, ...]:
    return with_costs(view(), SHOWN[name]()).cards


def lead(card: AnswerCard) -> str:
    return "".join(part.text for part in card.lead.parts)


@pytest.mark.parametrize("name", SHOWN)
def test_each_card_names_its_model_and_has_a_bar_a_machine(name: str) -> None:
    shown = SHOWN[name]()
    for card, tender in zip(cards_of(name), shown.tenders, strict=False):
        assert tender.model in card.lead.about
        offers = [offer for offer in tender.offers if not offer.reason]
        bars = [bar for group in card.groups for bar in group.bars]
        assert len(bars) + sum(group.left_out for group in card.groups) == len(offers)
        assert all(bar.length is not None and math.isfinite(bar.length) for bar in bars)


def test_only_a_clear_or_probable_machine_is_stressed() -> None:
    stressed = {
        name: [part.text for part in cards_of(name)[0].lead.parts if part.kind == "winner"]
        for name in ("clear", "tie", "alone")
    }
    assert stressed == {"clear": ["m0"], "tie": [], "alone": []}
    assert cards_of("clear")[0].kind == "sure"
    assert cards_of("alone")[0].kind == "open"
    probable = with_costs(view(), priced(1.2, 1000, 1500)).cards[0]
    assert probable.kind == "doubt"
    assert [part.text for part in probable.lead.parts if part.kind == "winner"] == ["m0"]


def test_what_to_buy_is_the_first_section_of_the_page_and_latency_a_later_one() -> None:
    page = read_page(render_comparison_html(with_costs(view(), costs())))
    order = [page.text.rindex(heading) for heading in ("What to buy", "without regard to cost")]
    assert order == sorted(order)
    assert page.text.rindex("What to buy") < page.text.rindex("Overview")
    # The cards of latency say nothing of costs.
    for card in comparison_cards(with_costs(view(), costs())):
        assert "EUR" not in lead(card)
        assert not any("EUR" in part.text for beside in card.beside for part in beside.parts)
