"""The page of a comparison in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.fleet.report.html import render_comparison_html
from pytest_ortbench.fleet.report.procurement import with_costs
from tests.report.fleet_views import costs, hostile, view
from tests.report.test_html_browser import act

pytestmark = [pytest.mark.live, pytest.mark.needs("chromium")]

ACTIONS = """
const rows = () => [...document.querySelectorAll("#table tbody tr")].filter((row) => !row.hidden);
const press = (name) => [...document.querySelectorAll("#table thead button")]
  .find((button) => button.textContent === name).click();
const result = { before: rows().length };
press("rack");
result.ascending = rows().map((row) => row.cells[3].dataset.v || null);
press("edge");
result.holes = rows().map((row) => row.cells[4].classList.contains("hole"));
const search = document.getElementById("search");
search.value = "int8 mobilenet";
search.dispatchEvent(new Event("input"));
result.found = rows().map((row) => row.querySelector("th").textContent);
result.count = document.getElementById("count").textContent;
result.wider = document.documentElement.scrollWidth > document.documentElement.clientWidth;
return result;
"""


def test_it_sorts_and_filters_without_complaint(tmp_path: Path) -> None:
    found = act(render_comparison_html(with_costs(view(), costs())), ACTIONS, tmp_path)
    assert found["before"] == 8
    values = [float(value) for value in found["ascending"] if value is not None]
    assert len(values) == 6
    assert values == sorted(values)
    # What must not be compared, and what is not there, goes last.
    assert found["ascending"][-2:] == [None, None]
    assert found["holes"] == [False] * 4 + [True] * 4
    assert found["found"] == ["int8-static/cpu/b1", "int8-static/cpu/b8"]
    assert found["count"] == "2 of 8 cases"
    assert found["wider"] is False


def test_hostile_names_make_no_element(tmp_path: Path) -> None:
    script = """
      return {
        scripts: document.scripts.length,
        others: document.querySelectorAll("bold, script[src]").length,
      };
    """
    found = act(render_comparison_html(with_costs(*hostile())), script, tmp_path)
    assert (found["scripts"], found["others"]) == (2, 0)
