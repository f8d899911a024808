"""Which machine is cheapest for each workload, what ties with it, and what no other one beats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.fleet.numbers.facts import CaseFacts, RunFacts
from pytest_ortbench.fleet.numbers.matrix import rank
from pytest_ortbench.fleet.numbers.ratios import interval
from pytest_ortbench.fleet.numbers.sides import machine_names, workload_parts
from pytest_ortbench.fleet.procurement.economics import Economics, mixes_of, variants_of
from pytest_ortbench.fleet.procurement.entrants import (
    Absence,
    LeftOut,
    machines_of,
    strangers_to,
    why_left_out,
    without_run,
)
from pytest_ortbench.fleet.procurement.figure import Figure
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms
from pytest_ortbench.fleet.procurement.mix import MixPart, mix_words

#: What decides: the cost of a target, else the first of the others that any machine has.
DECIDING = ("cost", "cost_million", "rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One machine for one workload, with its best variant.

    Attributes:
        economics: The variant that decides.
        mark: ``best``, ``tie`` (can't be told from it), ``open`` (whether it is the best is not
            known, since what it or another one serves at a time was not measured) or empty.
        reason: Why it has no deciding figure; empty otherwise.
    """

    economics: Economics
    mark: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tender:
    """All machines for one workload.

    Attributes:
        model: Name of the model.
        label: Its workload: ``b1/seq:128``.
        batch: Items of one request.
        deciding: What ranks the machines: one of :data:`DECIDING`.
        offers: One a machine, the best first, those without a figure last.
        variants: Every variant on every machine.
        front: Indices of the variants that no other one clearly beats in both cost and latency.
        left_out: Machines without an offer, of the table and of the runs, each with the reason.
        unproven: The variant that would go before all offers, if nothing but random inputs did not
            speak for its answers while precisions differ; ``None`` if there is none.
    """

    model: str
    label: str
    batch: int
    deciding: str
    offers: tuple[Offer, ...]
    variants: tuple[Economics, ...]
    front: tuple[int, ...]
    left_out: tuple[LeftOut, ...] = ()
    unproven: Economics | None = None


def tenders(runs: Sequence[RunFacts], terms: Terms) -> tuple[Tender, ...]:
    """Rank the machines for every workload of their runs.

    Args:
        runs: Runs with percentiles and service times; the newest of a machine counts.
        terms: The machines and the target.

    Raises:
        UsageError: if a name is misspelt or stands for several machines, if no run comes from a
            machine of the table, or none of them measured a model of the mix.
    """
    machines = machines_of(runs, terms)
    newest: dict[tuple[str, str, str], tuple[PricedMachine, CaseFacts]] = {}
    for run in sorted(runs, key=lambda run: (run.started_at, run.run_id)):
        machine = machines.get(run.run_id)
        for case in run.cases if machine is not None else ():
            assert machine is not None
            newest[machine.name, case.case_id, case.runtime] = (machine, case)
    groups: dict[tuple[object, ...], list[tuple[PricedMachine, CaseFacts]]] = {}
    for machine, case in newest.values():
        # Callers are part of how a machine serves, not of what is asked of it.
        groups.setdefault(case.request, []).append((machine, case))
    if terms.mix:
        made = [_mixed(list(groups.values()), terms)]
    else:
        made = [_tender(members, terms) for members in groups.values()]
    names = machine_names(runs)
    absent = {machine.name for machine in without_run(terms, names)}
    strangers = tuple(
        LeftOut(machine=name, absence=Absence.NO_PRICE) for name in strangers_to(terms, names)
    )
    return tuple(
        replace(
            tender,
            left_out=(
                *(
                    replace(entry, absence=Absence.NO_RUN, subject="", detail="")
                    if entry.machine in absent
                    else entry
                    for entry in tender.left_out
                ),
                *strangers,
            ),
        )
        for tender in made
    )


def _tender(members: Sequence[tuple[PricedMachine, CaseFacts]], terms: Terms) -> Tender:
    reference, usable = _alike(members)
    variants = [
        variant
        for machine, cases in usable.items()
        for variant in variants_of(cases, machine, terms)
    ]
    made = _offered(variants, terms)
    offered = {offer.economics.machine.name for offer in made.offers}
    left_out = tuple(
        why_left_out(machine, _cases_of(machine, members), reference)
        for machine in terms.machines
        if machine.name not in offered
    )
    return replace(
        made,
        model=reference.model,
        label=_workload(reference),
        batch=reference.batch,
        left_out=(*left_out, *made.left_out),
    )


def _cases_of(
    machine: PricedMachine, members: Sequence[tuple[PricedMachine, CaseFacts]]
) -> list[CaseFacts]:
    return [case for owner, case in members if owner == machine]


def _alike(
    members: Sequence[tuple[PricedMachine, CaseFacts]],
) -> tuple[CaseFacts, dict[PricedMachine, list[CaseFacts]]]:
    """The case that says what is fed, and by machine those that may be priced and were fed that.

    A purchase does not rest on one process: how far the next one is off is not known.
    """
    reference = next((case for _, case in members if not case.reason), members[0][1])
    usable: dict[PricedMachine, list[CaseFacts]] = {}
    for machine, case in members:
        alike = case.inputs == reference.inputs and case.digest == reference.digest
        if not case.reason and alike and not case.one_worker:
            usable.setdefault(machine, []).append(case)
    return reference, usable


def _workload(case: CaseFacts) -> str:
    return "/".join(workload_parts(case, without=("concurrency", "sessions")))


def _offered(variants: Sequence[Economics], terms: Terms) -> Tender:
    """Rank the best variant of each machine; what the workload is called is for the caller."""
    # A target that no machine keeps is an answer; another question's answer would hide it.
    asked = DECIDING[:1] if terms.has_target else DECIDING[1:]
    deciding = next(
        (name for name in asked if any(figure_of(variant, name) for variant in variants)), asked[-1]
    )
    several = len({variant.case.precision for variant in variants}) > 1
    best: dict[str, Economics] = {}
    for variant in sorted(variants, key=lambda variant: several and variant.case.needs is not None):
        name = variant.machine.name
        known = best.setdefault(name, variant)
        as_proven = (variant.case.needs is None) == (known.case.needs is None) or not several
        if as_proven and _key(variant, deciding) < _key(known, deciding):
            best[name] = variant
    offers = _ranked(list(best.values()), variants, deciding, several=several)
    leader = next((offer.economics for offer in offers if not offer.reason), None)
    return Tender(
        model="",
        label="",
        batch=1,
        deciding=deciding,
        offers=offers,
        variants=tuple(variants),
        front=_front(variants, deciding),
        left_out=tuple(
            LeftOut(
                machine=offer.economics.machine.name,
                absence=Absence.NO_FIGURE,
                detail=offer.reason,
            )
            for offer in offers
            if offer.reason
        ),
        unproven=_unproven(variants, leader, deciding) if several else None,
    )


def _mixed(groups: Sequence[Sequence[tuple[PricedMachine, CaseFacts]]], terms: Terms) -> Tender:
    """Rank the machines for all models of the mix together."""
    members = [_of_part(part, groups) for part in terms.mix]
    parts = [_alike(of_part) for of_part in members]
    variants: list[Economics] = []
    left_out: list[LeftOut] = []
    for machine in terms.machines:
        lacking = [
            why_left_out(machine, _cases_of(machine, of_part), reference, subject=part.name)
            for part, of_part, (reference, usable) in zip(terms.mix, members, parts, strict=True)
            if machine not in usable
        ]
        if lacking:
            left_out.append(_joined(lacking))
            continue
        made = mixes_of([usable[machine] for _, usable in parts], machine, terms)
        if not made:
            left_out.append(LeftOut(machine=machine.name, absence=Absence.NO_COMMON_COUNT))
        variants += made
    if not variants:
        raise UsageError(
            "no machine can be ranked for all models of the mix: "
            f"{'; '.join(f'{entry.machine}: {entry.reason}' for entry in left_out)}",
            place="--mix",
            hint="On one of these machines, measure all models of the mix again with "
            "--ort-workers=3, and name this run"
            if all(entry.absence is Absence.ONE_WORKER for entry in left_out)
            else "On one of these machines, measure all models of the mix in one run, and name "
            "this run. To rank without a model, leave it out of the mix",
        )
    offered = _offered(variants, terms)
    return replace(
        offered,
        model=mix_words(terms.mix),
        label="as one workload",
        left_out=(*left_out, *offered.left_out),
    )


def _joined(entries: Sequence[LeftOut]) -> LeftOut:
    """One entry for the models of a mix that a machine lacks, by the reason of the first."""
    first = entries[0]
    alike = [
        entry.subject
        for entry in entries
        if (entry.absence, entry.detail) == (first.absence, first.detail)
    ]
    return replace(first, subject=" and ".join(alike), several=len(alike) > 1)


def _of_part(
    part: MixPart, groups: Sequence[Sequence[tuple[PricedMachine, CaseFacts]]]
) -> Sequence[tuple[PricedMachine, CaseFacts]]:
    """The cases of the one workload that a part of the mix names."""
    named = {f"{members[0][1].model}/{_workload(members[0][1])}": members for members in groups}
    models = {members[0][1].model for members in groups}
    if part.name in named:
        return named[part.name]
    if part.name not in models:
        raise UsageError(
            f"the runs of these machines contain no model {part.name!r}",
            place="--mix",
            hint=did_you_mean(part.name, {*models, *(named if "/" in part.name else ())}),
        )
    of_model = {
        name: members for name, members in named.items() if members[0][1].model == part.name
    }
    if len(of_model) > 1:
        raise UsageError(
            f"the model {part.name!r} was measured with {len(of_model)} batches or sizes, and the "
            "mix must name one of them",
            place="--mix",
            hint=f"In place of {part.name!r}, write one of: {', '.join(sorted(of_model))}",
        )
    return next(iter(of_model.values()))


def _unproven(
    variants: Sequence[Economics], leader: Economics | None, deciding: str
) -> Economics | None:
    """The best variant that random inputs alone speak for, where it goes before the leader."""
    waiting = [variant for variant in variants if variant.case.needs is not None]
    best = min(waiting, key=lambda variant: _key(variant, deciding), default=None)
    if best is None or figure_of(best, deciding) is None:
        return None
    return best if leader is None or _key(best, deciding) < _key(leader, deciding) else None


def figure_of(variant: Economics, name: str) -> Figure | None:
    """Return the figure that decides."""
    return {"cost": variant.cost, "cost_million": variant.cost_million, "rate": variant.rate}[name]


def _key(variant: Economics, deciding: str) -> tuple[bool, float, float]:
    """What orders variants: the figure that decides; of equal ones the faster comes first."""
    figure = figure_of(variant, deciding)
    if figure is None or deciding == "rate":
        return (figure is None, 0.0, -variant.rate.value)
    return (False, figure.value, -variant.rate.value)


def _ranked(
    offers: Sequence[Economics], variants: Sequence[Economics], deciding: str, *, several: bool
) -> tuple[Offer, ...]:
    def is_withheld(variant: Economics) -> bool:
        return several and variant.case.needs is not None

    ordered = sorted(offers, key=lambda variant: (is_withheld(variant), _key(variant, deciding)))
    figures = [figure_of(variant, deciding) for variant in ordered]
    spans = [
        None if is_withheld(variant) else _span(variant, variants, deciding) for variant in ordered
    ]
    marks = rank(
        [figure.value if figure else 0.0 for figure in figures],
        [(span.low, span.high) if span else None for span in spans],
        [variant.machine.name for variant in ordered],
        higher=deciding == "rate",
    )
    # Where a bound is all that is known, to meet is no tie: either may be far better.
    known = [index for index, span in enumerate(spans) if span is not None]
    level = [index for index in known if marks[index]] or known
    is_decided = any(marks) and len(level) == 1
    if not is_decided and any((span := spans[index]) and span.is_open for index in level):
        marks = ["open" if index in level else "" for index in range(len(marks))]
    return tuple(
        Offer(
            economics=variant,
            mark=mark,
            reason=variant.missing.get(deciding, "not known")
            if not figure
            else f"{variant.case.precision}: {variant.case.needs.value}"
            if is_withheld(variant) and variant.case.needs is not None
            else "",
        )
        for variant, mark, figure in zip(ordered, marks, figures, strict=True)
    )


def _span(offer: Economics, variants: Sequence[Economics], deciding: str) -> Figure | None:
    """The figure of an offer, as far as another variant of its machine may better it."""
    span = figure_of(offer, deciding)
    for variant in variants:
        other = figure_of(variant, deciding)
        if span is None or other is None or variant.machine != offer.machine or not other.is_open:
            continue
        end = other.high if deciding == "rate" else other.low
        if end > span.high if deciding == "rate" else end < span.low:
            span = span.opened_to(Figure(value=end, low=end, high=end))
    return span


def latency_span(case: CaseFacts) -> tuple[float, float]:
    """Return the interval of the median latency; without an interval, or a median, infinite."""
    quantity = case.quantities.get("latency_p50")
    return interval(quantity, blurred=bool(case.blurred_by)) if quantity else (math.inf, math.inf)


def _front(variants: Sequence[Economics], deciding: str) -> tuple[int, ...]:
    """Variants that no other one clearly beats: neither in cost nor in latency, or in only one."""
    spans: list[tuple[tuple[float, float], tuple[float, float]] | None] = []
    for variant in variants:
        figure = figure_of(variant, deciding)
        latency = latency_span(variant.case)
        if figure is None or deciding == "rate" or math.isinf(latency[0]):
            spans.append(None)
        else:
            spans.append(((figure.low, figure.high), latency))
    return tuple(
        index
        for index, span in enumerate(spans)
        if span is not None
        and not any(
            other is not None and other[0][1] < span[0][0] and other[1][1] < span[1][0]
            for position, other in enumerate(spans)
            if position != index
        )
    )
