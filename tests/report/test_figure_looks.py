"""What tells marks, lines and panels of a figure apart."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from pytest_ortbench.core.outcome import Flag
from pytest_ortbench.report.cells import ALL_COLUMNS
from pytest_ortbench.report.entries import Entry, entries
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.accuracy import accuracy
from pytest_ortbench.report.figures.batches import batches
from pytest_ortbench.report.figures.dots import THROUGHPUT, by_case
from pytest_ortbench.report.figures.timeline import timeline
from pytest_ortbench.report.figures.titles import titles
from tests import results_factory as factory
from tests.report import sample_runs
from tests.report.test_figures import drawn

EMULATED = (Flag(name="EMULATED"),)


def shown_of(
    models: tuple[str, ...], precisions: tuple[str, ...] = ("fp32",), *names: str
) -> list[Entry]:
    flags = tuple(Flag(name=name) for name in names)
    return entries(
        factory.make_run(
            [
                sample_runs.measured(sample_runs.case(model, precision), 0.004, flags=flags)
                for model in models
                for precision in precisions
            ]
        )
    )


def two_batches(providers: tuple[str, ...] = ("cpu",)) -> list[Entry]:
    results = [
        sample_runs.measured(
            sample_runs.case("net", precision, provider, batch),
            0.002 * batch,
            flags=EMULATED if precision == "fp16" else (),
        )
        for provider in providers
        for precision in ("fp32", "fp16", "int8-dynamic")
        for batch in (1, 8)
    ]
    return entries(factory.make_run(results))


def joined(axes: Axes) -> list[Line2D]:
    return [
        line
        for line in axes.lines
        if line.get_linestyle() != "None" and list(line.get_xdata()) and line.get_linewidth() < 2
    ]


def test_flags_are_shortened_before_the_case_is() -> None:
    long = "model_number_000_resnet_variant_with_a_name"
    names = titles(shown_of((long,), ("fp32", "int8-dynamic"), "UNSTEADY", "LOW-N"), flags=True)
    assert names == [
        f"{long}  fp32/cpu/b1",
        "model_number_000_resnet_variant_with_a…  int8-dynamic/cpu/b1",
    ]
    assert titles(shown_of(("bert",), ("fp32",), "UNSTEADY", "LOW-N"), flags=True) == [
        "bert  fp32/cpu/b1  [UNSTEADY, LOW-N]"
    ]
    middle = "a_model_of_thirty_four_characters_"
    assert titles(shown_of((middle,), ("fp32",), "UNSTEADY", "LOW-N"), flags=True) == [
        f"{middle}  fp32/cpu/b1  [2 flags]"
    ]


def test_models_are_shortened_around_what_tells_them_apart() -> None:
    start = "a_long_common_start_of_the_names_of_all_models_number_"
    models = tuple(f"{start}{number}_with_a_common_end" for number in (17, 18, 29))
    names = titles(shown_of(models))
    assert all(len(name) <= 60 for name in names)
    assert all(name.endswith("  fp32/cpu/b1") for name in names)
    assert ["17" in names[0], "18" in names[1], "29" in names[2]] == [True] * 3


def test_no_two_panels_of_a_timeline_are_called_the_same() -> None:
    models = tuple(f"model_number_{number:03d}_resnet_variant_{'x' * 40}" for number in range(6))
    figure = drawn(timeline(shown_of(models, ("fp32",), "UNSTEADY", "LOW-N", "SPREAD")))
    names = [axes.get_title(loc="left") for axes in figure.axes]
    assert len(set(names)) == 6
    assert all("fp32/cpu/b1" in name for name in names)


def test_precisions_of_one_provider_differ_in_colour_shape_and_dash() -> None:
    left, right = drawn(batches(two_batches())).axes
    for axes in (left, right):
        lines = joined(axes)
        assert len(lines) == 3
        assert {line.get_color() for line in lines} == set(style.COLOURS[:3])
        # Solid is the same pattern as none: matplotlib keeps dashes apart from the name.
        assert len({(line.get_linestyle(), str(line._dash_pattern)) for line in lines}) == 3
        shapes = {line.get_marker() for line in axes.lines if len(line.get_xdata()) == 1}
        assert shapes == set(style.MARKERS[:3])


def test_providers_keep_the_colour_and_precisions_the_dash_where_there_are_several() -> None:
    left, _ = drawn(batches(two_batches(("cpu", "cuda")))).axes
    lines = joined(left)
    assert len(lines) == 6
    assert {line.get_color() for line in lines} == set(style.COLOURS[:2])


def test_what_is_not_ranked_is_open_in_the_figure_of_batches() -> None:
    for axes in drawn(batches(two_batches())).axes:
        marks = [line for line in axes.lines if len(line.get_xdata()) == 1]
        filled = {mark.get_marker(): mark.get_markerfacecolor() != "white" for mark in marks}
        assert filled == {"o": True, "s": False, "^": True}


def test_the_legend_of_batches_shows_the_lines() -> None:
    figure = drawn(batches(two_batches()))
    (legend,) = figure.legends
    lines = [handle for handle in legend.legend_handles if isinstance(handle, Line2D)]
    assert [line.get_color() for line in lines[:3]] == list(style.COLOURS[:3])
    assert len({str(line._dash_pattern) for line in lines[:3]}) == 3


def test_the_front_of_accuracy_lies_over_unranked_and_under_ranked_marks() -> None:
    axes = drawn(accuracy(entries(sample_runs.ten_cases()))).axes[0]
    front = next(line for line in axes.lines if line.get_drawstyle() == "steps-post")
    marks = [line for line in axes.lines if line.get_linestyle() == "None"]
    below = {mark.get_zorder() for mark in marks if mark.get_markerfacecolor() == "white"}
    above = {mark.get_zorder() for mark in marks if mark.get_markerfacecolor() != "white"}
    assert below
    assert above
    assert max(below) < front.get_zorder() < min(above)


def test_throughput_of_several_callers_is_not_called_that_of_one() -> None:
    made = drawn(by_case(two_batches(), THROUGHPUT))
    heading = made.legends[0].get_title().get_text()
    assert heading == "Throughput by case"
    assert "of all callers of the case together" in made.get_supxlabel()
    assert "of all callers of the case together" in ALL_COLUMNS["items"].about
