"""What tells marks, lines and panels of a figure apart."""

from __future__ import annotations

import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from pytest_ortbench.analysis.history import Point, Series
from pytest_ortbench.core.outcome import Flag
from pytest_ortbench.fleet.numbers.matrix import Matrix
from pytest_ortbench.fleet.report.figures import draw_workloads
from pytest_ortbench.fleet.report.view import build_view
from pytest_ortbench.report.cells import ALL_COLUMNS
from pytest_ortbench.report.entries import Entry, shown_run
from pytest_ortbench.report.figures import style
from pytest_ortbench.report.figures.accuracy import accuracy
from pytest_ortbench.report.figures.batches import batches
from pytest_ortbench.report.figures.dots import THROUGHPUT, draw_by_case
from pytest_ortbench.report.figures.shortening import between_parts, told_apart
from pytest_ortbench.report.figures.timeline import timeline
from pytest_ortbench.report.figures.titles import headings, titles
from pytest_ortbench.report.figures.trend import trend
from tests import results_factory as factory
from tests.fleet.numbers.runs import case, run
from tests.report import sample_runs
from tests.report.test_figures import drawn

EMULATED = (Flag(name="EMULATED"),)
POINT = Point(run_id="a", started_at="2026-01-01", commit="", ratio=2.0)


def shown_of(
    models: tuple[str, ...], precisions: tuple[str, ...] = ("fp32",), *names: str
) -> list[Entry]:
    flags = tuple(Flag(name=name) for name in names)
    return shown_run(
        factory.make_run(
            [
                sample_runs.measured(sample_runs.case(model, precision), 0.004, flags=flags)
                for model in models
                for precision in precisions
            ]
        )
    ).entries


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
    return shown_run(factory.make_run(results)).entries


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


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("net/fp32/cpu/b8/seq:128/threads:4", 33, "net/fp32/cpu/b8/seq:128/threads:4"),
        ("net/fp32/cpu/b8/seq:128/threads:4", 32, "net/fp32/cpu/b8/…/threads:4"),
        ("net/fp32/cpu/b8/seq:128/threads:4", 26, "net/fp32/…/b8/…/threads:4"),
        ("net/fp32/cpu/b8/seq:128/spin:on", 28, "net/fp32/cpu/b8/…/spin:on"),
        ("a/bbbbbbbbbbbbbbbbbbbb/c/d/e", 14, "a/…/c/d/e"),
        ("a desk of the second floor", 20, "a desk of … floor"),
        ("int8/openvino:GPU/b8/seq:128/x:4 on lab", 22, "int8/…/b8/…/x:4 on lab"),
        ("one_part_alone_of_30_characters", 11, "one_p…cters"),
        ("a_first_part_that_is_too_long/cpu/b8", 20, "a_first_pa…ng/cpu/b8"),
    ],
)
def test_long_names_are_cut_between_their_parts(text: str, room: int, shown: str) -> None:
    assert between_parts(text, room) == shown


def test_the_rest_of_a_heading_is_cut_between_its_parts_and_keeps_the_batch() -> None:
    rest = "int8-static/openvino:GPU/b8/sequence_length:128/concurrency:4"
    (name,) = headings([("a_model_with_a_rather_long_name", rest)])
    assert name == "a_model_with_a…  int8-static/openvino:GPU/b8/…/concurrency:4"
    assert headings([("net", "b8")], between=" ") == ["net b8"]
    assert headings([("desk", "")], between=" ") == ["desk"]


def long_names() -> Matrix:
    models = [f"vision_transformer_large_patch_16_resolution_{px}_quantised" for px in (224, 384)]
    knobs = {"workload": "prefill-with-a-long-name", "concurrency": "4"}
    hosts = [f"measurement-machine-of-the-laboratory-{number}" for number in (1, 2)]
    runs = [
        run(
            host,
            *(
                case(
                    {"latency_p50": (0.9 * v * share, v * share, 1.1 * v * share)},
                    model=model,
                    precision=precision,
                    batch=8,
                    knobs=knobs,
                )
                for model in models
                for precision, share in (("native", 1.0), ("int8-static", 0.5))
            ),
        )
        for host, v in zip(hosts, (0.004, 0.009), strict=True)
    ]
    return build_view(runs).sections[0].matrix


def test_panels_and_rows_of_a_comparison_with_long_names_say_what_they_are() -> None:
    made = drawn(draw_workloads(long_names()))
    names = [axes.get_title(loc="left") for axes in made.axes]
    assert names == [
        f"…_large_patch_16_resolution_{px}_quantised b8/…/concurrency:4" for px in (224, 384)
    ]
    rows = [label.get_text() for label in made.axes[0].get_yticklabels()]
    assert rows == [f"…f-the-laboratory-{number} int8-static/cpu" for number in (1, 2)]


def test_a_heading_is_made_drawable_once() -> None:
    series = [Series(key=("a$b/fp32/cpu/b1", "current"), machine="$x", points=(POINT,))]
    assert drawn(trend(series)).axes[0].get_title(loc="left") == r"a\$b/fp32/cpu/b1 on \$x"
    results = [sample_runs.measured(sample_runs.case("a$b", batch=b), 0.002 * b) for b in (1, 8)]
    left, _ = drawn(batches(shown_run(factory.make_run(results)).entries)).axes
    assert left.get_title(loc="left") == r"a\$b"


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
    axes = drawn(accuracy(shown_run(sample_runs.ten_cases()).entries)).axes[0]
    front = next(line for line in axes.lines if line.get_drawstyle() == "steps-post")
    marks = [line for line in axes.lines if line.get_linestyle() == "None"]
    below = {mark.get_zorder() for mark in marks if mark.get_markerfacecolor() == "white"}
    above = {mark.get_zorder() for mark in marks if mark.get_markerfacecolor() != "white"}
    assert below
    assert above
    assert max(below) < front.get_zorder() < min(above)


def test_throughput_of_several_callers_is_not_called_that_of_one() -> None:
    made = drawn(draw_by_case(two_batches(), THROUGHPUT))
    heading = made.legends[0].get_title().get_text()
    assert heading == "Throughput by case"
    assert "of all callers of the case together" in made.get_supxlabel()
    assert "of all callers of the case together" in ALL_COLUMNS["items"].about


def test_labels_that_are_too_long_lose_what_all_have() -> None:
    long = [f"fp32/cpu/b1/workload:generate/engine:{name}/new:64" for name in ("genai", "session")]
    assert told_apart(long, 36) == ["fp32/cpu/b1/engine:genai", "fp32/cpu/b1/engine:session"]
    assert told_apart(long, 60) == long
    assert told_apart(long[:1], 36) == long[:1]
    cuda = "fp32/cuda:1/b1/workload:generate/engine:genai/new:64"
    assert told_apart([long[0], cuda], 36) == ["fp32/cpu/b1", "fp32/cuda:1/b1"]
