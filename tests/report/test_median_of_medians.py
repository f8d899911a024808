"""p50 is the median of the workers' medians; page and figure say so and draw it so."""

from __future__ import annotations

import pytest

from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.figures.distribution import distribution, pooled
from tests import results_factory as factory
from tests.report.page_reader import html_without_figures
from tests.report.test_figures import drawn, note


def test_the_page_does_not_call_it_a_median_of_all_inferences() -> None:
    page = html_without_figures(factory.make_run([factory.make_result()]))
    assert "p50: the median of the worker processes' medians" in page
    assert "half of the inferences took at most this long" not in page


def test_rings_lie_on_the_pooled_curve_and_the_median_of_medians_is_a_mark_of_its_own() -> None:
    # The pooled median is 1 ms, that of the workers' medians 3 ms: two of three are slow, briefly.
    counts = {1: 4000, 3: 500, 4: 500}
    workers = [
        factory.make_measurement([ms * 1_000_000 + step for step in range(count)], worker=index)
        for index, (ms, count) in enumerate(counts.items())
    ]
    (entry,) = shown_run(factory.make_run([factory.make_result(measurements=workers)])).entries
    curve, _ = drawn(distribution((entry,))).axes
    _, p90, _, interval, p50 = curve.lines
    durations, share = pooled(entry)
    level = share[durations <= float(p90.get_xdata()[0]) / 1e3 + 1e-12].max()  # type: ignore[index, arg-type]
    assert level == pytest.approx(0.9, abs=0.001)
    assert float(p50.get_xdata()[0]) == pytest.approx(3.0, rel=1e-3)  # type: ignore[index, arg-type]
    quantity = entry.quantity("latency_p50")
    assert quantity is not None
    assert [float(end) / 1e3 for end in interval.get_xdata()] == [  # type: ignore[union-attr, arg-type]
        pytest.approx(quantity.low),
        pytest.approx(quantity.high),
    ]
    assert "p50, the median of the workers' medians" in note(curve.figure)  # type: ignore[arg-type]
