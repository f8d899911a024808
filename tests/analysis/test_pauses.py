"""A mean far above the median, which explains a throughput that the median does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.pauses import pauses
from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.report.answers import pause_lines
from pytest_ortbench.report.entries import shown_run
from tests.results_factory import make_measurement, make_result, make_run


def with_mean(factor: float) -> Summary:
    summary = summarise(make_result())
    median = summary.quantities["latency_p50"]
    mean = Quantity(value=factor * median.value, unit="s")
    return replace(summary, quantities={**summary.quantities, "latency_mean": mean})


@pytest.mark.parametrize(("factor", "is_told"), [(1.0, False), (1.9, False), (2.1, True)])
def test_only_a_large_gap_is_told(factor: float, is_told: bool) -> None:
    assert [entry.factor for entry in pauses([with_mean(factor)])] == pytest.approx(
        [factor] if is_told else []
    )


def test_without_a_mean_nothing_is_told() -> None:
    summary = with_mean(5.0)
    quantities = {k: v for k, v in summary.quantities.items() if k != "latency_mean"}
    assert not list(pauses([replace(summary, quantities=quantities)]))


def test_long_pauses_stand_in_the_answer() -> None:
    durations = [100_000] * 380 + [20_000_000] * 20
    held_up = [make_measurement(durations, worker=worker) for worker in range(3)]
    shown = shown_run(make_run([make_result(measurements=held_up), make_result()]))
    (line,) = pause_lines(shown)
    (entry,) = pauses(shown.summaries)
    assert entry.p99 is not None
    assert entry.p99.value == pytest.approx(0.02)
    assert entry.factor == pytest.approx((380 * 0.1 + 20 * 20) / 400 / 0.1, rel=0.01)
    assert shown.name_of(entry.summary.case) in line
