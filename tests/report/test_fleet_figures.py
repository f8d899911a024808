"""Figures of comparisons by their parts."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from pytest_ortbench.analysis.fleet.facts import CaseFacts, RunFacts
from pytest_ortbench.report.figures.fleet import (
    course,
    figures,
    overall,
    pictures,
    workloads,
    write_figures,
)
from pytest_ortbench.report.figures.procurement import cost, cost_latency
from pytest_ortbench.report.fleet.view import build_view
from tests.analysis.fleet.runs import case, latency, run
from tests.report import fleet_views


def drawn(figure: Figure | None) -> Figure:
    assert figure is not None
    figure.draw_without_rendering()
    return figure


def ticks(figure: Figure, panel: int = 0) -> list[str]:
    return [label.get_text() for label in figure.axes[panel].get_yticklabels()]


def artists(figure: Figure) -> int:
    return sum(len(axes.lines) + len(axes.texts) for axes in figure.axes)


def test_sides_from_best_to_worst_against_the_baseline() -> None:
    figure = drawn(overall(fleet_views.view().main))
    assert ticks(figure) == ["rack", "desk", "edge"]
    assert figure.axes[0].get_xlabel() == "latency p50, ratio to desk"
    assert figure.axes[0].get_xscale() == "log"
    assert "smaller is better" in figure.get_supxlabel()


def test_each_workload_has_a_panel_with_units_and_variants() -> None:
    figure = drawn(workloads(fleet_views.view().sections[0].matrix))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "mobilenet_v2 b1",
        "mobilenet_v2 b8",
        "bert b1",
        "bert b8",
    ]
    assert ticks(figure) == [
        "rack int8-static/cpu",
        "desk int8-static/cpu",
        "edge native/cpu",
    ]
    assert {axes.get_xlabel() for axes in figure.axes} == {"latency p50 (ms)"}


def many(count: int) -> list[RunFacts]:
    def cases(index: int) -> list[CaseFacts]:
        medians = {f"m{number}": 1e-3 * (1 + index / 20) * (number + 1) for number in range(40)}
        return [case(latency(v, v * 1.01, v * 1.02), model=name) for name, v in medians.items()]

    return [run(f"host-{index}", *cases(index)) for index in range(count)]


def test_fifty_machines_stay_legible() -> None:
    view = build_view(many(50))
    for _, figure in figures(view):
        drawn(figure)
        assert figure.get_figheight() < 36
        assert artists(figure) < 600
        assert "not shown" in figure.get_supxlabel()


def test_over_time_the_canary_stands_beside() -> None:
    runs = [
        run("a", case(latency(v, v, v)), day=day, canary_s=1e-3 * v / 4)
        for day, v in ((1, 4.0), (2, 4.4), (3, 2.0))
    ]
    figure = drawn(course(build_view(runs, axis="time").main))
    labels = [line.get_ydata() for line in figure.axes[0].lines]
    assert any(list(values) == pytest.approx([1.0, 1.1, 0.5]) for values in labels)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["latency p50, geometric mean", "canary: the machine's part"]


def test_costs_have_currency_and_a_row_a_machine() -> None:
    figure = drawn(cost(fleet_views.costs()))
    assert figure.axes[0].get_xlabel() == "cost over 3 years (EUR)"
    assert sorted(ticks(figure)) == ["desk", "edge", "rack"]


def test_cost_against_latency_draws_the_front_through_what_nothing_beats() -> None:
    shown = fleet_views.costs()
    figure = drawn(cost_latency(shown))
    axes, tender = figure.axes[0], shown.tenders[0]
    assert axes.get_ylabel() == "cost over 3 years (EUR)"
    assert axes.get_xlabel() == "latency p50 (ms)"
    assert len(axes.lines[0].get_xdata()) == len(tender.front)


def test_hostile_names_are_drawn_not_run() -> None:
    view, costs = fleet_views.hostile()
    for _, data in pictures(view, costs):
        assert b"<script" not in data


def test_files(tmp_path) -> None:  # type: ignore[no-untyped-def]
    written = write_figures(fleet_views.view(), tmp_path / "plots", fleet_views.costs())
    assert [path.name for path in written if path.suffix == ".png"] == [
        "cost.png",
        "cost-latency.png",
        "overall.png",
        "workloads.png",
    ]
    assert all(path.stat().st_size > 5000 for path in written)


def test_nothing_to_draw() -> None:
    view = build_view([run("a", case(model="x")), run("b", case(model="x"))])
    assert list(figures(view)) == []
