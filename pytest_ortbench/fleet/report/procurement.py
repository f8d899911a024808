"""What machines cost, as tables for people and as CSV for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.analysis.sentences import with_interval
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.core.units import format_amount, significant
from pytest_ortbench.fleet.numbers.facts import RunFacts
from pytest_ortbench.fleet.numbers.matrix import variant_label
from pytest_ortbench.fleet.numbers.same_machine import same_machine_texts
from pytest_ortbench.fleet.numbers.sides import machine_names
from pytest_ortbench.fleet.numbers.words import metric_words
from pytest_ortbench.fleet.procurement.award import award_of
from pytest_ortbench.fleet.procurement.economics import Economics
from pytest_ortbench.fleet.procurement.entrants import Absence, strangers_to, without_run
from pytest_ortbench.fleet.procurement.figure import Figure
from pytest_ortbench.fleet.procurement.machines import Terms
from pytest_ortbench.fleet.procurement.ranking import Tender, tenders
from pytest_ortbench.fleet.procurement.remarks import (
    capacity_sources,
    choices,
    doubt_texts,
    to_settle,
)
from pytest_ortbench.fleet.procurement.sentences import (
    assumptions,
    bare_count,
    cheapest_machines,
    left_out_texts,
    money,
    served_text,
    shown_mark,
    span,
    target,
)
from pytest_ortbench.fleet.report.measured import measured_texts
from pytest_ortbench.fleet.report.purchase_cards import purchase_cards
from pytest_ortbench.fleet.report.view import HOLE, ComparisonView, Insert
from pytest_ortbench.report.csv import csv_lines
from pytest_ortbench.report.escape import csv_text, one_line

#: Workloads whose tables are shown; the CSV has all.
WORKLOADS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Procurement:
    """Everything that is shown of what machines cost.

    Attributes:
        terms: Machines and target.
        tenders: One a workload.
        answer: The sentences that say what to buy.
        warnings: What they assume.
        same_machines: Which names of machines stand for one and the same, by their documents.
        measured: What the models and the machines are, and how they were measured.
    """

    terms: Terms
    tenders: tuple[Tender, ...]
    answer: tuple[Told, ...]
    warnings: tuple[str, ...]
    same_machines: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()

    @property
    def priced(self) -> tuple[str, ...]:
        """Machines that could be priced for a workload, the first of the table first."""
        names = {
            offer.economics.machine.name
            for tender in self.tenders
            for offer in award_of(tender).priced
        }
        return tuple(machine.name for machine in self.terms.machines if machine.name in names)

    @property
    def title(self) -> str:
        """What the comparison is about: without a rival it says so."""
        if len(self.priced) > 1:
            return f"What {len(self.priced)} machines cost"
        if len(self.terms.machines) == len(self.priced):
            return f"What {self.priced[0]} costs"
        return f"Only {self.priced[0]} could be priced" if self.priced else "No machine was priced"


def procure(runs: Sequence[RunFacts], terms: Terms) -> Procurement:
    """Work out what each machine costs for each workload, and what to say of it.

    Args:
        runs: Runs reduced with percentiles and service times.
        terms: Machines and target.

    Raises:
        UsageError: if no run comes from a machine of the table.
    """
    tendered = tenders(runs, terms)
    names = machine_names(runs)
    absent = without_run(terms, names)
    strangers = strangers_to(terms, names)
    missing = [f"No run of {machine.name} was given." for machine in absent]
    missing += [
        f"The table of machines has no entry for {name}, so it has no price." for name in strangers
    ]
    same = same_machine_texts(runs)
    answer = [*cheapest_machines(tendered, terms), *map(Told, same)]
    return Procurement(
        terms=terms,
        tenders=tendered,
        answer=tuple(text.cleaned(one_line) for text in answer),
        warnings=tuple(
            one_line(text)
            for text in (
                *same,
                *missing,
                *assumptions(tendered, terms),
                *doubt_texts(tendered),
            )
        ),
        same_machines=tuple(map(one_line, same)),
        measured=tuple(map(one_line, measured_texts(tendered, runs))),
    )


def with_costs(
    view: ComparisonView, shown: Procurement, *, all_columns: bool = True
) -> ComparisonView:
    """Return a comparison whose first answer is what to buy, with the tables behind it.

    Args:
        view: The comparison of the same runs.
        shown: What machines cost.
        all_columns: Whether there is room for all columns.
    """
    return replace(
        view,
        title=one_line(shown.title),
        # What is fastest for each workload stands in the tables; the question is another one.
        answer=shown.answer,
        aside=() if view.is_of_one else (_apart(view),),
        warnings=tuple(dict.fromkeys((*shown.warnings, *view.warnings))),
        blocks=(*view.blocks, *blocks(shown, all_columns=all_columns)),
        cards=purchase_cards(shown.tenders, shown.terms),
    )


def _apart(view: ComparisonView) -> Told:
    """What is best over all by the metric, which need not be what to buy: it says so."""
    return view.overall.said_of(f"by {metric_words(view.metric)} alone, without regard to cost: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """One column: its heading, its cell, and whether terminal and page have room for it."""

    heading: str
    text: Callable[[Economics], str]
    narrow: bool = True
    is_detail: bool = False


def _shown(figure: Figure | None, write: Callable[[Figure], str] = span) -> str:
    return HOLE if figure is None else write(figure)


def _columns(terms: Terms, *, all_columns: bool) -> list[_Column]:
    currency = terms.currency
    # Where room is short, only what decides keeps its bounds.
    brief = span if all_columns else _value
    columns = [
        _Column(heading="machine", text=lambda variant: variant.machine.name),
        _Column(heading="variant", text=lambda variant: variant_label(variant.case)),
        _Column(heading="at a time", text=served_text),
    ]
    if terms.has_target:
        columns += [
            _Column(heading="machines", text=lambda variant: _shown(variant.units, bare_count)),
            _Column(
                heading=f"{currency} in {terms.years:g} years",
                text=lambda variant: _shown(variant.cost, money),
            ),
            _Column(
                heading=f"{currency} a month",
                text=lambda variant: _shown(variant.cost_month, money if all_columns else _amount),
            ),
            _Column(
                heading="requests/s each",
                text=lambda variant: _shown(variant.capacity),
                narrow=False,
            ),
        ]
    columns += [
        _Column(
            heading=f"{currency}/million items, never idle",
            text=lambda variant: _shown(variant.cost_million, money),
        ),
        _Column(
            heading="kWh/million items",
            text=lambda variant: _energy(variant, variant.kwh_per_million, brief),
            is_detail=True,
        ),
        _Column(
            heading="items/s per W",
            text=lambda variant: _energy(variant, variant.per_joule, brief),
            is_detail=True,
        ),
        _Column(
            heading=f"items/s per {currency}",
            text=lambda variant: _shown(variant.per_price),
            narrow=False,
            is_detail=True,
        ),
        _Column(
            heading=f"million items per {currency} of hourly rent",
            text=lambda variant: _shown(variant.per_money_hour, _millions),
            narrow=False,
            is_detail=True,
        ),
        _Column(
            heading="items/s",
            text=lambda variant: _shown(variant.rate),
            narrow=False,
            is_detail=True,
        ),
        _Column(heading="W", text=_power, narrow=False, is_detail=True),
        _Column(heading="p50", text=_median if all_columns else _brief_median),
    ]
    return [column for column in columns if column.narrow or all_columns]


def _millions(figure: Figure) -> str:
    return span(figure.of(lambda items: items / 1e6))


def _value(figure: Figure) -> str:
    return span(figure) if figure.is_open else significant(figure.value)


def _amount(figure: Figure) -> str:
    return money(figure if figure.is_open else figure.exact)


def _energy(variant: Economics, figure: Figure | None, write: Callable[[Figure], str]) -> str:
    """Energy of the device alone is another quantity than that of the machine, and says so."""
    alone = variant.power is not None and not variant.power.whole
    return _shown(figure, write) + (" (device)" if alone and figure else "")


def _brief_median(variant: Economics) -> str:
    quantity = variant.case.quantities.get("latency_p50")
    return HOLE if quantity is None else format_amount(quantity.value, quantity.unit)


def _power(variant: Economics) -> str:
    return HOLE if variant.power is None else span(variant.power.load_w)


def _median(variant: Economics) -> str:
    quantity = variant.case.quantities.get("latency_p50")
    return HOLE if quantity is None else with_interval(quantity)


def blocks(shown: Procurement, *, all_columns: bool = True) -> list[Insert]:
    """Return a table a workload, the best machine first.

    Args:
        shown: What is shown.
        all_columns: Whether there is room for all of them.
    """
    terms = shown.terms
    every = [offer.economics for tender in shown.tenders for offer in tender.offers]
    columns = [
        column
        for column in _columns(terms, all_columns=all_columns)
        if {HOLE} != {column.text(variant) for variant in every}
    ]
    made = [
        Insert(
            key=f"buy-{number}",
            heading=one_line(f"{tender.model} {tender.label}{target(tender, terms)}"),
            headings=("", *(column.heading for column in columns)),
            rows=tuple(
                (
                    shown_mark(offer, tender),
                    *(one_line(column.text(offer.economics)) for column in columns),
                )
                for offer in tender.offers
            ),
            right=frozenset(range(3, len(columns) + 1)),
            details=frozenset(
                index for index, column in enumerate(columns, start=1) if column.is_detail
            ),
            sentences=tuple(map(one_line, _notes(tender, terms))),
        )
        for number, tender in enumerate(shown.tenders[:WORKLOADS], start=1)
    ]
    if len(shown.tenders) > WORKLOADS:
        rest = f"{len(shown.tenders) - WORKLOADS} further workloads are in the CSV."
        made[-1] = replace(made[-1], sentences=(*made[-1].sentences, rest))
    if shown.measured:
        made.append(Insert(key="measured", heading="What was measured", sentences=shown.measured))
    return made


def _notes(tender: Tender, terms: Terms) -> list[str]:
    sentences = left_out_texts(
        [
            entry
            for entry in tender.left_out
            if entry.absence not in (Absence.NO_RUN, Absence.NO_PRICE)
        ]
    )
    if any(variant.busy for variant in tender.variants):
        sentences.append("An item is a request of any of these models")
    sentences += [
        f"Of the time that {offer.economics.machine.name} works, {_busy(offer.economics, terms)}"
        for offer in tender.offers
        if offer.economics.busy
    ]
    if any(offer.economics.case.processes > 1 for offer in tender.offers):
        sentences.append(
            "p50: the median latency of a request while as many run at a time as that column says; "
            "among the cases stands that of one process alone"
        )
    sentences += [*capacity_sources(tender, terms), *choices(tender)]
    sentences += to_settle(tender, terms)
    return [f"{text}." for text in sentences]


def _busy(variant: Economics, terms: Terms) -> str:
    """``62 % goes to det, 38 % to rec``."""
    return ", ".join(
        f"{100 * share:.0f} % goes to {part.name}"
        for part, share in zip(terms.mix, variant.busy, strict=True)
    )


CSV_COLUMNS = (
    "model",
    "workload",
    "machine",
    "host",
    "case_id",
    "variant",
    "best_of_machine",
    "rank",
    "on_pareto_front",
    "currency",
    "years",
    "latency_p50_s",
    *(
        f"{name}{end}"
        for name in (
            "items_per_s",
            "power_w",
            "items_per_j",
            "items_per_s_per_price",
            "items_per_money_of_rent",
            "kwh_per_million_items",
            "cost_per_million_items",
            "requests_per_s_each",
            "machines_needed",
            "cost",
        )
        for end in ("", "_low", "_high")
    ),
    "power_source",
    "capacity_source",
    "missing",
    "served_at_a_time",
    "served_at_a_time_most",
    "bounds_only",
    "role",
    *(f"cost_per_month{end}" for end in ("", "_low", "_high")),
)


def render_procurement_csv(shown: Procurement) -> str:
    """Write every variant on every machine with all its figures and bounds.

    Empty: not known. ``inf``: no upper bound, since at the slow end of the intervals no number of
    machines is enough, or at the low end a machine draws nothing.
    """
    return csv_lines(CSV_COLUMNS, _csv_rows(shown))


def _csv_rows(shown: Procurement) -> Iterator[list[object]]:
    for tender in shown.tenders:
        marks = {id(offer.economics): offer.mark for offer in tender.offers}
        for index, variant in enumerate(tender.variants):
            median = variant.case.quantities.get("latency_p50")
            figures = (
                variant.rate,
                variant.power.load_w if variant.power else None,
                variant.per_joule,
                variant.per_price,
                variant.per_money_hour,
                variant.kwh_per_million,
                variant.cost_million,
                variant.capacity,
                variant.units,
                variant.cost,
            )
            yield [
                csv_text(tender.model),
                csv_text(tender.label),
                csv_text(variant.machine.name),
                csv_text(variant.machine.host),
                csv_text(variant.case.case_id),
                csv_text(variant_label(variant.case)),
                int(id(variant) in marks),
                marks.get(id(variant), ""),
                int(index in tender.front),
                csv_text(shown.terms.currency),
                repr(shown.terms.years),
                "" if median is None else repr(median.value),
                *(field for figure in figures for field in _fields(figure)),
                variant.power.source if variant.power else "",
                variant.capacity_source_text,
                csv_text("; ".join(dict.fromkeys(variant.missing.values()))),
                variant.queues.measured,
                "" if variant.queues.most is None else variant.queues.most,
                int(variant.queues.is_open),
                variant.case.role,
                *_fields(variant.cost_month),
            ]


def _fields(figure: Figure | None) -> tuple[str, str, str]:
    if figure is None:
        return "", "", ""
    value, low, high = (repr(float(end)) for end in (figure.value, figure.low, figure.high))
    return value, low, high
