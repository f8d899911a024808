"""Tuned and untuned rows beside each other, with the search apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.report.blocks import pass_tables
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.tuning import tuned_pairs
from tests.results_factory import make_case, make_result, make_run

MS = 1_000_000


def row(
    position: str, median_ms: float, first_ms: int, *, create_ms: int = 20, **changes: object
) -> CaseResult:
    """A case of CUDA in one position."""
    case = replace(make_case(provider="cuda"), knobs={"tuning": position} if position else {})
    made = make_result(
        case=replace(case, **changes),  # type: ignore[arg-type]  # fields of a case
        median_ns=round(median_ms * MS),
        spread=0.002,
        workers=6,
    )
    workers = tuple(
        replace(
            worker,
            startup=replace(
                worker.startup,
                first_inference_ns=first_ms * MS,
                session_create_ns=create_ms * MS,
            ),
        )
        for worker in made.measurements
    )
    return replace(made, measurements=workers, flags=())


def test_a_search_stands_apart_and_pays_after_so_many_inferences() -> None:
    [pair] = tuned_pairs([summarise(row("off", 4.0, 50)), summarise(row("on", 2.0, 3050))])
    assert pair.name == make_case(provider="cuda").case_id
    assert pair.latency is not None
    assert pair.latency.value == pytest.approx(0.5, rel=0.01)
    assert pair.search_s == pytest.approx(3.0)
    assert pair.pays_after == pytest.approx(1500, rel=0.02)


def test_a_search_while_the_session_is_created_is_the_same() -> None:
    slow = row("on", 2.0, 50, create_ms=3020)
    [pair] = tuned_pairs([summarise(row("off", 4.0, 50)), summarise(slow)])
    assert pair.search_s == pytest.approx(3.0)
    assert pair.pays_after == pytest.approx(1500, rel=0.02)


@pytest.mark.parametrize("tuned_ms", [4.0, 5.0])
def test_a_search_that_gains_nothing_never_pays(tuned_ms: float) -> None:
    [pair] = tuned_pairs([summarise(row("off", 4.0, 50)), summarise(row("on", tuned_ms, 3050))])
    assert pair.pays_after is None
    assert pair.search_s == pytest.approx(3.0)


def test_of_a_search_that_was_not_seen_nobody_knows_when_it_pays() -> None:
    [pair] = tuned_pairs([summarise(row("off", 4.0, 80)), summarise(row("on", 2.0, 50))])
    assert pair.latency is not None
    assert not pair.latency.tie
    assert pair.pays_after is None


def test_only_cases_that_are_alike_but_for_the_search_are_pairs() -> None:
    failed = make_result(status="crash", case=row("off", 4.0, 50).case)
    for others in ([row("off", 4.0, 50, batch=8)], [row("", 4.0, 50)], [failed], []):
        assert tuned_pairs([summarise(one) for one in (row("on", 2.0, 3050), *others)]) == []


def test_a_search_that_is_lost_in_noise_takes_no_number() -> None:
    run = make_run([row("off", 4.0, 80), row("on", 2.0, 50)])
    [table] = [table for table in pass_tables(shown_run(run)) if table.title == "tuning"]
    [cells] = table.rows
    took = dict(zip(table.headings, cells, strict=True))["tuning took"]
    assert [letter for letter in took if letter.isdigit()] == []


def test_the_table_is_there_where_there_is_a_pair() -> None:
    run = make_run([row("off", 4.0, 50), row("on", 2.0, 3050)])
    [table] = [table for table in pass_tables(shown_run(run)) if table.title == "tuning"]
    assert [len(cells) for cells in table.rows] == [len(table.headings)]
    assert pass_tables(shown_run(make_run([row("on", 2.0, 3050)]))) == ()
