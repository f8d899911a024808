"""An interval that is wider than its value is a word, everywhere alike; the numbers stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.rows import row
from pytest_ortbench.analysis.sentences import factor_text, with_interval
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.interval import UNSTABLE, is_unstable
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.report.cells import ALL_COLUMNS, texts
from pytest_ortbench.report.entries import by_model, shown_run
from pytest_ortbench.report.legend import includes, is_unstable_row
from tests.results_factory import draw_durations, make_measurement, make_result, make_run

WIDE = Quantity(value=0.0142, unit="s", low=0.000225, high=0.321)
NARROW = Quantity(value=0.0142, unit="s", low=0.0138, high=0.0151)


@pytest.mark.parametrize(
    ("value", "low", "high", "unstable"),
    [
        (14.2, 0.225, 321.0, True),
        (187.0, 53.0, 516.0, True),
        (10.0, 5.0, 15.1, True),
        (10.0, 5.0, 15.0, False),
        (10.0, 9.0, 11.0, False),
        (10.0, None, None, False),
        (10.0, 9.0, None, False),
        (0.0, 0.0, 5.0, False),  # nothing that a share could be taken of
        (0.1, -5.0, 6.0, False),  # a growth, which may be negative
    ],
)
def test_an_interval_is_unstable_that_is_wider_than_its_value(
    value: float, low: float | None, high: float | None, unstable: bool
) -> None:
    assert is_unstable(value, low, high) is unstable


def test_every_sentence_says_it_alike() -> None:
    assert str(WIDE) == with_interval(WIDE) == "14.2 ms (unstable)"
    assert factor_text(1.8, 0.4, 5.0) == "×1.80 (unstable)"
    assert UNSTABLE in parse_limit("latency_p50 <= 1 ms", place="").explain(WIDE)
    assert with_interval(NARROW) == "14.2 ms [13.8, 15.1]"
    assert factor_text(1.8, 1.7, 1.9) == "×1.80 [×1.70, ×1.90]"


def test_the_table_says_it_and_the_row_keeps_the_numbers() -> None:
    measurements = tuple(
        make_measurement(draw_durations(median_ns=median_ns, seed=worker), worker=worker)
        for worker, median_ns in enumerate((1_000_000, 14_000_000, 300_000_000))
    )
    run = make_run([replace(make_result(), measurements=measurements)])
    shown = shown_run(run)
    (entry,) = shown.entries
    (group,) = by_model(shown.entries)
    (cells,) = texts(group, (ALL_COLUMNS["interval"],))
    assert cells == {"interval": UNSTABLE}
    assert is_unstable_row(entry)
    assert any(sentence.startswith(UNSTABLE) for sentence in includes(shown.entries))
    cells_of_row = row(run.cases[0], run, summarise(run.cases[0]))
    assert isinstance(cells_of_row["latency_p50_low_s"], float)
    assert not is_unstable_row(shown_run(make_run()).entries[0])
