"""Figures of requests: what a line joins, and what is drawn of tokens by position."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.passes.generation.figures import (
    by_position,
    draw_depth,
    draw_positions,
    draw_prompt,
    draw_quality,
    length_courses,
)
from pytest_ortbench.report.entries import Entry, shown_run
from pytest_ortbench.report.figures import figures
from tests.passes.generation.generated import make_generated, make_generating_case, make_request
from tests.results_factory import make_result, make_run


def generated(**asked: int) -> CaseResult:
    requests = [make_request((20, 2, 3, 4))] * 5
    return make_generated([requests] * 3, case=make_generating_case(**asked))


def shown(*results: CaseResult) -> tuple[Entry, ...]:
    return shown_run(make_run(results)).entries


def test_a_line_joins_cases_that_differ_in_one_length() -> None:
    entries = shown(
        generated(depth=256), generated(), generated(prompt=64), generated(depth=256, batch=4)
    )
    (course,) = length_courses(entries, "depth")
    assert [length for length, _ in course.points] == [0, 256]
    assert course.label == "native/cpu/b1, prompt 16"
    (course,) = length_courses(entries, "prompt")
    assert [length for length, _ in course.points] == [16, 64]


def test_a_single_length_draws_nothing() -> None:
    entries = shown(generated(), make_result())
    assert draw_depth(entries) is None
    assert draw_prompt(entries) is None
    assert draw_positions(shown(make_result())) is None


def test_positions_hold_the_median_of_each_token_but_the_first() -> None:
    spreads = by_position([make_request((20, 2, 3)), make_request((90, 4, 3))])
    assert [spread.position for spread in spreads] == [2, 3]
    assert spreads[0].middle == pytest.approx(0.003)
    assert (spreads[0].low, spreads[0].high) == pytest.approx((0.002, 0.004))


def test_shorter_requests_say_nothing_of_later_positions() -> None:
    spreads = by_position([make_request((20, 2)), make_request((20, 2, 9))])
    assert spreads[1].middle == pytest.approx(0.009)


def test_quality_is_drawn_where_two_cases_differ_in_it() -> None:
    entries = shown(generated(), generated(batch=4))
    assert draw_quality(entries) is None
    known = [
        replace(
            entry,
            summary=replace(
                entry.summary,
                quantities={
                    **entry.summary.quantities,
                    "logits_kl": Quantity(value=value, unit="1"),
                },
            ),
        )
        for entry, value in zip(entries, (0.0, 0.2), strict=True)
    ]
    assert draw_quality(known) is not None


def test_figures_of_inferences_hold_no_requests() -> None:
    drawn = dict(figures(shown(generated(), generated(depth=256))))
    assert "latency" not in drawn
    assert {"generation-depth", "generation-tokens", "memory"} <= set(drawn)
