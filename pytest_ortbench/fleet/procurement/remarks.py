"""What a bill rests on, in plain sentences: loads, ways passed over, what would settle it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_ortbench.analysis.sentences import first_names
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.interval import is_unstable
from pytest_ortbench.core.units import format_amount, significant
from pytest_ortbench.fleet.numbers.facts import CaseFacts, ServedRate
from pytest_ortbench.fleet.numbers.matrix import variant_label
from pytest_ortbench.fleet.procurement.award import Award, Sureness, award_of
from pytest_ortbench.fleet.procurement.choice import Lead, PassedOver, passed_over
from pytest_ortbench.fleet.procurement.economics import CAPACITY_SOURCES, Economics
from pytest_ortbench.fleet.procurement.figure import Figure
from pytest_ortbench.fleet.procurement.machines import Terms
from pytest_ortbench.fleet.procurement.parallel import counts_to_measure
from pytest_ortbench.fleet.procurement.ranking import Offer, Tender, figure_of
from pytest_ortbench.fleet.procurement.sentences import machines_by_source, money, span


def capacity_sources(tender: Tender, terms: Terms) -> list[str]:
    """Say of each machine what its number of machines comes from, and which load is not used."""
    by_source = machines_by_source([tender])
    texts = [
        f"Machines needed of {', '.join(names)}: from {CAPACITY_SOURCES[source]}"
        for source, names in by_source.items()
    ]
    return texts + [
        text for name in by_source.get("queue", []) for text in _unused_loads(name, tender, terms)
    ]


def _unused_loads(name: str, tender: Tender, terms: Terms) -> list[str]:
    """Say which measured load of a machine does not decide, and why."""
    texts: dict[str, None] = {}
    for variant in tender.variants:
        if variant.machine.name != name:
            continue
        for case in variant.parts or (variant.case,):
            for load in case.served:
                texts[_unused(name, case, load, terms, is_mix=bool(variant.parts))] = None
    return list(texts)


def _unused(name: str, case: CaseFacts, load: ServedRate, terms: Terms, *, is_mix: bool) -> str:
    limit_s, percentile = terms.limit_s or 0.0, terms.percentile
    rate = f"{significant(load.rate_per_s)} requests/s"
    limit = f"p{load.percent:g} ≤ {load.latency_s * 1e3:g} ms"
    what = f"{name}: the load of {case.model} alone that was measured ({rate} with {limit})"
    if is_mix and load.searched and load.latency_s <= limit_s:
        return (
            f"{what} is used as an upper bound alone, since the other models were not put under "
            f"load there; measure a peak of every model of the mix ({terms.load_option}), and the "
            "bill is computed from these"
        )
    if load.percent < terms.percent:
        return f"{what} is not used: it says nothing of the {percentile}"
    if load.latency_s > limit_s:
        return f"{what} is not used: its limit is above {terms.limit_text}"
    if not load.searched:
        return (
            f"{what} is not used: it says nothing of higher rates; "
            f"--ort-load=peak:{percentile}:… does"
        )
    return f"{what} is not used: another way to serve costs less"


def choices(tender: Tender) -> list[str]:
    """Say why a machine does not serve in the way with the most throughput, or least latency."""
    return [_choice(passed, tender) for passed in passed_over(tender)]


def _choice(passed: PassedOver, tender: Tender) -> str:
    taken, other = passed.taken, passed.other
    name, label = taken.machine.name, variant_label(taken.case)
    if passed.lead is Lead.THROUGHPUT:
        ahead = (
            f"has more throughput ({significant(other.rate.value)} against "
            f"{significant(taken.rate.value)} items/s)"
        )
    else:
        medians = [
            format_amount(variant.case.quantities["latency_p50"].value, "s")
            for variant in (other, taken)
        ]
        ahead = f"has the lower p50 ({' against '.join(medians)})"
    able = [variant.capacity for variant in (other, taken)]
    if None not in able and tender.deciding == "cost":
        kept = " against ".join(span(figure) for figure in able if figure is not None)
        units = [_bare(variant.units) for variant in (other, taken) if variant.units is not None]
        why = f"keeps the limit at {kept} requests/s each: {' machines against '.join(units)}"
    else:
        figures = [figure_of(variant, tender.deciding) for variant in (other, taken)]
        why = "costs " + " against ".join(money(figure) for figure in figures if figure)
    sure = "" if passed.is_certain else " (by the estimates; their intervals overlap)"
    return f"{name} serves with {label}: {variant_label(other.case)} {ahead}, but {why}{sure}"


def _bare(units: Figure) -> str:
    return "any number of" if math.isinf(units.value) else f"{units.value:.0f}"


def to_settle(tender: Tender, terms: Terms) -> list[str]:
    """Say which measurement would decide, where the offers leave it open."""
    award = award_of(tender)
    texts = _parallel_to_measure(tender, terms)
    if award.kind in (Sureness.PROBABLE, Sureness.TIE):
        texts.append(_again(award, tender))
    return texts


def _parallel_to_measure(tender: Tender, terms: Terms) -> list[str]:
    settled: dict[str, list[str]] = {}
    for name, variant in open_machines(tender).items():
        settled.setdefault(how_to_settle(variant, terms), []).append(name)
    return [
        f"{', '.join(names)}: only bounds are known, because parallel throughput was not measured; "
        f"{how} measures it"
        for how, names in settled.items()
    ]


def _again(award: Award, tender: Tender) -> str:
    """Name the machine whose bounds are the widest, why, and what narrows them."""

    def width(offer: Offer) -> float:
        figure = figure_of(offer.economics, tender.deciding)
        return figure.high / figure.low if figure is not None and figure.low > 0 else math.inf

    widest = max(award.level, key=width)
    names = first_names([offer.economics.machine.name for offer in award.level])
    flags = widest.economics.case.blurred_by
    text = (
        f"Between {names} nothing is proven, since their intervals overlap. That of "
        f"{widest.economics.machine.name} is the widest"
    )
    if flags:
        return (
            f"{text}, and its numbers are flagged {', '.join(flags)}: measure it again without "
            "what disturbed them, on an idle machine. More workers and more time alone do not "
            "narrow it"
        )
    return (
        f"{text}: measure it again with twice the workers (--ort-workers) and twice the time "
        "(--ort-time)"
    )


def flagged_machines(tenders: Sequence[Tender], *, severe: bool) -> dict[str, list[str]]:
    """Return the flags of the numbers that are priced, and the machines that they are of.

    Args:
        tenders: The offers.
        severe: Whether those are meant that widen the bounds, or those that only inform.
    """
    machines: dict[str, dict[str, None]] = {}
    for tender in tenders:
        for offer in award_of(tender).priced:
            case = offer.economics.case
            for flag in case.blurred_by if severe else case.noted:
                machines.setdefault(flag, {})[offer.economics.machine.name] = None
    return {flag: list(names) for flag, names in machines.items()}


def unstable_machines(tenders: Sequence[Tender]) -> list[str]:
    """Return the machines with a priced number whose interval is wider than the number."""
    names = {
        offer.economics.machine.name: None
        for tender in tenders
        for offer in award_of(tender).priced
        for metric in ("latency_p50", "throughput")
        if (quantity := offer.economics.case.quantities.get(metric)) is not None
        and is_unstable(quantity.value, quantity.low, quantity.high)
    }
    return list(names)


def doubt_texts(tenders: Sequence[Tender], *, advise: bool = True) -> list[str]:
    """Say what flags of the priced numbers mean that only inform, and which numbers are unstable.

    Args:
        tenders: The offers.
        advise: Whether to say what mends it, too.
    """
    texts = [
        f"Noted of the numbers of {first_names(names, 6)} ({flag}): {FLAGS[flag].meaning}."
        + (f" {FLAGS[flag].advice}" if advise else "")
        for flag, names in flagged_machines(tenders, severe=False).items()
    ]
    unstable = unstable_machines(tenders)
    if unstable:
        texts.append(
            f"Numbers of {first_names(unstable, 6)} are unstable: the 95 % interval of the median "
            "latency or of the throughput is wider than the number itself, and the two need not "
            "fit together."
        )
    return texts


def open_machines(tender: Tender) -> dict[str, Economics]:
    """Return a variant of each machine of which it is not known what it serves at a time."""
    machines: dict[str, Economics] = {}
    for variant in tender.variants:
        if variant.queues.is_open:
            machines.setdefault(variant.machine.name, variant)
    return machines


def how_to_settle(variant: Economics, terms: Terms) -> str:
    """Say which measurement would tell what a machine serves at a time."""
    counts = counts_to_measure(variant.case.cpus)
    load = ""
    if terms.limit_s:
        load = f" (or {terms.load_option})"
    return f"--ort-processes={counts}{load}"
