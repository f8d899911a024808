"""What stands on the one printed page about a purchase: the answer, its bill, what is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.sentences import first_names
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.units import counted
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.fleet.numbers.facts import RunFacts
from pytest_ortbench.fleet.numbers.words import joined_names
from pytest_ortbench.fleet.procurement.award import Award, Sureness, award_of
from pytest_ortbench.fleet.procurement.economics import Economics
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms
from pytest_ortbench.fleet.procurement.mix import mix_words
from pytest_ortbench.fleet.procurement.ranking import Offer, Tender
from pytest_ortbench.fleet.procurement.remarks import (
    capacity_sources,
    doubt_texts,
    flagged_machines,
    to_settle,
    unstable_machines,
)
from pytest_ortbench.fleet.procurement.sentences import (
    FIRST_WORDS,
    amounts,
    answer_of,
    assumptions,
    bare_count,
    chance_words,
    is_of_one,
    lead_words,
    left_out_texts,
    money,
    shown_mark,
    span,
    tie_words,
)
from pytest_ortbench.fleet.report.measured import measured_texts, serving_words
from pytest_ortbench.fleet.report.procurement import Procurement
from pytest_ortbench.fleet.report.view import HOLE
from pytest_ortbench.report.escape import one_line

#: Workloads that have a bill on the page, and machines in each.
WORKLOADS, MACHINES = 4, 5

#: How bounds are read, below the bill that has them.
_BOUNDS = (
    "In brackets: the least and the most, with every measured number at the better, or at the "
    "worse, end of its 95 % interval at once. Prices are taken as exact."
)
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
        caption: How its bounds are read; empty without any.
        left_out: How many further machines the whole comparison has.
    """

    tender: Tender
    heading: str
    answer: str
    sureness: Sureness
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    offers: tuple[Offer, ...]
    caption: str = ""
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The page for whoever decides.

    Attributes:
        title: Its heading: the answer, where there is one.
        why: Why it is no more certain than that; empty where it is certain.
        asked: What is to be served, and for how long.
        bills: One a workload.
        more: How many further workloads the whole comparison has.
        prices: What each machine costs and draws, as the table of machines says.
        measured: The models, and what each machine is, ran and when.
        not_proven: What the answer rests on, and what was not measured.
        source: Runs and version.
    """

    title: str
    why: str
    asked: str
    bills: tuple[Bill, ...]
    more: int
    prices: tuple[str, ...]
    measured: tuple[str, ...]
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
        why=one_line(" ".join(_why(shown, awards))),
        asked=one_line(_asked(terms, len(shown.tenders))),
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
        measured=tuple(map(one_line, measured_texts(shown.tenders[:WORKLOADS], runs))),
        not_proven=tuple(map(one_line, _not_proven(shown))),
        source=one_line(f"Measured {when} on {hosts} with pytest-ortbench {VERSION}."),
    )


def _title(awards: Sequence[Award], shown: Procurement) -> str:
    """Name the machine where all workloads agree on it."""
    kinds = {award.kind for award in awards}
    names = {award.priced[0].economics.machine.name for award in awards if award.priced}
    if len(kinds) == len(names) == 1 and kinds != {Sureness.ALONE}:
        return _TITLES[next(iter(kinds))].format(name=next(iter(names)))
    if kinds == {Sureness.CLEAR, Sureness.PROBABLE} and len(names) == 1:
        return _TITLES[Sureness.PROBABLE].format(name=next(iter(names)))
    return shown.title


def _why(shown: Procurement, awards: Sequence[Award]) -> list[str]:
    """Say why the answer is no more certain, once a workload; what disturbed the numbers; and
    whether two of the machines are one.
    """
    models_of: dict[str, dict[str, None]] = {}
    for tender, award in list(zip(shown.tenders, awards, strict=True))[:WORKLOADS]:
        reason = _reason(award)
        if reason:
            models_of.setdefault(reason, {})[tender.model] = None
    every = {tender.model for tender in shown.tenders}
    texts = [
        reason if set(models) == every else f"{joined_names(list(models))}: {reason}"
        for reason, models in models_of.items()
    ]
    flags = {
        **flagged_machines(shown.tenders, severe=True),
        **flagged_machines(shown.tenders, severe=False),
    }
    unstable = unstable_machines(shown.tenders)
    named = [f"{flag} ({first_names(names)})" for flag, names in flags.items()]
    named += [f"unstable ({first_names(unstable)})"] if unstable else []
    if texts and named:
        texts.append(f"The measured numbers carry warnings: {', '.join(named)}; see below.")
    return [*texts, *shown.same_machines]


def _reason(award: Award) -> str:
    """Why it is not certain which machine to take; empty where it is, or there is no rival."""
    names = joined_names([offer.economics.machine.name for offer in award.level])
    if award.kind is Sureness.OPEN:
        return f"How much {names} serve at a time was not measured, so only bounds are known."
    if award.kind not in (Sureness.TIE, Sureness.PROBABLE):
        return ""
    return (
        f"What {names} cost is known only within bounds that overlap, because the measured numbers "
        "are uncertain."
    )


def _asked(terms: Terms, workloads: int) -> str:
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
        if workloads > 1
        else rate
    )
    spare = f"; spare machines: {terms.spare}" if terms.spare else ""
    return (
        f"Asked for: {what}; {terms.percent:g} % of the requests end within {terms.limit_text}, "
        f"waiting included; {years} of use{spare}."
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
    rows = tuple(tuple(map(one_line, _row(offer, tender, terms))) for offer in shown_offers)
    return Bill(
        tender=tender,
        heading=one_line(_workload(tender)),
        answer=one_line(_answer(tender, award, terms)),
        sureness=award.kind,
        headings=tuple(map(one_line, headings)),
        rows=rows,
        offers=shown_offers,
        caption=_BOUNDS if any("[" in cell for row in rows for cell in row) else "",
        left_out=len(award.priced) - len(shown_offers),
    )


def _workload(tender: Tender) -> str:
    """``segment.onnx, 1 item a request``."""
    model = tender.model
    sizes = [part for part in tender.label.split("/") if part != f"b{tender.batch}"]
    if tender.variants and not tender.variants[0].parts:
        model = tender.variants[0].case.model_file or model
        sizes.append(f"{counted(tender.batch, 'item')} a request")
    return ", ".join((model, *sizes))


def _answer(tender: Tender, award: Award, terms: Terms) -> str:
    """The answer for whoever decides; where nothing is decided, the bill alone has the numbers."""
    names = joined_names([offer.economics.machine.name for offer in award.level])
    if award.kind is Sureness.TIE:
        return f"Not decided between {names}{tie_words(award, tender)}."
    if award.kind is Sureness.OPEN:
        return f"Not decided between {names}, of which only bounds are known."
    if award.kind is Sureness.ALONE and is_of_one(tender, terms):
        return f"{names}: {amounts(award.priced[0].economics, tender.deciding, terms)}."
    if award.best is not None:
        first = award.best.economics
        is_probable = award.kind is Sureness.PROBABLE and award.probability is not None
        chance = f" ({chance_words(award.probability or 0.0)} probable)" if is_probable else ""
        word = FIRST_WORDS[tender.deciding]
        return (
            f"{word[:1].upper()}{word[1:]}{chance}: {first.machine.name} "
            f"({serving_words(first.case)}), {amounts(first, tender.deciding, terms)}"
            f"{lead_words(tender, award)}."
        )
    return _without_head(answer_of(tender, terms, describe=serving_words))


def _without_head(told: Told) -> str:
    text = f"{told.before}{told.winner}{told.after}".strip()
    return f"{text[:1].upper()}{text[1:]}."


def _row(offer: Offer, tender: Tender, terms: Terms) -> tuple[str, ...]:
    variant: Economics = offer.economics
    start = (shown_mark(offer, tender), variant.machine.name, serving_words(variant.case))
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
    return [
        f"The numbers of {first_names(names, 6)} are less certain ({flag}): {FLAGS[flag].meaning}."
        for flag, names in flagged_machines(tenders, severe=True).items()
    ] + doubt_texts(tenders, advise=False)


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
            (
                *texts,
                *assumptions(shown.tenders, terms, per_million=not terms.has_target, bounds=False),
            )
        )
    )
