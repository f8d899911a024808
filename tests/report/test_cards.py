"""Cards of a page: lengths of bars, and the words of a comparison."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.fleet.numbers.headlines import model_headline, overall_headline
from pytest_ortbench.fleet.report.cards import comparison_cards
from pytest_ortbench.report.cards.bars import BarText, draw_bars
from tests.report.fleet_views import view


def bar(value: float | None, low: float | None = None, high: float | None = None) -> BarText:
    quantity = None if value is None else Quantity(value=value, unit="s", low=low, high=high)
    return BarText(label="fp32/cpu", kind="plain", quantity=quantity)


def lengths(*texts: BarText) -> list[tuple[float | None, float | None, float | None, bool]]:
    return [(b.length, b.low, b.high, b.is_cut) for b in draw_bars("batch 1", texts).bars]


def test_the_longest_bar_or_its_interval_takes_the_whole_width():
    assert lengths(bar(1.0), bar(4.0)) == [(25.0, None, None, False), (100.0, None, None, False)]
    assert lengths(bar(1.0, 0.9, 1.2), bar(4.0, 3.0, 5.0)) == [
        (20.0, 18.0, 24.0, False),
        (80.0, 60.0, 100.0, False),
    ]


def test_an_interval_that_is_far_longer_than_the_bars_is_cut_at_the_edge():
    assert lengths(bar(1.0, 0.1, 90.0), bar(2.0)) == [
        (40.0, 4.0, 100.0, True),
        (80.0, None, None, False),
    ]


@pytest.mark.parametrize("texts", [[bar(None)], [bar(0.0)], [bar(0.0, 0.0, 0.0), bar(None)]])
def test_what_has_no_length_is_no_bar(texts):
    assert {b.length for b in draw_bars("batch 1", texts).bars} == {None}


def test_an_interval_below_zero_starts_at_the_edge():
    ((length, low, high, _),) = lengths(bar(1.0, -0.5, 1.25))
    assert (length, low, high) == (80.0, 0.0, 100.0)


def test_the_headlines_of_a_comparison_have_at_most_fifteen_words():
    shown = view()
    for section in shown.sections:
        rows = section.matrix.rows
        of_models = [
            model_headline([row for row in rows if row.model == name], section.matrix)
            for name in {row.model for row in rows}
        ]
        for told in (overall_headline(section.matrix), *of_models):
            # Names of sides may be of several words.
            words = told.removeprefix(told.about)
            for side in section.matrix.sides:
                words = words.replace(side.label, "side")
            assert len(words.split()) <= 15, told


def test_a_comparison_has_a_card_of_all_sides_and_one_of_each_model():
    shown = view()
    overall, *models = comparison_cards(shown)
    assert overall.lead.about == "overall: "
    assert [b.text.label for b in overall.groups[0].bars] == [
        side.label for side in shown.main.sides
    ]
    assert [card.lead.about for card in models] == [
        f"{name}: " for name in dict.fromkeys(row.model for row in shown.main.rows)
    ]
    said = {sentence for card in (overall, *models) for sentence in (*card.beside, *card.folded)}
    assert len(said) == len(shown.answer)
    for card, name in zip(models, dict.fromkeys(r.model for r in shown.main.rows), strict=True):
        rows = [row for row in shown.sections[0].matrix.rows if row.model == name]
        for group, row in zip(card.groups, rows, strict=False):
            best = [index for index, cell in enumerate(row.cells) if cell.best or cell.tie]
            assert [i for i, b in enumerate(group.bars) if b.text.kind == "best"] == best
            faint = [index for index, cell in enumerate(row.cells) if not cell.comparable]
            assert [i for i, b in enumerate(group.bars) if b.text.kind == "faint"] == faint
