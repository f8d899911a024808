"""The HTML report in a real browser: it runs without complaint, sorts and filters."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.report.page_reader import html_of

pytestmark = [pytest.mark.live, pytest.mark.needs("chromium")]

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=5000",
)


def browse(page: str, folder: Path, *, width: int = 800) -> tuple[str, list[str]]:
    """The document after its scripts ran, and what the browser said on its console."""
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    )
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            browser,
            *FLAGS,
            f"--window-size={width},900",
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return done.stdout, re.findall(r"CONSOLE[^\n]*", done.stderr)


def act(page: str, script: str, folder: Path, *, width: int = 800) -> dict[str, Any]:
    """What an added script returns, run behind the page's own; the policy is told its digest."""
    added = f"document.body.dataset.result = JSON.stringify((() => {{ {script} }})());"
    digest = base64.b64encode(hashlib.sha256(added.encode()).digest()).decode()
    assert page.count("script-src &#39;") == 1
    page = page.replace("script-src &#39;", f"script-src &#39;sha256-{digest}&#39; &#39;")
    page = page.replace("</body>", f"<script>{added}</script>\n</body>")
    document, console = browse(page, folder, width=width)
    assert console == []
    found = re.search(r'<body data-result="([^"]*)"', document)
    assert found is not None
    result = json.loads(html.unescape(found[1]))
    assert isinstance(result, dict)
    return result


#: One visit for all tests of the table: a browser takes seconds to start.
ACTIONS = """
const rows = () => [...document.querySelectorAll("#table tbody tr")];
const shown = () => rows().filter((row) => !row.hidden)
  .map((row) => row.querySelector("th").textContent);
const heading = (key) => document.querySelector(`th[data-key="${key}"]`);
const press = (key) => heading(key).querySelector("button").click();
const counted = () => document.getElementById("count").textContent;
const result = { sorted: [], filtered: [] };

for (let i = 0; i < 3; i += 1) {
  press("p50");
  result.sorted.push([heading("p50").getAttribute("aria-sort"), shown()]);
}
press("accuracy");
press("accuracy");
result.mostAccurate = shown()[0];
result.sortedColumns = [...document.querySelectorAll('th[aria-sort="descending"]')]
  .map((cell) => cell.dataset.key);

const search = document.getElementById("search");
const provider = document.querySelector('select[data-filter="provider"]');
const note = () => result.filtered.push([shown(), counted()]);
search.value = "Mobilenet emulated";
search.dispatchEvent(new Event("input"));
note();
search.value = "";
provider.value = "cuda";
provider.dispatchEvent(new Event("change"));
note();
search.value = "nothing has this";
search.dispatchEvent(new Event("input"));
note();

const buttons = [...document.querySelectorAll("#table thead button")];
buttons[2].focus();
result.buttons = buttons.length;
result.focused = document.activeElement.textContent;
result.scrollable = document.querySelector(".scroll").tabIndex;
result.wider = document.documentElement.scrollWidth > document.documentElement.clientWidth;
return result;
"""


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return act(html_of("ten"), ACTIONS, tmp_path_factory.mktemp("browser"))


@pytest.mark.parametrize(("name", "count"), [("ten", 10), ("hostile", 2)])
def test_the_page_runs_as_it_is_without_complaint(name: str, count: int, tmp_path: Path) -> None:
    document, console = browse(html_of(name), tmp_path)
    assert console == []
    assert f'<output id="count" aria-live="polite">{count} of {count} cases</output>' in document
    assert '<form class="filters" id="filters">' in document


def test_it_sorts_by_value_and_puts_what_was_not_measured_last(visit: dict[str, Any]) -> None:
    measured = [
        "native/openvino/b1",
        "native/cpu/b1",
        "int8-static/cpu/b1",
        "native/openvino/b1",
        "native/cpu/b1",
        "fp16/cpu/b1",
        "native/cpu/b8",
    ]
    failed = ["native/cuda/b1", "native/cuda/b8", "native/cpu/b8"]
    first, second, third = visit["sorted"]
    assert first == ["ascending", [*measured, *failed]]
    assert second == ["descending", [*reversed(measured), *failed]]
    assert third[0] == "none"
    assert third[1][0] == "native/cpu/b1"


def test_one_column_is_sorted_at_a_time_and_exact_is_most_accurate(visit: dict[str, Any]) -> None:
    assert visit["mostAccurate"] == "native/cpu/b1"
    assert visit["sortedColumns"] == ["accuracy"]


def test_it_filters_by_words_and_choices(visit: dict[str, Any]) -> None:
    assert visit["filtered"] == [
        [["fp16/cpu/b1"], "1 of 10 cases"],
        [["native/cuda/b1", "native/cuda/b8"], "2 of 10 cases"],
        [[], "0 of 10 cases"],
    ]


def test_the_keyboard_reaches_headings_and_the_scrolled_table(visit: dict[str, Any]) -> None:
    assert visit["buttons"] == 12
    assert visit["focused"] == "status"
    assert visit["scrollable"] == 0


def test_the_page_itself_does_not_scroll_sideways(visit: dict[str, Any]) -> None:
    assert visit["wider"] is False


def test_hostile_names_make_no_element(tmp_path: Path) -> None:
    script = """
      return {
        scripts: document.scripts.length,
        others: document.querySelectorAll("bold, script[src]").length,
        name: document.querySelector("#table tbody td").textContent,
      };
    """
    found = act(html_of("hostile"), script, tmp_path)
    assert (found["scripts"], found["others"]) == (2, 0)
    assert found["name"].startswith("=<script>alert(1)</script>|`[bold]x")
