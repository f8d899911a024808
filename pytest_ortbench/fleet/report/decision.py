"""What stands on the one printed page about a purchase: the answer, its bill, what is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.sentences import first_names
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.fleet.numbers.facts import RunFacts
from pytest_ortbench.fleet.numbers.matrix import variant_label
from pytest_ortbench.fleet.procurement.award import Award, Sureness, award_of
from pytest_ortbench.fleet.procurement.economics import Economics
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms
from pytest_ortbench.fleet.procurement.mix import mix_words
from pytest_ortbench.fleet.procurement.ranking import Offer, Tender
from pytest_ortbench.fleet.procurement.remarks import capacity_sources, to_settle
from pytest_ortbench.fleet.procurement.sentences import (
    answer_of,
    assumptions,
    bare_count,
    left_out_texts,
    money,
    shown_mark,
    span,
)
from pytest_ortbench.fleet.report.procurement import Procurement
from pytest_ortbench.fleet.report.view import HOLE
from pytest_ortbench.report.escape import one_line

#: Workloads that have a bill on the page, and machines in each.
WORKLOADS, MACHINES = 4, 5

#: What the page is called, by how sure its answers are where all are alike.
_TITLES = {
    Sureness.CLEAR: "Which machine to buy: {name}",
    Sureness.PROBABLE: "Which machine to buy: probably {name}",
    Sureness.TIE: "Which machine to buy: not decided",
    Sureness.OPEN: "Which machine to buy: not decided",
    Sureness.ALONE: "Only {name} could be priced",
    Sureness.NONE: "No machine could be priced",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What one workload costs on each machine.

    Attributes:
        tender: The offers.
        heading: The workload.
        answer: The sentence that answers.
        sureness: How sure it is.
        headings: Of the columns.
        rows: Cells of each machine.
        offers: Of these rows.
        left_out: How many further machines the whole comparison has.
    """

    tender: Tender
    heading: str
    answer: str
    sureness: Sureness
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    offers: tuple[Offer, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The page for whoever decides.

    Attributes:
        title: Its heading: the answer, where there is one.
        asked: What is to be served, and for how long.
        bills: One a workload.
        more: How many further workloads the whole comparison has.
        prices: What each machine costs and draws, as the table of machines says.
        not_proven: What the answer rests on, and what was not measured.
        source: Runs and version.
    """

    title: str
    asked: str
    bills: tuple[Bill, ...]
    more: int
    prices: tuple[str, ...]
    not_proven: tuple[str, ...]
    source: str


def decision(shown: Procurement, runs: Sequence[RunFacts]) -> Decision:
    """Gather the page about a purchase.

    Args:
        shown: What the machines cost.
        runs: The runs that were compared.
    """
    terms = shown.terms
    awards = [award_of(tender) for tender in shown.tenders]
    dates = sorted({run.started_at[:10] for run in runs})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else ""
    hosts = first_names(list(dict.fromkeys(run.host for run in runs)), 6)
    return Decision(
        title=one_line(_title(awards, shown)),
        asked=one_line(_asked(terms)),
        bills=tuple(
            _bill(tender, award, terms)
            for tender, award in list(zip(shown.tenders, awards, strict=True))[:WORKLOADS]
        ),
        more=max(0, len(shown.tenders) - WORKLOADS),
        prices=tuple(
            one_line(_price(machine, terms))
            for machine in terms.machines
            if machine.name in shown.priced or not shown.priced
        )[:MACHINES],
        not_proven=tuple(map(one_line, _not_proven(shown))),
        source=one_line(f"Measured {when} on {hosts} with pytest-ortbench {VERSION}."),
    )


def _title(awards: Sequence[Award], shown: Procurement) -> str:
    """Name the machine where all workloads agree on it."""
    kinds = {award.kind for award in awards}
    names = {award.priced[0].economics.machine.name for award in awards if award.priced}
    if len(kinds) == len(names) == 1:
        return _TITLES[next(iter(kinds))].format(name=next(iter(names)))
    if kinds == {Sureness.CLEAR, Sureness.PROBABLE} and len(names) == 1:
        return _TITLES[Sureness.PROBABLE].format(name=next(iter(names)))
    return shown.title


def _asked(terms: Terms) -> str:
    years = f"{terms.years:g} year{'' if terms.years == 1 else 's'}"
    if not terms.has_target:
        return (
            "No rate is asked for: costs per million items of machines that are never idle, their "
            f"price spread over {years}."
        )
    rate = f"{terms.rate_per_s:g} requests/s"
    what = (
        f"{mix_words(terms.mix)}: together {rate}, as one workload"
        if terms.mix
        else f"{rate} of each workload by itself"
    )
    spare = f"; spare machines: {terms.spare}" if terms.spare else ""
    limit = f"{(terms.limit_s or 0.0) * 1e3:g} ms"
    return (
        f"Asked for: {what}; {terms.percent:g} % of the requests end within {limit}, waiting "
        f"included; {years} of use{spare}."
    )


def _price(machine: PricedMachine, terms: Terms) -> str:
    """``small: 1300 EUR to buy, 65 W under load, power at 0.3 EUR/kWh``."""
    parts = []
    if machine.price is not None:
        parts.append(f"{machine.price:g} {terms.currency} to buy")
    if machine.price_per_hour is not None:
        parts.append(f"{machine.price_per_hour:g} {terms.currency} an hour")
    if machine.units_owned:
        parts.append(f"{machine.units_owned} owned already")
    if machine.idle_power_w is not None:
        parts.append(f"{machine.idle_power_w:g} W idle")
    if machine.load_power_w is not None:
        parts.append(f"{machine.load_power_w:g} W under load")
    if machine.power_price:
        parts.append(f"power at {machine.power_price:g} {terms.currency}/kWh")
    elif machine.is_rented or machine.power_price is not None:
        parts.append("power included")
    else:
        parts.append("power not counted")
    return f"{machine.name}: {', '.join(parts)}"


def _bill(tender: Tender, award: Award, terms: Terms) -> Bill:
    shown_offers = award.priced[:MACHINES]
    currency = terms.currency
    headings: tuple[str, ...] = (
        "",
        "machine",
        "how it serves",
        f"{currency}/million items",
        "items/s",
    )
    if terms.has_target:
        headings = (
            "",
            "machine",
            "how it serves",
            "machines",
            f"{currency} in {terms.years:g} years",
            f"{currency} a month",
            "requests/s each",
        )
    return Bill(
        tender=tender,
        heading=one_line(f"{tender.model} {tender.label}"),
        answer=one_line(_without_head(answer_of(tender, terms))),
        sureness=award.kind,
        headings=tuple(map(one_line, headings)),
        rows=tuple(tuple(map(one_line, _row(offer, tender, terms))) for offer in shown_offers),
        offers=shown_offers,
        left_out=len(award.priced) - len(shown_offers),
    )


def _without_head(told: Told) -> str:
    text = f"{told.before}{told.winner}{told.after}".strip()
    return f"{text[:1].upper()}{text[1:]}."


def _row(offer: Offer, tender: Tender, terms: Terms) -> tuple[str, ...]:
    variant: Economics = offer.economics
    start = (shown_mark(offer, tender), variant.machine.name, variant_label(variant.case))
    if not terms.has_target:
        million = HOLE if variant.cost_million is None else money(variant.cost_million)
        return (*start, million, span(variant.rate))
    return (
        *start,
        HOLE if variant.units is None else bare_count(variant.units),
        HOLE if variant.cost is None else money(variant.cost),
        HOLE if variant.cost_month is None else money(variant.cost_month),
        HOLE if variant.capacity is None else span(variant.capacity),
    )


def _less_certain(tenders: Sequence[Tender]) -> list[str]:
    """Name the flags of the priced numbers, and the machines that they were measured on."""
    machines: dict[str, dict[str, None]] = {}
    for tender in tenders:
        for offer in award_of(tender).priced:
            for flag in offer.economics.case.blurred_by:
                machines.setdefault(flag, {})[offer.economics.machine.name] = None
    return [
        f"The numbers of {first_names(list(names), 6)} are less certain ({flag}): "
        f"{FLAGS[flag].meaning}. {FLAGS[flag].advice}"
        for flag, names in machines.items()
    ]


def _not_proven(shown: Procurement) -> list[str]:
    """Say what would change the answer, the most important first."""
    terms = shown.terms
    several = len(shown.tenders) > 1
    texts = _less_certain(shown.tenders[:WORKLOADS])
    for tender in shown.tenders[:WORKLOADS]:
        head = f"{tender.model}: " if several else ""
        texts += [f"{head}{text}." for text in to_settle(tender, terms)]
        if award_of(tender).kind not in (Sureness.ALONE, Sureness.NONE):
            texts += [f"{head}{text}." for text in left_out_texts(tender.left_out)]
        sources = capacity_sources(tender, terms) if terms.has_target else []
        texts += [f"{head}{text}." for text in sources if len(sources) > 1]
    return list(
        dict.fromkeys(
            (*texts, *assumptions(shown.tenders, terms, per_million=not terms.has_target))
        )
    )
