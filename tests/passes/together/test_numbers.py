"""From rounds to a ratio with its interval, its rows and its table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.analysis.paired_ratio import PairedRatio, ratio_in_turns
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.together.facts import Together, TogetherLaunch
from pytest_ortbench.passes.together.report import together_tables
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.schema.meaning import faults_of
from tests.results_factory import make_result, make_run

MS = 1_000_000


def launch(factor: float, *, rounds: int = 9) -> TogetherLaunch:
    """Rounds of a machine that gets slower, each of which has the factor, but for small steps."""
    alone = [4 * MS * (1 + index) for index in range(rounds)]
    steps = [1 + (index - rounds // 2) / 1000 for index in range(rounds)]
    return TogetherLaunch(
        alone_ns=tuple(alone),
        beside_ns=tuple(round(ns * factor * step) for ns, step in zip(alone, steps, strict=True)),
        neighbour_runs=(5,) * rounds,
    )


def beside(*factors: float, way: str = "shared") -> Together:
    launches = tuple(launch(factor) for factor in factors)
    return Together(way=way, neighbours=("rec/native/cpu/b1",), launches=launches)


def test_rounds_are_paired_so_that_a_slow_minute_is_none_of_it() -> None:
    found = ratio_in_turns(beside(1.5, 1.5, 1.5))
    assert isinstance(found, PairedRatio)
    assert found.value == pytest.approx(1.5)
    assert 1.49 < found.low < 1.5 < found.high < 1.51
    assert found.rounds == 27
    assert found.above_s == pytest.approx(0.030, rel=0.01)
    assert found.below_s == pytest.approx(0.020)


def test_fresh_processes_that_differ_widen_the_interval() -> None:
    alike, apart = ratio_in_turns(beside(1.5, 1.5, 1.5)), ratio_in_turns(beside(1.2, 1.5, 1.8))
    assert isinstance(alike, PairedRatio)
    assert isinstance(apart, PairedRatio)
    assert apart.value == pytest.approx(1.5)
    assert apart.low < 1.2
    assert apart.high > 1.8
    one = ratio_in_turns(beside(1.5))
    assert isinstance(one, PairedRatio)
    assert one.high - one.low > alike.high - alike.low


def result_of(*together: Together) -> CaseResult:
    made = make_result()
    return replace(made, case=replace(made.case, together=("rec",)), together=together)


def test_each_way_is_a_metric_and_what_is_missing_says_why() -> None:
    result = result_of(beside(1.5, 1.5), Together(way="apart", reason="died"))
    summary = summarise(result)
    found = summary.quantities["interference_shared"]
    assert (found.value, found.unit, found.samples) == (pytest.approx(1.5), "1", 18)
    assert found.low is not None
    assert found.high is not None
    assert summary.missing["interference_apart"] == "died"
    alone = summarise(make_result())
    assert {"interference_shared", "interference_apart"} <= alone.missing.keys()


def test_the_table_has_a_row_for_each_way_that_was_measured() -> None:
    other = Together(way="apart", neighbours=("rec/native/cpu/b1",), reason="died")
    [table] = together_tables(shown_run(make_run([result_of(beside(1.5, 1.5), other)])))
    assert table.title.endswith(" beside rec/native/cpu/b1")
    assert [len(row) for row in table.rows] == [len(table.headings)]
    assert table.rows[0][3] == "×1.50"
    assert len(table.remarks) == 1
    assert together_tables(shown_run(make_run([make_result()]))) == ()


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"way": "elsewhere"}, "way"),
        ({"launches": ()}, "launches"),
        ({"neighbours": ()}, "neighbours"),
        ({"launches": (replace(launch(1.5), beside_ns=(1,)),)}, "beside_ns"),
        ({"launches": (replace(launch(1.5), neighbour_runs=(5,) * 8),)}, "neighbour_runs"),
        ({"launches": (replace(launch(1.5), neighbour_runs=(0,) * 9),)}, "neighbour_runs"),
        ({"launches": (replace(launch(1.5), alone_ns=(0,) * 9),)}, "alone_ns"),
        (
            {"launches": (TogetherLaunch(alone_ns=(), beside_ns=(), neighbour_runs=()),)},
            "alone_ns",
        ),
    ],
)
def test_what_no_reader_could_believe_is_a_fault(changes: dict[str, Any], place: str) -> None:
    sound = beside(1.5)
    assert list(faults_of(result_of(sound))) == []
    wrong = replace(sound, **changes)
    assert any(place in fault.path for fault in faults_of(result_of(wrong)))
