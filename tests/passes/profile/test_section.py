"""The page's section on where the time goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.passes.profile.facts import OperatorProfile
from pytest_ortbench.passes.profile.report import (
    NODES,
    PROFILES,
    TYPES,
    profile_block,
    profile_lines,
    profile_section,
)
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.html import render_html
from tests import results_factory as factory
from tests.passes.profile import profiled_runs
from tests.report import sample_runs
from tests.report.page_reader import html_without_figures, read_page
from tests.report.test_html_browser import act, browse


def one_space(text: str) -> str:
    return " ".join(text.split())


def test_each_case_has_its_tables_hints_and_rates() -> None:
    run = profiled_runs.one_case()
    html = html_without_figures(run)
    page = read_page(html)
    assert page.open_tags == []
    text = one_space(page.text)
    assert "Where the time goes" in text
    (result,) = run.cases
    assert result.profile is not None
    lines = profile_lines("mobilenet_v2/native/cpu/b1", result.profile, top=TYPES)
    # The same words as in the terminal: summary, rates, and hints; and every cell of the tables.
    assert one_space(lines[0].partition(": ")[2]) in text
    for line in lines:
        if line.startswith("  - ") or line.startswith(("  the run: ", "  peak of ")):
            assert one_space(line).removeprefix("- ") in text
    assert '<th scope="row">Conv</th><td>cpu</td><td class="n">53</td>' in html
    for words in ("(2 more types)", "(between nodes)", "of peak", "Slowest nodes"):
        assert words in text
    regions = [values.get("aria-label") for tag, values in page.tags if tag == "div"]
    assert "By operator type: mobilenet_v2/native/cpu/b1" in regions
    targets = [values.get("href") for tag, values in page.tags if tag == "a"]
    assert "#profiles" in targets
    assert "#figures" in targets


def test_tables_are_cut_and_rows_fit_their_headings() -> None:
    (entry,) = shown_run(profiled_runs.one_case()).entries
    block = profile_block(entry)
    (_, types), (_, nodes) = block.tables
    assert len(types.rows) == TYPES + 2  # further types, and the time between nodes
    assert len(nodes.rows) == NODES
    for table in (types, nodes):
        assert {len(row) for row in table.rows} == {len(table.headings)}


def test_a_profile_that_failed_has_its_reason_and_one_that_was_not_asked_for_nothing() -> None:
    failed = replace(factory.make_result(), profile=OperatorProfile(reason="crash: it died"))
    text = one_space(read_page(html_without_figures(factory.make_run([failed]))).text)
    assert "no operator profile: crash: it died" in text
    assert 'id="profiles"' not in html_without_figures(sample_runs.one_case())


def test_a_case_on_two_providers_says_what_each_took() -> None:
    (result,) = profiled_runs.one_case().cases
    assert result.profile is not None
    first, *others = result.profile.operators
    half = replace(first, provider=profiled_runs.CUDA, time_ns=result.profile.run_ns // 2)
    profile = replace(result.profile, operators=(half, *others))
    (entry,) = shown_run(factory.make_run([replace(result, profile=profile)])).entries
    block = profile_block(entry)
    assert block.facts[0].startswith("by provider: cuda 50.0 %, cpu ")


@pytest.mark.live
def test_hundreds_of_profiles_are_counted_and_stay_small() -> None:
    run = profiled_runs.three_hundred_cases()
    section = profile_section(shown_run(run).entries)
    assert section is not None
    assert (len(section.blocks), section.left_out) == (PROFILES, 282 - PROFILES)
    page = render_html(shown_run(run))
    assert page.count("By operator type</caption>") == PROFILES
    assert f"{282 - PROFILES} further profiles are in the run document." in page
    assert len(page) - len(render_html(shown_run(sample_runs.three_hundred_cases()))) < 2_000_000


def test_hostile_names_are_text() -> None:
    page = html_without_figures(profiled_runs.with_profiles(sample_runs.hostile()))
    assert "<script>alert" not in page
    assert read_page(page).open_tags == []


@pytest.mark.live
@pytest.mark.needs("chromium")
def test_a_browser_shows_it_without_complaint_and_without_scrolling_sideways(
    tmp_path: Path,
) -> None:
    page = html_without_figures(profiled_runs.ten_cases())
    document, console = browse(page, tmp_path)
    assert console == []
    assert document.count("<caption>By operator type</caption>") == 7
    found = act(
        page,
        "const open = document.querySelectorAll('#profiles details[open]').length;"
        "document.querySelectorAll('#profiles details').forEach(each => each.open = true);"
        "return {open, wide: document.documentElement.scrollWidth"
        " - document.documentElement.clientWidth};",
        tmp_path,
    )
    assert found == {"open": 2, "wide": 0}
