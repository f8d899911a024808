"""Pages fit: a usual window, a narrow one, and paper."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_ortbench.core.run import Run
from pytest_ortbench.fleet.numbers.facts import reduce_run
from pytest_ortbench.fleet.report.figures import pictures
from pytest_ortbench.fleet.report.html import render_comparison_html as render_comparison
from pytest_ortbench.fleet.report.view import build_view
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.html import render_html
from pytest_ortbench.store.documents import load
from tests.report.test_html_browser import act

pytestmark = [pytest.mark.live, pytest.mark.needs("chromium")]

EXAMPLE = Path(__file__).resolve().parents[2] / "results" / "example"
NAMES = ("run", "onnxruntime-1.20.1", "openvino")
#: Widths of A4 in CSS pixels, within margins of 10 mm: portrait and landscape.
PORTRAIT, LANDSCAPE = 718, 1047

BEYOND = """
const root = document.documentElement;
const beyond = (what) => [...document.querySelectorAll(what)]
  .map((each) => each.scrollWidth - each.clientWidth).filter((pixels) => pixels > 0);
return { width: innerWidth, tables: beyond(".scroll"), figures: beyond("figure"),
  page: root.scrollWidth - root.clientWidth };
"""
#: The rules for print, applied to the screen.
PRINTED = """
for (const sheet of document.styleSheets)
  for (const rule of sheet.cssRules)
    if (rule.media && rule.media.mediaText === "print") rule.media.mediaText = "all";
const right = [...document.querySelectorAll("table, figure img")]
  .map((each) => each.getBoundingClientRect().right);
return { width: innerWidth, right: Math.max(...right) };
"""


def example(name: str) -> Run:
    return load(EXAMPLE / f"{name}.json")


def comparison(times: int = 1) -> str:
    runs = [
        reduce_run(dataclasses.replace(run, run_id=f"{run.run_id}{number}"))
        for name in NAMES
        for run in (example(name),)
        for number in range(times)
    ]
    view = build_view(runs, axis="time" if times > 1 else "runtime")
    return render_comparison(view, pictures=pictures(view))


@pytest.mark.parametrize("name", NAMES)
def test_a_report_needs_no_sideways_scrolling_in_a_usual_window(name: str, tmp_path: Path) -> None:
    found = act(render_html(shown_run(example(name))), BEYOND, tmp_path, width=1280)
    assert found == {"width": 1280, "tables": [], "figures": [], "page": 0}


def test_nor_does_a_comparison(tmp_path: Path) -> None:
    found = act(comparison(), BEYOND, tmp_path, width=1280)
    assert found == {"width": 1280, "tables": [], "figures": [], "page": 0}


def test_figures_are_whole_in_a_narrow_window(tmp_path: Path) -> None:
    found = act(render_html(shown_run(example("run"))), BEYOND, tmp_path, width=500)
    assert (found["width"], found["figures"], found["page"]) == (500, [], 0)
    found = act(comparison(), BEYOND, tmp_path, width=500)
    assert (found["width"], found["figures"], found["page"]) == (500, [], 0)


def test_print_loses_no_column(tmp_path: Path) -> None:
    found = act(render_html(shown_run(example("openvino"))), PRINTED, tmp_path, width=PORTRAIT)
    assert found["width"] == PORTRAIT
    assert found["right"] <= PORTRAIT
    for times in (1, 3):
        found = act(comparison(times), PRINTED, tmp_path, width=LANDSCAPE)
        assert found["width"] == LANDSCAPE
        assert found["right"] <= LANDSCAPE
