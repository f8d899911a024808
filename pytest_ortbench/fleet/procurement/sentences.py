"""What to buy, in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from pytest_ortbench.analysis.proof import lack_words
from pytest_ortbench.analysis.sentences import first_names
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.core.units import significant
from pytest_ortbench.fleet.numbers.facts import CaseFacts
from pytest_ortbench.fleet.numbers.matrix import variant_label
from pytest_ortbench.fleet.numbers.sentences import ONE_UNIT, UNIT_SPREAD
from pytest_ortbench.fleet.procurement.award import Award, Sureness, award_of
from pytest_ortbench.fleet.procurement.economics import Economics
from pytest_ortbench.fleet.procurement.entrants import Absence, LeftOut
from pytest_ortbench.fleet.procurement.figure import Figure
from pytest_ortbench.fleet.procurement.load_advice import load_to_measure
from pytest_ortbench.fleet.procurement.machines import Terms
from pytest_ortbench.fleet.procurement.ranking import Offer, Tender, figure_of

#: What the first machine is called, by what ranks them.
FIRST_WORDS = {"cost": "cheapest", "cost_million": "cheapest per item", "rate": "fastest"}


def cheapest_machines(tenders: Sequence[Tender], terms: Terms) -> list[Told]:
    """Say for each workload which machine is cheapest, how many of it, and what it ties with."""
    sentences = [
        sentence
        for tender in tenders
        for sentence in (answer_of(tender, terms), *not_yet(tender, terms))
    ]
    return sentences or [Told("no machine of the table has a case", lead=True)]


def answer_of(
    tender: Tender, terms: Terms, *, describe: Callable[[CaseFacts], str] = variant_label
) -> Told:
    """Say for a workload which machine is cheapest, and how sure that is.

    Args:
        tender: The offers.
        terms: Machines and target.
        describe: Writes how a case does its work; by default as ids have it.
    """
    head = f"{tender.model} {tender.label}{target(tender, terms)}: "
    award = award_of(tender)
    left_out = _left_out(tender, every=award.kind in (Sureness.ALONE, Sureness.NONE))
    if award.kind is Sureness.NONE:
        return Told(f"no machine could be priced{left_out}", about=head, lead=True)
    best = award.priced[0]
    name = best.economics.machine.name
    if award.kind is Sureness.ALONE:
        words = offer_words(best, tender, terms, describe)
        start = f"{name} " if is_of_one(tender, terms) else f"only {name} could be priced: "
        text = f"{start}{words}{left_out}"
        return Told(text, about=head, lead=True)
    if award.kind is Sureness.OPEN:
        return _undecided(award.level, tender, terms, head)
    if award.kind is Sureness.TIE:
        several = "; ".join(
            f"{offer.economics.machine.name} {offer_words(offer, tender, terms, describe)}"
            for offer in award.level[:3]
        )
        more = f"; and {len(award.level) - 3} more" if len(award.level) > 3 else ""
        text = f"no clear {FIRST_WORDS[tender.deciding]}: {several}{more}"
        text += f"{tie_words(award, tender)}{left_out}"
        return Told(text, about=head, lead=True)
    text = f" {offer_words(best, tender, terms, describe)}"
    word = FIRST_WORDS[tender.deciding]
    if award.probability is not None:
        others = first_names([offer.economics.machine.name for offer in award.level[1:]])
        word = "probably"
        text += f"; not proven ({chance_words(award.probability)} probable): {others} may be "
        text += {"rate": "faster"}.get(tender.deciding, "cheaper")
    text += lead_words(tender, award)
    figure = figure_of(best.economics, tender.deciding)
    sure = "at both bounds " if figure is not None and figure.is_open else ""
    return Told(f"{word} {sure}", name, f"{text}{left_out}", about=head, lead=True)


def is_of_one(tender: Tender, terms: Terms) -> bool:
    """Whether one machine alone was asked about, so that it has no rival that was left out."""
    return len(terms.machines) == 1 and not tender.left_out


def offer_words(
    offer: Offer,
    tender: Tender,
    terms: Terms,
    describe: Callable[[CaseFacts], str] = variant_label,
) -> str:
    """Write what an offer is: ``with native/cpu, 2 machines, 4000 EUR over 3 years``.

    Args:
        offer: The offer.
        tender: What it is for.
        terms: Machines and target.
        describe: Writes how a case does its work; by default as ids have it.
    """
    variant = offer.economics
    return f"with {describe(variant.case)}, {amounts(variant, tender.deciding, terms)}"


def tie_words(award: Award, tender: Tender) -> str:
    """``; small is cheaper with a probability of 62 %``; empty where that is not known."""
    # Of many that may be better, the bound says nothing.
    if award.kind is not Sureness.TIE or award.probability is None or award.probability < 0.5:
        return ""
    name = award.level[0].economics.machine.name
    least = "at least " if len(award.level) > 2 else ""
    word = {"rate": "faster"}.get(tender.deciding, "cheaper")
    return f"; {name} is {word} with a probability of {least}{chance_words(award.probability)}"


def shown_mark(offer: Offer, tender: Tender) -> str:
    """Return the mark of an offer for people.

    ``bounds`` where these leave it open; ``tie`` also for the first of offers that can't be told
    apart, since it is no better than they; ``probably`` for it, and ``possibly`` for the others,
    where it is probably the best.
    """
    if offer.mark not in ("best", "tie"):
        return "bounds" if offer.mark == "open" else offer.mark
    kind = award_of(tender).kind
    if kind is Sureness.PROBABLE:
        return "probably" if offer.mark == "best" else "possibly"
    return "tie" if kind is Sureness.TIE else offer.mark


def chance_words(probability: float) -> str:
    """``97 %``: no probability of a rule of thumb is nearer to 1 than 99 %."""
    return f"{min(99, math.floor(100 * probability))} %"


def _left_out(tender: Tender, *, every: bool) -> str:
    """Say which machines were left out and why.

    Args:
        tender: The offers.
        every: Whether to name those without a run, too, which the notes name in any case.
    """
    entries = [entry for entry in tender.left_out if every or entry.absence is not Absence.NO_RUN]
    texts = left_out_texts(entries)
    more = f"; {len(texts) - 3} more reasons below" if len(texts) > 3 else ""
    return "".join(f"; {text}" for text in texts[:3]) + more


def left_out_texts(entries: Sequence[LeftOut]) -> list[str]:
    """Say why machines were left out: ``a, b were left out: …``, once a reason."""
    names: dict[str, list[str]] = {}
    for entry in entries:
        names.setdefault(entry.reason, []).append(entry.machine)
    return [
        f"{first_names(machines)} {'was' if len(machines) == 1 else 'were'} left out: {reason}"
        for reason, machines in names.items()
    ]


def _basis(case: CaseFacts) -> str:
    """What its answers were judged on so far, and what to judge them on."""
    if case.needs is None:
        return ""
    return lack_words(case.needs, on_calibration=case.on_calibration)


def not_yet(tender: Tender, terms: Terms) -> list[Told]:
    """Say which variant would go before the offers, had real inputs or labels judged it."""
    unproven = tender.unproven
    if unproven is None:
        return []
    return [
        Told(
            "not recommended yet: ",
            f"{unproven.machine.name} with {variant_label(unproven.case)}",
            f", {amounts(unproven, tender.deciding, terms)}, {_basis(unproven.case)}",
            about=f"{tender.model} {tender.label}: ",
        )
    ]


def _undecided(offers: Sequence[Offer], tender: Tender, terms: Terms, head: str) -> Told:
    """Give the bounds where they decide nothing, and say what would."""
    bounds = "; ".join(
        f"{offer.economics.machine.name} {amounts(offer.economics, tender.deciding, terms)}"
        for offer in offers[:3]
    )
    more = f"; and {len(offers) - 3} more" if len(offers) > 3 else ""
    names = [
        offer.economics.machine.name
        for offer in offers
        if (figure := figure_of(offer.economics, tender.deciding)) is not None and figure.is_open
    ]
    of = f" of {first_names(names)}" if names else ""
    text = f"no recommendation, since only bounds are known{of}: {bounds}{more}"
    return Told(text + _left_out(tender, every=False), about=head, lead=True)


def served_text(variant: Economics) -> str:
    """Write how many requests are served at a time: ``4``, ``1 to 16 (bounds)``."""
    served = variant.queues
    if not served.is_open:
        return str(served.measured)
    return f"{served.measured} {f'to {served.most}' if served.most else 'or more'} (bounds)"


def target(tender: Tender, terms: Terms) -> str:
    """Return the target in words; empty without one."""
    if terms.rate_per_s is None or terms.limit_s is None:
        return ""
    items = f" of {tender.batch} items" if tender.batch > 1 else ""
    limit = f"{terms.percentile} ≤ {terms.limit_text}"
    return f", {terms.rate_per_s:g} requests/s{items} with {limit}"


def amounts(variant: Economics, deciding: str, terms: Terms) -> str:
    """Write the figure that decides, with its bounds."""
    if deciding == "cost" and variant.cost is not None and variant.units is not None:
        years = "year" if terms.years == 1 else "years"
        price = f"{money(variant.cost)} {terms.currency} over {terms.years:g} {years}"
        monthly = variant.cost_month
        is_known = monthly is not None and not monthly.is_open and math.isfinite(monthly.value)
        month = f" ({money(monthly.exact)} a month)" if monthly and is_known else ""
        return f"{count(variant.units)}, {price}{month}"
    if deciding == "cost_million" and variant.cost_million is not None:
        return f"{money(variant.cost_million)} {terms.currency} per million items at full load"
    return f"{span(variant.rate)} items/s"


def count(units: Figure) -> str:
    """``2 machines``, or ``2 machines (2 to 3)`` where the uncertainty spans both."""
    low, high = units.low, units.high
    if units.is_open:
        if math.isinf(high):
            return f"{low:.0f} machine{'s' if low != 1 else ''} or more"
        return (
            count(replace(units, is_open=False))
            if low == high
            else f"{low:.0f} to {high:.0f} machines"
        )
    if math.isinf(high):
        # At the slow end of the intervals no number keeps the limit.
        value = "any number of" if math.isinf(units.value) else f"{units.value:.0f}"
        return f"{value} machines ({low:.0f} or more)"
    if low == high:
        return f"{low:.0f} machine{'s' if low != 1 else ''}"
    some = "machine" if units.value == 1 else "machines"
    return f"{units.value:.0f} {some} ({low:.0f} to {high:.0f})"


def bare_count(units: Figure) -> str:
    """``2 (1 to 7)``: the count alone."""
    return count(units).replace(" machines", "").replace(" machine", "")


def money(figure: Figure) -> str:
    """``8450 [8300, 8600]``: to four digits, whole from a hundred on."""

    def amount(value: float) -> str:
        if math.isinf(value):
            return "∞"
        return f"{value:.0f}" if value >= 1000 else significant(value, 3)

    value, low, high = (amount(end) for end in (figure.value, figure.low, figure.high))
    if figure.is_open and math.isinf(figure.high):
        return f"{low} or more"
    if figure.is_open and low != high:
        return f"{low} to {high}"
    # Bounds that differ beyond the digits shown say nothing.
    return value if value == low == high else f"{value} [{low}, {high}]"


def span(figure: Figure, digits: int = 3) -> str:
    """``12.3 [12.1, 12.5]``."""
    text = significant(figure.value, digits)
    if figure.low == figure.high:
        return text
    high = "∞" if math.isinf(figure.high) else significant(figure.high, digits)
    if figure.is_open:
        return f"{significant(figure.low, digits)} to {high}"
    return f"{text} [{significant(figure.low, digits)}, {high}]"


def lead_words(tender: Tender, award: Award) -> str:
    """How far ahead of the first that can be told from it, against what units differ by."""
    figure = figure_of(award.priced[0].economics, tender.deciding)
    rest = [
        (other, offer.economics.machine.name)
        for offer in award.priced
        if offer not in award.level
        and (other := figure_of(offer.economics, tender.deciding)) is not None
    ]
    if not rest or figure is None or not figure.value:
        return ""
    other, name = rest[0]
    if math.isinf(other.value) or not other.value:
        return ""
    ratio = figure.value / other.value
    lead = abs(ratio - 1) if tender.deciding == "rate" else 1 - ratio
    text = f"; ×{significant(ratio)} of {name}"
    mean, largest = UNIT_SPREAD
    if lead < mean:
        return f"{text}; units of one hardware model differ by more than that on average (8 %)"
    if lead < largest:
        return f"{text}; units of one hardware model have been measured to differ by up to 22 %"
    return text


def assumptions(
    tenders: Sequence[Tender], terms: Terms, *, per_million: bool = True, bounds: bool = True
) -> list[str]:
    """Say what the figures assume.

    Args:
        tenders: The offers.
        terms: Machines and target.
        per_million: Whether the cost per million items is shown.
        bounds: Whether to say how bounds are read.
    """
    sentences = [ONE_UNIT]
    queued = machines_by_source(tenders).get("queue", [])
    if queued:
        names = "" if len(queued) == len(_machines(tenders)) else f" of {first_names(queued, 6)}"
        sentences.append(
            f"Machines needed{names}: computed by queueing theory (M/G/1) from the measured "
            "service times. Requests arrive at random, and each is sent at random to one machine "
            "and there to one of the processes or callers that were measured together, which "
            f"serves them in order. {load_to_measure(tenders, terms)}"
        )
    if terms.has_target:
        sentences.append(
            f"Spare machines included: {terms.spare}."
            if terms.spare
            else "No spare machine is included; --spare=1 adds one in case a machine fails."
        )
    if any(variant.queues.is_open for variant in _all(tenders)):
        sentences.append(
            "Bounds (… to …): how many requests a machine serves at a time was not measured. One "
            "bound assumes one request at a time, the other one on each CPU, with no CPU slowed by "
            "another. Where the answer depends on it, nothing is recommended."
        )
    if per_million:
        sentences.append(
            "Cost per million items: for a machine that is never idle, with its price spread over "
            f"{terms.years:g} years."
        )
    if bounds:
        sentences.append(
            "Intervals [… , …]: every measured number at the worse, or at the better, end of its "
            "95 % interval at once. Prices are taken as exact."
        )
    offered_names = {variant.machine.name for variant in _all(tenders)}
    rented = [machine.name for machine in terms.rented_with_power if machine.name in offered_names]
    if rented:
        sentences.append(
            f"The rent of {first_names(rented, 6)} is assumed to include power: the power_price of "
            "the whole table applies to bought machines only. If rent and power are paid "
            "separately, write power_price for that machine."
        )
    bought = [machine.name for machine in terms.without_power if machine.name in offered_names]
    if bought:
        beside = ", but the rent of others does" if terms.bought_without_power else ""
        sentences.append(
            f"Without power_price, the cost of {first_names(bought, 6)} does not include "
            f"power{beside}; so it is a lower bound. Write power_price (0: the price includes "
            "power)."
        )
    labels = {variant.power.source for variant in _all(tenders) if variant.power is not None}
    sentences += [f"Power: {source}." for source in sorted(labels)]
    if not terms.has_target:
        sentences.append(
            "No target is set: --rate and --p99 add the machines needed and the cost over the "
            "years."
        )
    return sentences


def _machines(tenders: Sequence[Tender]) -> list[str]:
    """Machines with an offer."""
    return list(
        dict.fromkeys(
            offer.economics.machine.name
            for tender in tenders
            for offer in tender.offers
            if not offer.reason
        )
    )


def machines_by_source(tenders: Sequence[Tender]) -> dict[str, list[str]]:
    """Machines with an offer, by how it is known what they serve."""
    names: dict[str, dict[str, None]] = {}
    for tender in tenders:
        for offer in tender.offers:
            variant = offer.economics
            if not offer.reason and variant.capacity_source:
                names.setdefault(variant.capacity_source, {})[variant.machine.name] = None
    return {source: list(machines) for source, machines in names.items()}


def _all(tenders: Sequence[Tender]) -> list[Economics]:
    return [variant for tender in tenders for variant in tender.variants]
