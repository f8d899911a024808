"""The answer of a comparison as cards: all sides over all cases, and then model by model."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.analysis.told import Told
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.fleet.numbers.headlines import model_headline, overall_headline
from pytest_ortbench.fleet.numbers.matrix import Matrix, Row
from pytest_ortbench.fleet.report.view import (
    NOISY,
    ComparisonView,
    cell_texts,
    counted_text,
    overall_mark,
    overall_text,
)
from pytest_ortbench.report.cards.bars import Bars, BarText, draw_bars
from pytest_ortbench.report.cards.card import AnswerCard
from pytest_ortbench.report.cards.sentence import sentence_of
from pytest_ortbench.report.cards.sheet import READING, Paragraphs, Sheet, whole_answer
from pytest_ortbench.report.escape import one_line

#: Models that have a card, and workloads of each; the tables have the rest.
_MODELS = 12
_WORKLOADS = 4
#: Sides that have a bar.
_SIDES = 12

_LOOKS = {"best": "best", "tie": "best", NOISY: "plain", "": "plain"}


def comparison_cards(view: ComparisonView) -> list[AnswerCard]:
    """Lay out the answer of a comparison: the overall card first, then one a model."""
    best = view.sections[0].matrix
    by_model: dict[str, list[Row]] = {}
    for row in best.rows:
        by_model.setdefault(row.model, []).append(row)
    leads: dict[str, list[Told]] = {}
    for told in _latency_answer(view):
        if told.lead:
            leads.setdefault(told.about, []).append(told)
    models = [
        _model_card(rows, best, leads.pop(one_line(f"{name}:") + " ", []))
        for name, rows in list(by_model.items())[:_MODELS]
    ]
    of_all = [told for about_one in leads.values() for told in about_one]
    return [_overall_card(view.over_all, view, of_all), *models]


def comparison_sheet(view: ComparisonView) -> Sheet:
    """Gather the one printed page of a comparison."""
    cards = tuple(comparison_cards(view))
    limits = (*(f"No number: {text}" for text in view.holes), *view.warnings)
    return Sheet(
        title=view.title,
        facts=" · ".join(
            filter(None, (f"{len(view.runs)} runs", f"baseline {view.baseline}", view.shared))
        ),
        cards=cards,
        note=f"{READING} {view.counts}",
        rest=(
            whole_answer(cards),
            Paragraphs(heading="Limits of this comparison", texts=limits),
        ),
    )


def _latency_answer(view: ComparisonView) -> Sequence[Told]:
    """The answer by the metric; what to buy has cards of its own."""
    return view.aside if view.cards else view.answer


def _overall_card(matrix: Matrix, view: ComparisonView, leads: Sequence[Told]) -> AnswerCard:
    told = overall_headline(matrix)
    bars = [
        BarText(
            label=one_line(side.label),
            kind=_LOOKS[overall_mark(matrix, index)] if mean.ratio else "faint",
            quantity=None
            if mean.ratio is None
            else Quantity(
                value=mean.ratio.value,
                unit="ratio",
                low=mean.ratio.low,
                high=mean.ratio.high,
                samples=mean.cells,
            ),
            value=overall_text(matrix, index),
            mark=overall_mark(matrix, index),
            note="" if mean.ratio else f"compared: {counted_text(matrix, index)}",
        )
        for index, (side, mean) in enumerate(zip(matrix.sides, matrix.overall, strict=True))
    ]
    heading = f"{view.metric.replace('_', ' ')} as a ratio to {one_line(view.baseline)}"
    return AnswerCard(
        kind="sure" if told.winner else "open",
        lead=sentence_of(told),
        groups=(draw_bars(heading, bars[:_SIDES], left_out=len(bars[_SIDES:])),),
        beside=tuple(map(sentence_of, leads)),
        folded=tuple(
            sentence_of(told)
            for told in (view.aside if view.cards else view.answer)
            if not told.lead
        ),
    )


def _model_card(rows: Sequence[Row], matrix: Matrix, leads: Sequence[Told]) -> AnswerCard:
    told = model_headline(rows, matrix)
    return AnswerCard(
        kind="sure" if told.winner else "open",
        lead=sentence_of(told),
        groups=tuple(_workload(row, matrix) for row in rows[:_WORKLOADS]),
        beside=tuple(map(sentence_of, leads)),
    )


def _workload(row: Row, matrix: Matrix) -> Bars:
    bars = []
    for side, cell, text in zip(matrix.sides, row.cells, cell_texts(row, matrix), strict=True):
        variant = f" ({text.variant})" if text.variant else ""
        number = f"{text.number} {text.short}".strip()
        bars.append(
            BarText(
                label=f"{one_line(side.label)}{variant}",
                kind=_LOOKS[text.mark] if cell.comparable else "faint",
                quantity=cell.quantity,
                value=number if cell.quantity else "",
                mark=text.mark,
                note="" if cell.comparable else text.brief,
            )
        )
    return draw_bars(row.label, bars[:_SIDES], left_out=len(bars[_SIDES:]))
