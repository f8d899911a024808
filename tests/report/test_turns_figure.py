"""The figure of a model's blocks and of its yardstick's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.report.entries import Entry, shown_run
from pytest_ortbench.report.figures import figures, render
from pytest_ortbench.report.figures.turns import PANELS, TOP, turns
from tests.report.test_figures import assert_legible
from tests.results_factory import make_case, make_result, make_run, make_turns


def entries(*results: CaseResult) -> list[Entry]:
    return list(shown_run(make_run(results)).entries)


def with_turns(model: str = "net", *, slower: tuple[float, ...] = (1.0,)) -> CaseResult:
    made = [make_turns(seed=seed, slower=slower, rounds=40) for seed in range(3)]
    return make_result(case=make_case(model=model), turns=made)


def drawn(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


def test_both_sides_are_drawn_for_each_round_of_all_workers() -> None:
    (axes,) = drawn(turns(entries(with_turns(slower=(1.0, 1.5))))).axes
    model, yardstick = (list(map(float, line.get_ydata())) for line in axes.get_lines())
    assert len(model) == len(yardstick) == 120
    # The machine slows both down alike, in the second half of each worker.
    for side in (model, yardstick):
        assert max(side[:18]) < min(side[22:38])
        assert max(side) <= TOP


def test_a_block_far_above_is_at_the_edge() -> None:
    result = with_turns(slower=(1.0, 1.0, 1.0, 5.0))
    (axes,) = drawn(turns(entries(result))).axes
    assert max(map(float, axes.get_lines()[0].get_ydata())) == TOP == axes.get_ylim()[1]


def test_cases_without_turns_have_no_panel_and_too_many_are_left_out() -> None:
    assert turns(entries(make_result())) is None
    some = [with_turns(f"net{index}") for index in range(PANELS + 2)]
    assert len(drawn(turns(entries(make_result(), *some))).axes) == PANELS


def test_it_is_a_figure_of_the_run_and_can_be_rendered(tmp_path: Path) -> None:
    lacking = replace(with_turns(), flags=(Flag(name="CPU-SHARE"),))
    made = dict(figures(entries(with_turns("other"), lacking)))
    assert_legible(made["turns"])
    picture = render(made["turns"], "png")
    (tmp_path / "turns.png").write_bytes(picture)
    assert picture.startswith(b"\x89PNG")
