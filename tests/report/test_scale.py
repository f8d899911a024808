"""Documents far larger than most: pages stay small, and comparisons keep no samples."""

from __future__ import annotations

import pytest

from pytest_ortbench.fleet.numbers.facts import reduce_run
from pytest_ortbench.fleet.report.html import render_comparison_html as render_comparison
from pytest_ortbench.fleet.report.view import build_view
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.html import render_html
from tests.fleet.numbers.runs import case, latency, run
from tests.report import sample_runs

pytestmark = pytest.mark.live

#: What a page may weigh, and what its figures do at most.
LIMIT, FIGURES = 15_000_000, 5_000_000


def test_two_thousand_cases_make_a_page_below_fifteen_megabytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Figures show a part of the cases, the same at 300 as at 2,000; here they would only cost time.
    monkeypatch.setattr("pytest_ortbench.report.html.page.figures", lambda *_, **__: iter(()))
    html = render_html(shown_run(sample_runs.many_cases(2000, samples=40, workers=1)))
    assert len(html.encode()) < LIMIT - FIGURES
    assert html.count("<tr data-model=") == 2000


def test_fifty_machines_with_two_hundred_cases_make_a_page_below_fifteen_megabytes() -> None:
    medians = {f"model_{index}": 1e-3 * (index + 1) for index in range(200)}
    runs = [
        run(
            f"machine-{number}",
            *(case(latency(v, v * 1.01, v * 1.02), model=name) for name, v in medians.items()),
        )
        for number in range(50)
    ]
    html = render_comparison(build_view(runs))
    assert len(html.encode()) < LIMIT
    assert html.count("<td") > 50 * 200


@pytest.mark.parametrize("service", [False, True])
def test_what_is_kept_of_a_run_holds_no_samples(service: bool) -> None:
    small, large = (
        reduce_run(sample_runs.many_cases(3, samples=count), percentiles=True, service=service)
        for count in (600, 2400)
    )
    # The same number of values, however many samples there were.
    assert [len(one.quantities) for one in small.cases] == [
        len(one.quantities) for one in large.cases
    ]
    assert [len(one.service_s) for one in small.cases] == [
        len(one.service_s) for one in large.cases
    ]
