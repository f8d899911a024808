"""Figures of comparisons by their parts."""

from __future__ import annotations

import csv
import io

import pytest
from matplotlib.figure import Figure
from matplotlib.markers import CARETRIGHT, CARETUP

from pytest_ortbench.fleet.numbers.facts import CaseFacts, RunFacts
from pytest_ortbench.fleet.procurement.machines import PricedMachine, Terms
from pytest_ortbench.fleet.report.figures import (
    comparison_figures,
    course,
    draw_overall,
    draw_workloads,
    pictures,
    write_comparison_figures,
)
from pytest_ortbench.fleet.report.procurement import Procurement, procure, render_procurement_csv
from pytest_ortbench.fleet.report.procurement_figures import cost, cost_latency
from pytest_ortbench.fleet.report.view import build_view
from pytest_ortbench.report.figures import style
from tests.fleet.numbers.runs import case, latency, run
from tests.report import fleet_views
from tests.report.test_figures import drawn


def ticks(figure: Figure, panel: int = 0) -> list[str]:
    return [label.get_text() for label in figure.axes[panel].get_yticklabels()]


def artists(figure: Figure) -> int:
    return sum(len(axes.lines) + len(axes.texts) for axes in figure.axes)


def test_sides_from_best_to_worst_against_the_baseline() -> None:
    figure = drawn(draw_overall(fleet_views.view().main))
    assert ticks(figure) == ["rack", "desk", "edge"]
    assert figure.axes[0].get_xlabel() == "latency p50, ratio to desk"
    assert figure.axes[0].get_xscale() == "log"
    assert "smaller is better" in figure.get_supxlabel()


def test_in_a_tie_over_all_no_side_is_drawn_as_the_best() -> None:
    ms = {"base": 8.0, "fast": 4.0, "near": 4.05}
    runs = [run(host, case(latency(v * 0.98, v, v * 1.02))) for host, v in ms.items()]
    figure = drawn(draw_overall(build_view(runs).main))
    assert ticks(figure) == ["fast", "near", "base"]
    inside = [
        line.get_markerfacecolor() for line in figure.axes[0].lines if line.get_marker() == "o"
    ]
    assert inside == ["white", "white", style.INK]
    assert "no clear best" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_each_workload_has_a_panel_with_units_and_variants() -> None:
    figure = drawn(draw_workloads(fleet_views.view().sections[0].matrix))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "mobilenet_v2 b1",
        "mobilenet_v2 b8",
        "bert b1",
        "bert b8",
    ]
    assert ticks(figure) == [
        "rack native/cpu",
        "desk native/cpu",
        "edge native/cpu",
    ]
    assert {axes.get_xlabel() for axes in figure.axes} == {"latency p50 (ms)"}


@pytest.mark.parametrize(
    ("metric", "axis"),
    [
        ("load_peak", "load peak (requests/s)"),
        ("load_rate", "load rate (requests/s)"),
        ("throughput", "throughput (items/s)"),
    ],
)
def test_a_rate_is_in_what_it_counts(metric: str, axis: str) -> None:
    runs = [run(host, case({metric: (v, v, v)})) for host, v in (("a", 935.0), ("b", 1748.0))]
    figure = drawn(draw_workloads(build_view(runs, metric=metric).sections[0].matrix))
    assert figure.axes[0].get_xlabel() == axis
    assert figure.axes[0].get_xlim()[1] > 1748


def many(count: int) -> list[RunFacts]:
    def cases(index: int) -> list[CaseFacts]:
        medians = {f"m{number}": 1e-3 * (1 + index / 20) * (number + 1) for number in range(40)}
        return [case(latency(v, v * 1.01, v * 1.02), model=name) for name, v in medians.items()]

    return [run(f"host-{index}", *cases(index)) for index in range(count)]


def test_fifty_machines_stay_legible() -> None:
    view = build_view(many(50))
    for _, figure in comparison_figures(view):
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
    assert legend == ["latency p50, geometric mean", "canary: change of the machine"]


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


def unbounded() -> Procurement:
    """desk keeps 11 ms alone at the quick end of its interval, and never at the slow one."""
    runs = []
    for host, seconds, spread in (("desk", 0.01, 0.14), ("rack", 0.002, 0.0)):
        wide = (seconds * (1 - spread), seconds, seconds * (1 + spread))
        rate = (1 / wide[2], 1 / seconds, 1 / wide[0])
        spans = {"latency_p50": wide, "latency_mean": wide, "throughput": rate}
        runs.append(run(host, case(spans, service_s=[seconds] * 50)))
    machines = tuple(
        PricedMachine(name=host, host=host, price_per_hour=0.1) for host in ("desk", "rack")
    )
    return procure(runs, Terms(currency="EUR", rate_per_s=10, limit_s=0.011, machines=machines))


def marks(figure: Figure, marker: int) -> list[tuple[float, float]]:
    lines = [line for line in figure.axes[0].lines if line.get_marker() == marker]
    return [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in lines]


def test_costs_without_an_upper_bound_end_in_an_arrow_at_the_edge() -> None:
    shown = unbounded()
    figure = drawn(cost(shown))
    edge = figure.axes[0].get_xlim()[1]
    row = float(ticks(figure).index("desk"))
    assert marks(figure, CARETRIGHT) == [(edge, row)]
    bars = [line for line in figure.axes[0].lines if line.get_linewidth() == 2.4]
    # rack: one machine, 0.1 an hour for three years of 8766 hours.
    assert sorted(bar.get_xdata()[1] for bar in bars) == pytest.approx([2629.8, edge])
    assert "at once; arrow: no upper bound." in figure.get_supxlabel()
    figure = drawn(cost_latency(shown))
    assert marks(figure, CARETUP)[-1] == (pytest.approx(10.0), figure.axes[0].get_ylim()[1])
    assert "intervals; arrow: no upper bound." in figure.get_supxlabel()
    for bounded in (cost(fleet_views.costs()), cost_latency(fleet_views.costs())):
        assert "arrow" not in drawn(bounded).get_supxlabel()


def test_machines_that_tie_are_drawn_alike_and_none_is_the_cheapest() -> None:
    runs = []
    for host, rate in (("desk", 100.0), ("rack", 103.0)):
        spans = {**latency(9.0, 10.0, 11.0), "throughput": (0.95 * rate, rate, 1.05 * rate)}
        runs.append(run(host, case(spans)))
    machines = tuple(
        PricedMachine(name=host, host=host, price_per_hour=0.1) for host in ("desk", "rack")
    )
    shown = procure(runs, Terms(currency="EUR", machines=machines))
    assert [offer.mark for offer in shown.tenders[0].offers] == ["best", "tie"]
    figure = drawn(cost(shown))
    inside = [
        line.get_markerfacecolor() for line in figure.axes[0].lines if line.get_marker() == "o"
    ]
    assert inside == ["white", "white"]
    assert "may be the cheapest" in [text.get_text() for text in figure.legends[0].get_texts()]
    figure = drawn(cost(fleet_views.costs()))
    # Each cost is a pair of bounds there: what they leave open is not drawn as cheapest.
    assert [line for line in figure.axes[0].lines if line.get_marker() == "o"] == []
    assert "only bounds are known" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_over_one_case_is_said_in_the_singular() -> None:
    runs = [run(host, case(latency(v, v, v))) for host, v in (("a", 8.0), ("b", 4.0))]
    note = drawn(draw_overall(build_view(runs).main)).get_supxlabel()
    assert note.startswith(
        "Geometric mean over the one case that every side has; bar: 95 % interval;"
    )


def test_no_upper_bound_is_inf_in_csv_and_not_known_is_empty() -> None:
    desk, rack = csv.DictReader(io.StringIO(render_procurement_csv(unbounded())))
    assert (desk["machines_needed_high"], desk["cost_high"]) == ("inf", "inf")
    assert float(rack["cost_high"]) == pytest.approx(2629.8)
    assert (desk["power_w"], desk["power_w_high"]) == ("", "")


def test_hostile_names_are_drawn_not_run() -> None:
    view, costs = fleet_views.hostile()
    for _, data in pictures(view, costs):
        assert b"<script" not in data


def test_files(tmp_path) -> None:  # type: ignore[no-untyped-def]
    written = write_comparison_figures(fleet_views.view(), tmp_path / "plots", fleet_views.costs())
    assert [path.name for path in written if path.suffix == ".png"] == [
        "cost.png",
        "cost-latency.png",
        "overall.png",
        "workloads.png",
    ]
    assert all(path.stat().st_size > 5000 for path in written)


def test_nothing_to_draw() -> None:
    view = build_view([run("a", case(model="x")), run("b", case(model="x"))])
    assert list(comparison_figures(view)) == []
