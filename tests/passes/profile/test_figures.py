"""Operator breakdown and roofline by their parts: axes, labels, units, marks, what is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.passes.profile.facts import OperatorProfile, OperatorTime, Peak
from pytest_ortbench.passes.profile.figures.operators import operators, shares
from pytest_ortbench.passes.profile.figures.roofline import points, roofline
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.figures import style, write_figures
from tests import results_factory as factory
from tests.passes.profile import profiled_runs
from tests.report import sample_runs
from tests.report.test_figures import assert_legible, drawn, labels, note

#: Sizes of marks.
NODE, TYPE, WHOLE = 3.0, 8.0, 12.0

PEAK = Peak(
    macs_per_s=100e9,
    bytes_per_s=20e9,
    provider="P",
    element="float16",
    threads=1,
    product="512 x 512 x 512",
    copy_bytes=67_108_864,
)


def profile_of(*operators: tuple[str, int, int | None, int], **more: object) -> OperatorProfile:
    """Of operators with their microseconds, multiply-accumulates and bytes; a run of 1 ms."""
    times = tuple(
        OperatorTime(op=op, provider="P", time_ns=us * 1000, nodes=1, macs=macs, moved_bytes=moved)
        for op, us, macs, moved in operators
    )
    known = {"macs": sum(each.macs or 0 for each in times), "moved_bytes": 1_000_000, **more}
    return OperatorProfile(run_ns=1_000_000, operators=times, peak=PEAK, **known)  # type: ignore[arg-type]


PROFILE = profile_of(
    ("Conv", 500, 25_000_000, 1_000_000), ("Add", 300, 0, 3_000_000), ("Odd", 100, None, 10)
)


def run_of(*profiles: OperatorProfile | None) -> Run:
    results: list[CaseResult] = [
        replace(
            factory.make_result(case=factory.make_case(model=f"net_{index}"), count=40),
            profile=profile,
        )
        for index, profile in enumerate(profiles)
    ]
    return factory.make_run(results)


def marks(axes: Axes) -> dict[float, int]:
    """How many points stand under the roof, by the size of their mark: node, type, whole run."""
    found: dict[float, int] = {}
    for line in axes.lines:
        if line.get_linestyle() == "None":
            size = line.get_markersize()
            found[size] = found.get(size, 0) + len(list(line.get_xdata()))  # type: ignore[arg-type]
    return found


def test_one_case_has_a_bar_a_type_and_one_between_nodes() -> None:
    figure = drawn(operators(shown_run(run_of(PROFILE)).entries))
    (axes,) = figure.axes
    assert labels(axes) == ["Conv", "Add", "Odd", "between nodes"]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([50.0, 30.0, 10.0, 10.0])
    assert [text.get_text() for text in axes.texts] == [
        "500 µs, 50.0 %",
        "300 µs, 30.0 %",
        "100 µs, 10.0 %",
        "100 µs, 10.0 %",
    ]
    assert axes.get_xlabel() == "share of the run (%)"
    assert "From runs of 1.00 ms" in note(figure)


def test_many_types_of_one_case_are_counted() -> None:
    many = profile_of(*((f"Op{index:02}", 40 - index, 0, 1) for index in range(20)))
    (axes,) = drawn(operators(shown_run(run_of(many)).entries)).axes
    assert labels(axes)[:2] == ["Op00", "Op01"]
    assert labels(axes)[-2:] == ["6 further types", "between nodes"]
    assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(100.0)


def test_several_cases_have_a_stacked_bar_each_that_is_the_whole_run() -> None:
    figure = drawn(operators(shown_run(profiled_runs.ten_cases()).entries))
    first, second = figure.axes
    assert len(labels(first)) == 5
    assert labels(second) == ["native/openvino/b1/seq:128", "native/cpu/b1/seq:128"]
    assert second.get_xlabel() == "share of the run (%)"
    assert len(second.patches) == 2 * 8  # six types, the others, and between nodes
    for row in range(2):
        bars = [bar for bar in second.patches if round(bar.get_y() + bar.get_height() / 2) == row]
        assert sum(bar.get_width() for bar in bars) == pytest.approx(100.0)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        *("Conv", "Gemm", "MatMul", "Add", "Relu", "Transpose"),
        *("other operators", "between nodes"),
    ]


def test_parallel_nodes_fill_the_bar_and_no_more() -> None:
    both = profile_of(("Conv", 900, 0, 1), ("Add", 900, 0, 1))
    assert both.between_ns < 0
    axes = drawn(operators(shown_run(run_of(both, both)).entries)).axes[0]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([50.0, 50.0])


def test_a_type_on_two_providers_is_one_part() -> None:
    here, there, *_ = profile_of(("Conv", 300, 1, 1), ("Conv", 200, 1, 1)).operators
    both = replace(PROFILE, operators=(here, replace(there, provider="Q")))
    assert shares(both) == {"Conv": pytest.approx(0.5)}


def test_roofline_has_its_roof_its_points_and_the_model() -> None:
    """Conv: 25 M in 0.5 ms over 1 MB: 50 G a second at 25; the run 25 G a second at 25."""
    figure = drawn(roofline(shown_run(run_of(PROFILE)).entries))
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel() == "arithmetic intensity (MAC/B)"
    assert axes.get_ylabel() == "rate (GMAC/s)"
    roof, conv, whole = axes.lines
    xs, ys = list(roof.get_xdata()), list(roof.get_ydata())
    assert (xs[1], ys[1]) == pytest.approx((5.0, 100.0))  # where both ceilings meet
    assert ys[2] == pytest.approx(100.0)
    assert ys[0] == pytest.approx(20.0 * xs[0])
    assert (conv.get_xdata()[0], conv.get_ydata()[0]) == pytest.approx((25.0, 50.0))
    assert (whole.get_xdata()[0], whole.get_ydata()[0]) == pytest.approx((25.0, 25.0))
    assert [text.get_text() for text in axes.texts] == ["peaks: 100 GMAC/s (float16), 20.0 GB/s"]
    on_cpu = replace(PROFILE, peak=replace(PEAK, provider="CPUExecutionProvider", threads=2))
    (axes_on_cpu,) = drawn(roofline(shown_run(run_of(on_cpu)).entries)).axes
    assert axes_on_cpu.texts[0].get_text().endswith(", 20.0 GB/s, 2 threads")
    # Neither Add, which multiplies nothing, nor Odd, of which nothing is known.
    assert marks(axes) == {TYPE: 1, WHOLE: 1}
    assert "without multiplications are not shown: 40 % of a run" in note(figure)


def test_nodes_are_small_marks_in_the_colour_of_their_type() -> None:
    (axes,) = drawn(roofline(shown_run(profiled_runs.one_case()).entries)).axes
    (entry,) = shown_run(profiled_runs.one_case()).entries
    assert entry.result.profile is not None
    by_type, by_node = points(entry.result.profile)
    assert {point.op for point in by_type} == {"Conv", "Gemm", "MatMul"}
    assert marks(axes) == {NODE: len(by_node), TYPE: 3, WHOLE: 1}
    assert len(by_node) == 17
    looks = {
        size: {
            (line.get_color(), line.get_marker())
            for line in axes.lines
            if line.get_markersize() == size
        }
        for size in (NODE, TYPE)
    }
    assert looks[NODE] == looks[TYPE] == set(zip(style.COLOURS[:3], style.MARKERS[:3], strict=True))


def test_kernels_that_run_on_have_no_rate_of_their_own() -> None:
    figure = drawn(roofline(shown_run(run_of(replace(PROFILE, asynchronous=True))).entries))
    assert marks(figure.axes[0]) == {WHOLE: 1}
    assert "only the whole run has a rate" in note(figure)


@pytest.mark.parametrize(
    "profile",
    [
        None,
        OperatorProfile(reason="crash: it died"),
        replace(PROFILE, peak=None),
        replace(PROFILE, peak=replace(PEAK, macs_per_s=None, reason="product: none")),
        profile_of(("Add", 300, 0, 3_000_000), macs=0),
    ],
)
def test_no_roof_or_nothing_under_it_makes_no_figure(profile: OperatorProfile | None) -> None:
    assert roofline(shown_run(run_of(profile)).entries) is None


def test_the_fastest_case_of_each_model_comes_first_and_the_rest_is_counted() -> None:
    figure = drawn(roofline(shown_run(profiled_runs.ten_cases()).entries))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:2] == [
        "mobilenet_v2 int8-static/cpu/b1",
        "lstm_tagger native/openvino/b1/seq:128",
    ]
    assert len(titles) == 6
    assert "1 further case is not shown" in note(figure)


def test_an_odd_panel_leaves_its_neighbour_empty() -> None:
    figure = drawn(roofline(shown_run(run_of(PROFILE, PROFILE, PROFILE)).entries))
    assert [axes.axison for axes in figure.axes] == [True, True, True, False]


@pytest.mark.live
@pytest.mark.parametrize(
    "run",
    [
        profiled_runs.one_case,
        profiled_runs.ten_cases,
        profiled_runs.three_hundred_cases,
        lambda: profiled_runs.with_profiles(sample_runs.hostile()),
    ],
    ids=["1", "10", "300", "hostile"],
)
@pytest.mark.parametrize("draw", [operators, roofline])
def test_every_text_can_be_read(draw: Callable[..., Figure | None], run: Callable[[], Run]) -> None:
    assert_legible(drawn(draw(shown_run(run()).entries)))


def test_both_are_written_with_the_others(tmp_path: Path) -> None:
    written = write_figures(shown_run(profiled_runs.one_case()).entries, tmp_path)
    assert [path.name for path in written[-2:]] == ["operators.png", "roofline.png"]


@pytest.mark.live
def test_hundreds_of_cases_are_cut_and_counted() -> None:
    shown = shown_run(profiled_runs.three_hundred_cases()).entries
    assert sum(len(labels(axes)) for axes in drawn(operators(shown)).axes) == 36
    figure = drawn(roofline(shown))
    assert len(figure.axes) == 6
    assert "276 further cases are not shown" in note(figure)
