"""What to buy, in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pytest_ortbench.analysis.sentences import first_names, tie_text
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.core.judgement import DRAWN_INPUTS, REAL_INPUTS_ADVICE
from pytest_ortbench.core.units import significant
from pytest_ortbench.fleet.numbers.matrix import variant_label
from pytest_ortbench.fleet.numbers.sentences import ONE_UNIT, UNIT_SPREAD
from pytest_ortbench.fleet.procurement.economics import Economics
from pytest_ortbench.fleet.procurement.figure import Figure
from pytest_ortbench.fleet.procurement.machines import Terms
from pytest_ortbench.fleet.procurement.parallel import counts_to_measure
from pytest_ortbench.fleet.procurement.ranking import Offer, Tender, figure_of


def cheapest_machines(tenders: Sequence[Tender], terms: Terms) -> list[Told]:
    """Say for each workload which machine is cheapest, how many of it, and what it ties with."""
    sentences = [
        sentence
        for tender in tenders
        for sentence in (_tender(tender, terms), *_not_yet(tender, terms))
    ]
    return sentences or [Told("no machine of the table has a case that can be ranked")]


def _tender(tender: Tender, terms: Terms) -> Told:
    head = f"{tender.model} {tender.label}{target(tender, terms)}: "
    best = next((offer for offer in tender.offers if not offer.reason), None)
    if best is None:
        reasons = "; ".join(
            f"{offer.economics.machine.name}: {offer.reason}" for offer in tender.offers[:3]
        )
        return Told(f"no machine can be chosen: {reasons}", about=head)
    figure = figure_of(best.economics, tender.deciding)
    assert figure is not None
    undecided = [offer for offer in tender.offers if offer.mark == "open"]
    if undecided:
        return _undecided(undecided, tender, terms, head)
    word = {"cost": "cheapest", "cost_million": "cheapest per item", "rate": "fastest"}
    winner = f"{best.economics.machine.name} with {variant_label(best.economics.case)}"
    text = f", {amounts(best.economics, tender.deciding, terms)}"
    ties = [offer.economics.machine.name for offer in tender.offers if offer.mark == "tie"]
    text += tie_text(ties) + _lead(tender, best)
    text += _not_ranked(tender)
    sure = "at both bounds " if figure.is_open else ""
    return Told(f"{word[tender.deciding]} {sure}", winner, text, about=head, lead=True)


def _not_ranked(tender: Tender) -> str:
    without = [offer.economics.machine.name for offer in tender.offers if offer.reason]
    return f"; not ranked: {first_names(without)}" if without else ""


def _not_yet(tender: Tender, terms: Terms) -> list[Told]:
    """Say which variant would go before the offers, had real inputs judged it."""
    unproven = tender.unproven
    if unproven is None:
        return []
    return [
        Told(
            "not recommended yet: ",
            f"{unproven.machine.name} with {variant_label(unproven.case)}",
            f", {amounts(unproven, tender.deciding, terms)}, judged on {DRAWN_INPUTS} alone; "
            f"{REAL_INPUTS_ADVICE}",
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
    return Told(text + _not_ranked(tender), about=head)


def open_machines(tender: Tender) -> dict[str, Economics]:
    """Return a variant of each machine of which it is not known what it serves at a time."""
    machines: dict[str, Economics] = {}
    for variant in tender.variants:
        if variant.queues.is_open:
            machines.setdefault(variant.machine.name, variant)
    return machines


def served_text(variant: Economics) -> str:
    """Write how many requests are served at a time: ``4``, ``1 to 16 (bounds)``."""
    served = variant.queues
    if not served.is_open:
        return str(served.measured)
    return f"{served.measured} {f'to {served.most}' if served.most else 'or more'} (bounds)"


def how_to_settle(variant: Economics, terms: Terms) -> str:
    """Say which measurement would tell what a machine serves at a time."""
    counts = counts_to_measure(variant.case.cpus)
    load = f" (or --ort-load=peak:p99:{terms.p99_s * 1e3:g}ms)" if terms.p99_s else ""
    return f"--ort-processes={counts}{load}"


def target(tender: Tender, terms: Terms) -> str:
    """Return the target in words; empty without one."""
    if terms.rate_per_s is None or terms.p99_s is None:
        return ""
    items = f" of {tender.batch} items" if tender.batch > 1 else ""
    return f", {terms.rate_per_s:g} requests/s{items} with p99 ≤ {terms.p99_s * 1e3:g} ms"


def amounts(variant: Economics, deciding: str, terms: Terms) -> str:
    """Write the figure that decides, with its bounds."""
    if deciding == "cost" and variant.cost is not None and variant.units is not None:
        years = "year" if terms.years == 1 else "years"
        price = f"{money(variant.cost)} {terms.currency} over {terms.years:g} {years}"
        return f"{count(variant.units)}, {price}"
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
        return f"{units.value:.0f} machines or more"
    if low == high:
        return f"{low:.0f} machine{'s' if low != 1 else ''}"
    some = "machine" if units.value == 1 else "machines"
    return f"{units.value:.0f} {some} ({low:.0f} to {high:.0f})"


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


def _lead(tender: Tender, best: Offer) -> str:
    """How far ahead of the first that can be told from it, against what units differ by."""
    figure = figure_of(best.economics, tender.deciding)
    rest = [
        (other, offer.economics.machine.name)
        for offer in tender.offers
        if offer is not best
        and offer.mark != "tie"
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
    tenders: Sequence[Tender], terms: Terms, runs_without_price: Sequence[str]
) -> list[str]:
    """Say what the figures assume."""
    sentences = [ONE_UNIT]
    queued = any(variant.capacity_source == "queue" for variant in _all(tenders))
    if queued:
        sentences.append(
            "Machines needed: no load was measured, so the number is computed by queueing theory "
            "(M/G/1) from the measured service times. Requests arrive at random, and each is "
            "sent at random to one machine and there to one of the processes or callers that "
            "were measured together, which serves them in order. Measure a load before you "
            "buy."
        )
    if any(variant.queues.is_open for variant in _all(tenders)):
        sentences.append(
            "Bounds (… to …): one bound takes the machine as one queue, the other as one queue "
            "per CPU, none of which slows another. The true value between them was not "
            "measured, so nothing is recommended where it would matter."
        )
    sentences.append(
        "Cost per million items: for a machine that is never idle, with its price spread over "
        f"{terms.years:g} years. Its bounds take all measured numbers at the ends of their 95 "
        "% intervals at once; prices are taken as exact."
    )
    if terms.rented_with_power:
        names = first_names([machine.name for machine in terms.rented_with_power], 6)
        sentences.append(
            f"The rent of {names} is assumed to include power: the power_price of the whole table "
            "applies to bought machines only. If rent and power are paid separately, write "
            "power_price for that machine."
        )
    if terms.bought_without_power:
        names = first_names([machine.name for machine in terms.bought_without_power], 6)
        sentences.append(
            f"Without power_price, the cost of {names} does not include power, but the rent of "
            "others does; so it is a lower bound. Write power_price (0: the price includes "
            "power)."
        )
    labels = {variant.power.source for variant in _all(tenders) if variant.power is not None}
    sentences += [f"Power is {source}." for source in sorted(labels)]
    if not terms.has_target:
        sentences.append(
            "No target is set: --rate and --p99 add the machines needed and the cost over the "
            "years."
        )
    if runs_without_price:
        sentences.append(
            f"Missing from the table of machines: {first_names(list(runs_without_price), 6)}."
        )
    return sentences


def _all(tenders: Sequence[Tender]) -> list[Economics]:
    return [variant for tender in tenders for variant in tender.variants]
