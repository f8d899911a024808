"""Comparisons and costs in every output: one answer, equal numbers, inert names."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import re
from functools import cache

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.procurement.figure import Figure
from pytest_ortbench.fleet.report import csv as fleet_csv
from pytest_ortbench.fleet.report import procurement
from pytest_ortbench.fleet.report.figures import pictures
from pytest_ortbench.fleet.report.html import render_comparison_html
from pytest_ortbench.fleet.report.markdown import render_comparison_markdown
from pytest_ortbench.fleet.report.procurement import with_costs
from pytest_ortbench.fleet.report.table import render_comparison_table
from pytest_ortbench.fleet.report.view import HOLE, ComparisonView, build_view
from tests.report import fleet_views
from tests.report.fleet_views import costs, hostile, view
from tests.report.page_reader import read_page
from tests.report.test_markdown import cells_of


@cache
def page() -> str:
    shown = with_costs(view(), costs())
    return render_comparison_html(shown, pictures=pictures(view(), costs()))


def one_space(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("priced", [False, True])
def test_the_answer_is_one_and_the_same_everywhere(priced: bool) -> None:
    shown = with_costs(view(), costs()) if priced else view()
    assert len(shown.answer) > 3
    terminal = render_comparison_table(shown, width=500, color=False).splitlines()
    assert terminal[-len(shown.answer) :] == list(shown.answer)
    markdown = render_comparison_markdown(shown).splitlines()
    first = markdown[2 : 2 + len(shown.answer)]
    assert [line.removeprefix("- ") for line in first] == list(shown.answer)
    text = one_space(read_page(page() if priced else render_comparison_html(shown)).text)
    heading = "What to buy" if priced else "Recommended variants, and which side is best"
    start = text.rindex(heading) if priced else text.index(heading)
    block = text[start : start + 6000]
    for sentence in shown.answer:
        assert one_space(sentence) in block


def test_what_to_buy_comes_before_what_is_fastest() -> None:
    priced = with_costs(view(), costs())
    assert priced.answer[0].about.startswith("mobilenet_v2 b1, 900 requests/s")
    assert [told.winner for told in priced.aside] == ["rack"]
    # What is fastest stands with the overview that says so, above the tables.
    for rendered in (
        render_comparison_table(priced, width=500, color=False),
        render_comparison_markdown(priced),
    ):
        lines = [line.removeprefix("- ") for line in rendered.splitlines()]
        assert lines.count(priced.aside[0]) == 1
    lines = render_comparison_table(priced, width=500, color=False).splitlines()
    assert lines.index(priced.aside[0]) < lines.index("Case by case")
    assert lines[-1] == priced.answer[-1]


def test_numbers_are_equal_in_csv_markdown_terminal_and_html() -> None:
    exact = {
        (line["side"], line["model"], line["row"]): line
        for line in csv.DictReader(io.StringIO(fleet_csv.render_comparison_csv(view())))
        if line["table"] == "cases"
    }
    assert len(exact) == 3 * 8
    markdown = render_comparison_markdown(view())
    table = markdown[markdown.index("### Case by case") :]
    headings, *body = cells_of(table)
    reader = read_page(page())
    html = {
        (cells[0][0], cells[1][0]): cells[2:]
        for cells in reader.rows
        if len(cells) == 5 and cells[0][0] in ("mobilenet_v2", "bert") and "/" in cells[1][0]
        if cells[1][0].count("/") == 2
    }
    checked = 0
    for cells in body:
        for side, text in zip(headings[2:], cells[2:], strict=True):
            line = exact[side, cells[0], cells[1]]
            column = headings[2:].index(side)
            shown, sort_value = html[cells[0], cells[1]][column]
            if not line["value"]:
                assert text == HOLE
                assert HOLE in shown
                continue
            number = re.match(r"([\d.]+) (ms|µs)", text)
            assert number is not None
            value = float(number[1]) * {"ms": 1e-3, "µs": 1e-6}[number[2]]
            assert value == pytest.approx(float(line["value"]), rel=5.1e-3)
            assert number[0] in shown
            if line["ratio"] and line["is_baseline"] == "0":
                ratio = re.search(r"×([\d.]+) \[([\d.]+), ([\d.]+)\]", text)
                assert ratio is not None
                assert float(ratio[1]) == pytest.approx(float(line["ratio"]), rel=5.1e-3)
                assert float(ratio[2]) == pytest.approx(float(line["ratio_low"]), rel=5.1e-3)
                assert ratio[0] in shown
            if not line["reason"]:
                assert float(sort_value) == float(line["value"])
            checked += 1
    assert checked == 20


def test_a_hole_says_why_and_a_barred_number_keeps_its_reason() -> None:
    assert "4 × crash: the worker died (edge)" in view().holes
    assert any(text.startswith("4 × INACCURATE (desk, rack)") for text in view().holes)
    text = render_comparison_markdown(view())
    assert re.search(r"bert \| int8-static/cpu/b1 .*\[INACCURATE\]", text)
    terminal = render_comparison_table(view(), width=200, color=False)
    # The baseline's own, too: a bare number there would read as one that may be compared.
    assert re.search(r"int8-static/cpu/b1 +\(1.59 ms\) +\(0.794 ms\)", terminal)


def test_the_terminal_keeps_its_width_where_many_sides_do_not_fit() -> None:
    wide = render_comparison_table(view(), width=170, color=False)
    assert "×0.500 [0.4" in wide
    narrow = render_comparison_table(view(), width=80, color=False)
    assert all(len(line) <= 80 for line in narrow.splitlines())
    table = narrow[narrow.index("Case by case") :]
    assert "×0.500" in table[: table.index("Ratios:")]
    assert "[0.4" not in table[: table.index("Ratios:")]
    # The best is marked without colour too.
    assert re.search(r"×0\.500 \*", table)


def lone() -> ComparisonView:
    """A baseline that lacks what the other sides have."""
    return build_view(fleet_views.machines(), baseline="edge")


@pytest.mark.parametrize("width", [80, 100, 400])
def test_of_a_rate_the_headings_say_what_is_counted(width: int) -> None:
    text = render_comparison_table(
        build_view(fleet_views.machines(), metric="throughput"), width=width, color=False
    )
    assert "\nBest variant of each machine (items/s)\n" in text
    assert "\nCase by case (items/s)\n" in text
    (row,) = re.findall(r"mobilenet_v2 +native/cpu/b1 +(\d+)", text)
    assert int(row) == pytest.approx(250, rel=0.02)


@pytest.mark.parametrize("width", [80, 100, 400])
def test_a_number_without_a_baseline_is_shown_at_any_width(width: int) -> None:
    text = render_comparison_table(lone(), width=width, color=False)
    table = text[text.index("Case by case") : text.index("Of 8 cases")]
    (row,) = re.findall(r"mobilenet_v2 +int8-static/cpu/b1 (.*)", table)
    # The slow one twice as long as the fast one, the baseline a hole.
    assert "1.61 ms" in row
    assert HOLE in row
    assert "0.804 ms *" in row


def test_every_cell_of_the_terminal_is_a_number_or_a_hole() -> None:
    text = render_comparison_table(lone(), width=100, color=False)
    table = text[text.index("Case by case") : text.index("Of 8 cases")]
    for line in table.splitlines()[2:]:
        if line:
            cells = re.split(r" {2,}", line.strip())
            assert len(cells) == 5, line


def test_counts_explain_themselves_and_agree() -> None:
    text = render_comparison_table(view(), width=200, color=False)
    assert re.search(r"^desk +6 of 8 ", text, re.MULTILINE)
    assert re.search(r"^edge +4 of 8 ", text, re.MULTILINE)
    counted = (
        "Of 8 cases, 4 have a number that can be compared on every side; the geometric mean is "
        "over those."
    )
    assert counted in one_space(text)
    assert counted in render_comparison_markdown(view())
    assert counted in one_space(read_page(render_comparison_html(view())).text)


def test_what_all_sides_are_is_said_once_and_not_in_a_column() -> None:
    shown = view()
    assert shown.abouts
    runs = [dataclasses.replace(run, machine={"cpu": "one"}) for run in fleet_views.machines()]
    alike = build_view(runs, axis="machine")
    assert alike.abouts == ()
    assert alike.shared
    page = read_page(render_comparison_html(alike)).text
    assert "what it is" not in page
    assert page.count(alike.shared) == 1
    assert "what it is" not in render_comparison_table(alike, width=200, color=False)
    assert "what it is" not in render_comparison_markdown(alike)


def test_a_reason_stands_once_in_a_row_and_in_short() -> None:
    runs = [
        fleet_views.machine(host, factor, day, crashed="int8-static")
        for host, factor, day in (("desk", 1.0, 1), ("rack", 0.5, 2))
    ]
    html = render_comparison_html(build_view(runs))
    rows = re.findall(r"<tr data-model=.*?</tr>", html, re.DOTALL)
    holes = [row for row in rows if "int8-static" in row]
    assert len(holes) == 4
    for row in holes:
        assert re.findall(r'<span class="note">(.*?)</span>', row) == ["crash"]
        assert row.count('title="crash: the worker died"') == 2


def test_rows_beyond_the_limit_are_counted() -> None:
    text = render_comparison_table(view(), width=120, color=False, rows=3)
    assert "and 5 more rows" in text
    assert "and 5 more rows" not in render_comparison_table(view(), width=120, color=False, rows=0)


def test_colours_only_where_asked() -> None:
    assert "\x1b[" in render_comparison_table(view(), width=120, color=True)
    assert "\x1b[" not in render_comparison_table(view(), width=120, color=False)


def test_an_encoding_without_our_signs_gets_stand_ins() -> None:
    render_comparison_table(view(), width=120, color=False, encoding="ascii").encode("ascii")


def test_costs_in_csv_are_those_of_the_tables() -> None:
    lines = list(csv.DictReader(io.StringIO(procurement.render_procurement_csv(costs()))))
    assert len(lines) == sum(len(tender.variants) for tender in costs().tenders)
    best = {
        (line["model"], line["workload"], line["machine"]): line
        for line in lines
        if line["best_of_machine"] == "1"
    }
    for tender in costs().tenders:
        for offer in tender.offers:
            line = best[tender.model, tender.label, offer.economics.machine.name]
            assert line["rank"] == offer.mark
            if offer.economics.cost is not None:
                assert float(line["cost"]) == offer.economics.cost.value
                assert float(line["cost_low"]) == offer.economics.cost.low
            else:
                assert line["cost"] == ""
                assert line["missing"]


@pytest.mark.parametrize(
    ("units", "text"),
    [
        (Figure(value=1, low=1, high=1), "1"),
        (Figure(value=1, low=1, high=2), "1 (1 to 2)"),
        (Figure(value=2, low=2, high=2), "2"),
        (Figure(value=3, low=2, high=math.inf), "3 (2 or more)"),
    ],
)
def test_a_column_of_machines_holds_numbers_alone(units: Figure, text: str) -> None:
    (first, *tenders) = costs().tenders
    (offer, *offers) = first.offers
    economics = dataclasses.replace(offer.economics, units=units)
    first = dataclasses.replace(
        first, offers=(dataclasses.replace(offer, economics=economics), *offers)
    )
    shown = dataclasses.replace(costs(), tenders=(first, *tenders))
    block = procurement.blocks(shown)[0]
    assert block.rows[0][block.headings.index("machines")] == text


def test_energy_of_a_device_alone_is_marked() -> None:
    block = procurement.blocks(costs())[0]
    index = block.headings.index("items/s per W")
    cells = {row[1]: row[index] for row in block.rows}
    assert cells["edge"].endswith("(device)")
    assert not cells["desk"].endswith("(device)")


def test_the_page_is_sealed_and_names_no_address() -> None:
    text = page()
    assert "default-src 'none'" in text or "default-src &#39;none&#39;" in text
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text)
    assert text.count("<script") == 1


def test_hostile_names_are_inert_in_every_output() -> None:
    shown, priced = hostile()
    shown = with_costs(shown, priced)
    html = render_comparison_html(shown, pictures=pictures(*hostile()))
    reader = read_page(html)
    tags = [tag for tag, _ in reader.tags]
    assert tags.count("script") == 1
    assert "bold" not in tags
    assert "=<script>alert(1)</script>" in reader.text
    terminal = render_comparison_table(shown, width=200, color=False)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", terminal)
    for line in render_comparison_markdown(shown).splitlines():
        assert "<script" not in line
        assert "`" not in line
    for text in (
        fleet_csv.render_comparison_csv(shown),
        procurement.render_procurement_csv(priced),
    ):
        rows = list(csv.reader(io.StringIO(text)))
        assert len({len(row) for row in rows}) == 1
        assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)


def test_tables_of_markdown_have_as_many_cells_in_every_row() -> None:
    shown, priced = hostile()
    widths: list[int] = []
    for line in render_comparison_markdown(with_costs(shown, priced)).splitlines():
        if line.startswith("| "):
            widths.append(len(re.findall(r"(?<!\\)\|", line)))
        elif widths:
            assert len(set(widths)) == 1
            widths = []


def test_one_side_is_no_comparison() -> None:
    with pytest.raises(UsageError, match="there is only one machine in these runs: desk"):
        build_view(fleet_views.machines()[:1], axis="machine")


def test_unknown_metrics_and_baselines_are_named() -> None:
    with pytest.raises(UsageError, match="'latency' is not a metric"):
        build_view(fleet_views.machines(), metric="latency")
    with pytest.raises(UsageError, match=r"'dusk' is not a machine of these runs.*'desk'"):
        build_view(fleet_views.machines(), baseline="dusk")


def test_another_baseline_turns_the_ratios() -> None:
    shown = build_view(fleet_views.machines(), baseline="rack")
    mean = shown.main.overall[0].ratio
    assert mean is not None
    assert mean.value == pytest.approx(2, rel=0.02)
