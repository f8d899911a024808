"""The answer about a purchase as cards: one a workload, with the cost of each machine as a bar."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_ortbench.analysis.told import Told
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.fleet.numbers.matrix import variant_label
from pytest_ortbench.fleet.procurement.award import Award, Sureness, award_of
from pytest_ortbench.fleet.procurement.figure import Figure
from pytest_ortbench.fleet.procurement.machines import Terms
from pytest_ortbench.fleet.procurement.ranking import Offer, Tender, figure_of
from pytest_ortbench.fleet.procurement.remarks import to_settle
from pytest_ortbench.fleet.procurement.sentences import (
    amounts,
    answer_of,
    chance_words,
    is_of_one,
    left_out_texts,
    money,
    not_yet,
    shown_mark,
    target,
    tie_words,
)
from pytest_ortbench.report.cards.bars import Bars, BarText, draw_bars
from pytest_ortbench.report.cards.card import AnswerCard
from pytest_ortbench.report.cards.sentence import sentence_of
from pytest_ortbench.report.escape import one_line

#: Machines that have a bar, and workloads that have a card; the tables and the CSV have the rest.
_MACHINES, _WORKLOADS = 8, 12

_KINDS = {Sureness.CLEAR: "sure", Sureness.PROBABLE: "doubt", Sureness.TIE: "doubt"}
_CERTAINTIES = {
    Sureness.CLEAR: "clear",
    Sureness.TIE: "not decided",
    Sureness.OPEN: "only bounds are known",
    Sureness.ALONE: "no rival",
    Sureness.NONE: "nothing priced",
}
_LOOKS = {
    "best": "best",
    "probably": "best",
    "tie": "doubt",
    "possibly": "doubt",
    "bounds": "doubt",
}


def purchase_cards(tenders: Sequence[Tender], terms: Terms) -> tuple[AnswerCard, ...]:
    """Lay out what to buy, a card a workload."""
    return tuple(_card(tender, award_of(tender), terms) for tender in tenders[:_WORKLOADS])


def _card(tender: Tender, award: Award, terms: Terms) -> AnswerCard:
    chance = "" if award.probability is None else chance_words(award.probability)
    certainty = (
        f"not proven: {chance} probable"
        if award.kind is Sureness.PROBABLE
        else "one machine"
        if award.kind is Sureness.ALONE and is_of_one(tender, terms)
        else _CERTAINTIES[award.kind]
    )
    notes = [*to_settle(tender, terms), *left_out_texts(tender.left_out)]
    return AnswerCard(
        kind=_KINDS.get(award.kind, "open"),
        lead=sentence_of(_lead(tender, award, terms)),
        certainty=certainty,
        groups=(_bars(tender, award, terms),) if award.priced else (),
        beside=tuple(sentence_of(Told(f"{note}.")) for note in notes),
        folded=tuple(map(sentence_of, (answer_of(tender, terms), *not_yet(tender, terms)))),
    )


def _lead(tender: Tender, award: Award, terms: Terms) -> Told:
    """The answer in a few words: which machine, how many, for how much."""
    head = f"{tender.model} {tender.label}{target(tender, terms)}: "
    if award.kind is Sureness.NONE:
        return Told("no machine could be priced", about=head)
    first = award.priced[0].economics
    name, cost = first.machine.name, amounts(first, tender.deciding, terms)
    if award.best is not None:
        word = "probably " if award.kind is Sureness.PROBABLE else ""
        return Told(word, name, f": {cost}", about=head)
    if award.kind is Sureness.ALONE and is_of_one(tender, terms):
        return Told(f"{name}: {cost}", about=head)
    if award.kind is Sureness.ALONE:
        names = [entry.machine for entry in tender.left_out]
        out = f"; left out: {', '.join(dict.fromkeys(names))}" if names else ""
        return Told(f"only {name} could be priced: {cost}{out}", about=head)
    several = [offer.economics.machine.name for offer in award.level]
    text = f"not decided between {', '.join(several)}{tie_words(award, tender)}"
    return Told(text, about=head)


def _bars(tender: Tender, award: Award, terms: Terms) -> Bars:
    years = f"{terms.years:g} year{'' if terms.years == 1 else 's'}"
    heading = {
        "cost": f"{terms.currency} over {years}",
        "cost_million": f"{terms.currency} per million items, never idle",
        "rate": "items/s",
    }[tender.deciding]
    offers = award.priced[:_MACHINES]
    return draw_bars(
        heading,
        [_bar(offer, tender) for offer in offers],
        left_out=len(award.priced) - len(offers),
    )


def _bar(offer: Offer, tender: Tender) -> BarText:
    figure = figure_of(offer.economics, tender.deciding)
    mark = shown_mark(offer, tender)
    variant = variant_label(offer.economics.case)
    return BarText(
        label=one_line(f"{offer.economics.machine.name} ({variant})"),
        kind=_LOOKS.get(mark, "plain"),
        quantity=_quantity(figure),
        value=money(figure) if figure is not None else "",
        mark={"bounds": "only bounds"}.get(mark, mark),
    )


def _quantity(figure: Figure | None) -> Quantity | None:
    """A figure as the length of a bar; of bounds the lower one is that long."""
    if figure is None or not math.isfinite(figure.low):
        return None
    value = figure.low if figure.is_open or math.isinf(figure.value) else figure.value
    high = figure.high if math.isfinite(figure.high) else 1e3 * max(value, figure.low)
    return Quantity(value=value, unit="1", low=figure.low, high=high)
