"""What one variant on one machine costs: power, energy, money, machines needed, each with bounds.

Every figure is a monotone function of measured numbers, so its bounds are the function at the ends
of their intervals: the best case of all at once, and the worst. Prices are taken as exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pytest_ortbench.fleet.numbers.facts import CaseFacts, ServedRate
from pytest_ortbench.fleet.numbers.ratios import interval
from pytest_ortbench.fleet.procurement.figure import Figure, divided, measured_figure
from pytest_ortbench.fleet.procurement.machines import HOURS_A_YEAR, PricedMachine, Terms
from pytest_ortbench.fleet.procurement.mix import as_one, busy_shares
from pytest_ortbench.fleet.procurement.parallel import Queues, at_a_time, family, queues, ways
from pytest_ortbench.fleet.procurement.power import Power, power_of
from pytest_ortbench.fleet.procurement.queueing import capacity

#: How a capacity may be found.
CAPACITY_SOURCES: dict[str, str] = {
    "queue": "queueing of measured service times (M/G/1)",
    "arrivals": "a load measured with random arrivals (MLPerf's load generator)",
}

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Economics:
    """One variant on one machine.

    Attributes:
        machine: The machine.
        case: The variant.
        rate: Items a second at full load.
        power: What it draws; ``None`` with the reason in ``missing``.
        per_joule: Items per joule, which is items a second per watt.
        per_price: Items a second per unit of the price.
        per_money_hour: Items per unit of money at the price per hour.
        kwh_per_million: Kilowatt-hours per million items at full load.
        cost_million: Money per million items at full load, the price spread over the years.
        capacity: Requests a second that one machine serves in time.
        capacity_source: A key of :data:`CAPACITY_SOURCES`; empty without a capacity.
        units: Machines needed for the rate.
        cost: Money over the years for the rate.
        cost_month: The same for a month: all of it ÷ the months of these years.
        missing: Why a figure is not known, by its name.
        queues: Requests that are served at a time.
        alone: The case in one process, of which the power was measured.
        busy: Share of the busy time that each model of a mix takes.
        parts: The case of each model of a mix.
    """

    machine: PricedMachine
    case: CaseFacts
    rate: Figure
    power: Power | None = None
    per_joule: Figure | None = None
    per_price: Figure | None = None
    per_money_hour: Figure | None = None
    kwh_per_million: Figure | None = None
    cost_million: Figure | None = None
    capacity: Figure | None = None
    capacity_source: str = ""
    units: Figure | None = None
    cost: Figure | None = None
    cost_month: Figure | None = None
    missing: dict[str, str]
    queues: Queues = field(default_factory=Queues)
    alone: CaseFacts | None = None
    busy: tuple[float, ...] = ()
    parts: tuple[CaseFacts, ...] = ()

    @property
    def capacity_source_text(self) -> str:
        """How the capacity was found, for people; empty without one."""
        return CAPACITY_SOURCES.get(self.capacity_source, "")


def variants_of(
    cases: Sequence[CaseFacts], machine: PricedMachine, terms: Terms
) -> list[Economics]:
    """Work out what every variant of a workload costs on a machine, in each way of serving it.

    Args:
        cases: Cases of one machine that may be ranked.
        machine: The machine.
        terms: Years and target.
    """
    families: dict[tuple[object, ...], list[tuple[CaseFacts, CaseFacts]]] = {}
    for case in cases:
        families.setdefault(family(case), []).extend((case, way) for way in ways(case))
    made = []
    for pairs in families.values():
        members = [way for _, way in pairs]
        for case, way in pairs:
            variant = work_out(way, machine, terms, served=queues(way, members), alone=case)
            if variant is not None:
                made.append(variant)
    return made


def mixes_of(
    parts: Sequence[Sequence[CaseFacts]], machine: PricedMachine, terms: Terms
) -> list[Economics]:
    """Work out what a machine costs for all models of a mix, for each number served at a time.

    Args:
        parts: Cases of this machine that may be ranked, for each part of the mix.
        machine: The machine.
        terms: With the mix.
    """
    by_count: list[dict[int, list[Economics]]] = []
    for cases, part in zip(parts, terms.mix, strict=True):
        ways_of: dict[int, list[Economics]] = {}
        usable = [case for case in cases if case.needs is None] or cases
        for variant in variants_of(usable, machine, replace(terms, rate_per_s=part.rate_per_s)):
            ways_of.setdefault(variant.queues.measured, []).append(variant)
        by_count.append(ways_of)
    made = []
    for count in sorted(set.intersection(*map(set, by_count))):
        together = _best_together([ways_of[count] for ways_of in by_count], machine, terms)
        if together is not None:
            made.append(together)
    return made


def _best_together(
    choices: Sequence[Sequence[Economics]], machine: PricedMachine, terms: Terms
) -> Economics | None:
    """The cheapest way to serve all models of a mix with so many requests at a time.

    What serves most requests of one model alone need not be the best beside others, whose requests
    wait behind its own. So it starts there, and takes another variant of a model for as long as
    that makes the bill smaller.
    """
    chosen = [max(variants, key=_able) for variants in choices]
    best = _together(chosen, machine, terms)
    is_better = len(choices) > 1
    while is_better:
        is_better = False
        for index, variants in enumerate(choices):
            for variant in variants:
                if variant is chosen[index]:
                    continue
                others = [*chosen[:index], variant, *chosen[index + 1 :]]
                other = _together(others, machine, terms)
                if other is not None and (best is None or _bill(other) < _bill(best)):
                    best, chosen, is_better = other, others, True
    return best


def _bill(variant: Economics) -> tuple[float, float, float]:
    """What orders ways to serve a mix: cost, machines, and of equal ones the faster first."""
    return (
        math.inf if variant.cost is None else variant.cost.value,
        math.inf if variant.units is None else variant.units.value,
        -variant.rate.value,
    )


def _together(
    chosen: Sequence[Economics], machine: PricedMachine, terms: Terms
) -> Economics | None:
    """One variant of each model of a mix, worked out as one workload."""
    cases = [variant.case for variant in chosen]
    # Alone in a process, whatever it is in here.
    alone = as_one([variant.alone or variant.case for variant in chosen], terms.mix)
    most = [variant.queues.most for variant in chosen]
    together = work_out(
        replace(
            as_one(cases, terms.mix, _peaks(chosen, terms)),
            served_at_most=_ceiling(cases, terms),
        ),
        machine,
        terms,
        served=Queues(
            measured=chosen[0].queues.measured,
            most=None if None in most else max(filter(None, most)),
        ),
        alone=alone,
    )
    if together is None:
        return None
    return replace(together, busy=busy_shares(cases, terms.mix), parts=tuple(cases))


def _ceiling(cases: Sequence[CaseFacts], terms: Terms) -> float | None:
    """Requests of a mix a second that no machine can serve in time, by the loads of its models.

    A model that alone is late at some rate is late at its share of a mix, too.
    """
    if terms.limit_s is None or terms.rate_per_s is None:
        return None
    ends = [
        beyond * terms.rate_per_s / part.rate_per_s
        for case, part in zip(cases, terms.mix, strict=True)
        if (peak := _best_search(case, terms)) is not None
        and (beyond := peak.beyond_per_s) is not None
        and (peak.latency_s, peak.percent) == (terms.limit_s, terms.percent)
    ]
    return min(ends, default=None)


def _able(variant: Economics) -> float:
    """What the machine can serve of a model, which decides between its variants."""
    return variant.capacity.value if variant.capacity is not None else 0.0


def _peaks(chosen: Sequence[Economics], terms: Terms) -> list[ServedRate]:
    """The peak of each model within the limit; empty unless all have one."""
    if terms.limit_s is None:
        return []
    searched = [_best_search(variant.case, terms) for variant in chosen]
    peaks = [peak for peak in searched if peak is not None]
    return peaks if len(peaks) == len(chosen) else []


def _best_search(case: CaseFacts, terms: Terms) -> ServedRate | None:
    kept = [load for load in case.served if load.searched and _is_kept(load, terms)]
    return max(kept, key=lambda load: load.rate_per_s, default=None)


def _is_kept(load: ServedRate, terms: Terms) -> bool:
    """Whether a load that was served keeps the limit: at its percentile, or at a stricter one."""
    limit_s = terms.limit_s
    return limit_s is not None and load.percent >= terms.percent and load.latency_s <= limit_s


def work_out(
    case: CaseFacts,
    machine: PricedMachine,
    terms: Terms,
    *,
    served: Queues | None = None,
    alone: CaseFacts | None = None,
) -> Economics | None:
    """Work out what a variant costs on a machine; ``None`` where its throughput is not known.

    Args:
        case: A case that may be ranked.
        machine: The machine that it was measured on.
        terms: Years and target.
        served: Requests that are served at a time; by default what was measured settles it.
        alone: The same case in one process, whose power was measured; by default the case.
    """
    throughput = case.quantities.get("throughput")
    if throughput is None or throughput.value <= 0:
        return None
    alone_rate = (alone or case).quantities["throughput"].value
    served = served or Queues(measured=at_a_time(case), most=at_a_time(case))
    least = _worked_out(case, machine, terms, share=throughput.value / alone_rate, factor=1.0)
    least = replace(least, queues=served, alone=alone or case)
    if machine in terms.bought_without_power:
        least = replace(
            least,
            cost=_or_more(least.cost),
            cost_month=_or_more(least.cost_month),
            cost_million=_or_more(least.cost_million),
        )
    if not served.is_open:
        return least
    # Without the number of CPUs there is no upper end: as many queues as make no difference.
    factor = served.most / served.measured if served.most else math.inf
    if math.isinf(factor):
        return _without_end(least, terms)
    most = _worked_out(
        case, machine, terms, share=factor * throughput.value / alone_rate, factor=factor
    )
    return replace(least, **_merged(least, most))


def _or_more(figure: Figure | None) -> Figure | None:
    """A cost that lacks a part whose price is not known."""
    if figure is None:
        return None
    return figure.opened_to(Figure(value=math.inf, low=math.inf, high=math.inf))


def _merged(least: Economics, most: Economics) -> dict[str, Any]:
    """The figures between one end and the other; one that an end does not have is not known."""
    merged: dict[str, Any] = {}
    for entry in fields(Economics):
        low, high = getattr(least, entry.name), getattr(most, entry.name)
        if isinstance(low, Figure) and isinstance(high, Figure):
            merged[entry.name] = low.opened_to(high)
    if least.power is not None and most.power is not None:
        load = least.power.load_w.opened_to(most.power.load_w)
        merged["power"] = replace(least.power, load_w=load)
    return merged


def _without_end(least: Economics, terms: Terms) -> Economics:
    """Bounds where nothing says how much a machine serves at a time."""
    better = ("rate", "per_joule", "per_price", "per_money_hour", "capacity")
    ends = {"units": 1.0 + terms.spare}
    opened: dict[str, Any] = {}
    for entry in fields(Economics):
        figure = getattr(least, entry.name)
        if isinstance(figure, Figure):
            end = math.inf if entry.name in better else ends.get(entry.name, 0.0)
            opened[entry.name] = figure.opened_to(Figure(value=end, low=end, high=end))
    return replace(least, **opened)


def _worked_out(
    case: CaseFacts, machine: PricedMachine, terms: Terms, *, share: float, factor: float
) -> Economics:
    """What a variant costs with so many times the queues.

    Args:
        case: A case with a throughput.
        machine: The machine.
        terms: Years and target.
        share: Throughput ÷ that at which the power was measured.
        factor: Queues ÷ those of the case.
    """
    missing: dict[str, str] = {}
    rate = measured_figure(case.quantities["throughput"], case).grown(factor)
    power = power_of(case, machine, missing, share=share)
    cost_million = _cost_million(rate, power, machine, terms, missing)
    able = source = None
    units = cost = None
    if terms.rate_per_s is not None and terms.limit_s is not None:
        able, source = _capacity(case, terms, missing)
        able = able.grown(factor) if able is not None else None
        units = _units(able, terms, missing)
        cost = _cost(units, rate, power, case, machine, terms, missing)
    return Economics(
        machine=machine,
        case=case,
        rate=rate,
        power=power,
        per_joule=divided(rate, power.load_w) if power else None,
        per_price=rate.of(lambda r: r / (machine.price or math.inf)) if machine.price else None,
        per_money_hour=(
            rate.of(lambda r: 3600 * r / (machine.price_per_hour or math.inf))
            if machine.price_per_hour
            else None
        ),
        kwh_per_million=divided(power.load_w, rate.of(lambda r: 3.6 * r)) if power else None,
        cost_million=cost_million,
        capacity=able,
        capacity_source=source or "",
        units=units,
        cost=cost,
        cost_month=cost.grown(1 / terms.months) if cost else None,
        missing=missing,
    )


def _power_is_payable(power: Power | None, machine: PricedMachine, missing: dict[str, str]) -> bool:
    """Whether the bill for power can be worked out: none, or the whole machine's draw is known."""
    if not machine.power_price:
        return True
    if power is not None and not power.whole:
        missing["power"] = (
            "the power of the whole machine is not known: only the device was measured, and "
            "idle_power is not given"
        )
    return power is not None and power.whole


def _cost_million(
    rate: Figure, power: Power | None, machine: PricedMachine, terms: Terms, missing: dict[str, str]
) -> Figure | None:
    """Money per million items of a machine that is never idle."""
    if not _power_is_payable(power, machine, missing):
        missing["cost_million"] = missing["power"]
        return None
    fixed = (machine.price_per_hour or 0.0) + (machine.price or 0.0) / (terms.years * HOURS_A_YEAR)
    load = power.load_w if power and machine.power_price else Figure(value=0.0, low=0.0, high=0.0)
    hourly = load.of(lambda watts: fixed + watts / 1000 * (machine.power_price or 0.0))
    hours = rate.of(lambda r: 1e6 / (3600 * r))
    return Figure(
        value=hourly.value * hours.value, low=hourly.low * hours.low, high=hourly.high * hours.high
    )


def _capacity_seen(case: CaseFacts, terms: Terms) -> Figure | None:
    """The highest rate of arrival that was served in time, if that settles the matter.

    A search settles it. A rate that somebody tried does if it is all that is wanted; a lower one
    says nothing of what else the machine could do.
    """
    wanted_per_s = terms.rate_per_s or 0.0
    kept = [
        served
        for served in case.served
        if _is_kept(served, terms) and (served.searched or served.rate_per_s >= wanted_per_s)
    ]
    if not kept:
        return None
    best = max(kept, key=lambda served: served.rate_per_s)
    rate = best.rate_per_s
    return Figure(value=rate, low=rate, high=max(rate, best.beyond_per_s or rate))


def _capacity(case: CaseFacts, terms: Terms, missing: dict[str, str]) -> tuple[Figure | None, str]:
    """Requests a second that one machine serves in time, and how that is known."""
    limit_s = terms.limit_s or 0.0
    seen = _capacity_seen(case, terms)
    if seen is not None:
        return seen, "arrivals"
    if not case.service_s:
        missing["capacity"] = "the run has no service times"
        return None, ""
    mean = case.quantities["latency_mean"]
    low, high = interval(mean, blurred=bool(case.blurred_by))
    scales = [1.0, high / mean.value, low / mean.value]
    value, worst, best = capacity(
        case.service_s, limit_s, scales=scales, kinds=case.kinds, percent=terms.percent
    )
    if best == 0:
        missing["capacity"] = (
            f"more than {terms.late_percent:g} % of the requests take longer than "
            f"{limit_s * 1e3:g} ms even without waiting"
        )
        return None, ""
    # Each caller of each process is a queue whose service times were measured while all others were
    # busy, too; beside fewer it is no slower.
    able = Figure(value=value, low=worst, high=best).grown(at_a_time(case))
    end = math.inf if case.served_at_most is None else case.served_at_most
    return able.of(lambda rate: min(rate, end)), "queue"


def _units(able: Figure | None, terms: Terms, missing: dict[str, str]) -> Figure | None:
    rate = terms.rate_per_s or 0.0
    if able is None:
        missing["units"] = missing["capacity"]
        return None
    if able.value == 0:
        missing["units"] = "the uncertainty is too large to tell whether the limit is kept"
        return None

    def needed(capacity_per_s: float) -> float:
        # A hair of rounding must not buy a machine.
        if capacity_per_s <= 0:
            return math.inf
        return math.ceil(rate / capacity_per_s - 1e-9) + terms.spare

    return able.of(needed)


def _cost(
    units: Figure | None,
    rate: Figure,
    power: Power | None,
    case: CaseFacts,
    machine: PricedMachine,
    terms: Terms,
    missing: dict[str, str],
) -> Figure | None:
    """Money over the years: what must be bought, hours of all machines, and their power."""
    if units is None:
        missing["cost"] = missing["units"]
        return None
    if not _power_is_payable(power, machine, missing):
        missing["cost"] = missing["power"]
        return None
    if machine.price is None and machine.price_per_hour is None:
        missing["cost"] = "no price"
        return None
    hours = terms.years * HOURS_A_YEAR
    items_per_s = (terms.rate_per_s or 0.0) * case.batch

    def total(count: float, items: float, watts: float) -> float:
        if math.isinf(count):
            return math.inf
        bought = max(0.0, count - machine.units_owned) * (machine.price or 0.0)
        hourly = count * (machine.price_per_hour or 0.0)
        busy = min(1.0, items_per_s / (count * items))
        idle = min(power.idle_w, watts) if power else 0.0
        draw = count * (idle + (watts - idle) * busy) / 1000 * (machine.power_price or 0.0)
        return bought + hours * (hourly + draw)

    load = power.load_w if power and machine.power_price else Figure(value=0.0, low=0.0, high=0.0)
    return Figure(
        value=total(units.value, rate.value, load.value),
        low=total(units.low, rate.high, load.low),
        high=total(units.high, rate.low, load.high),
    )
