"""Figures by their parts: axes, labels, units, what is drawn and what the notes count."""

from __future__ import annotations

import dataclasses
import re
import struct
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.outcome import Flag
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.entries import Entry, by_model, shown_run
from pytest_ortbench.report.figures import DESCRIPTIONS, FIGURES, render, style, write_figures
from pytest_ortbench.report.figures.batches import batches, lines_of
from pytest_ortbench.report.figures.choice import choose_cases
from pytest_ortbench.report.figures.distribution import distribution, pooled
from pytest_ortbench.report.figures.dots import LATENCY, MEMORY, THROUGHPUT, draw_by_case
from pytest_ortbench.report.figures.timeline import timeline
from tests import results_factory as factory
from tests.report import fleet_views, sample_runs


def drawn(figure: Figure | None) -> Figure:
    """Return a figure that there is."""
    assert figure is not None
    return figure


def labels(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def note(figure: Figure) -> str:
    return figure.get_supxlabel()


def test_latency_has_a_panel_a_model_and_a_row_a_measured_case() -> None:
    figure = drawn(draw_by_case(shown_run(sample_runs.ten_cases()).entries, LATENCY))
    first, second = figure.axes
    assert first.get_title(loc="left") == "mobilenet_v2"
    assert labels(first) == [
        "int8-static/cpu/b1",
        "native/openvino/b1",
        "native/cpu/b1",
        "fp16/cpu/b1",
        "native/cpu/b8",
    ]
    assert first.get_xlabel() == "latency of one inference (ms)"
    assert second.get_xlabel() == "latency of one inference (µs)"
    assert [text.get_text() for text in second.texts] == ["583 µs", "610 µs", "p50"]
    assert "3 of 10 cases gave no number; the table says why." in note(figure)


def test_a_row_is_drawn_where_its_numbers_are() -> None:
    shown = shown_run(sample_runs.one_case()).entries
    (axes,) = drawn(draw_by_case(shown, LATENCY)).axes
    median = shown[0].quantity("latency_p50")
    p99 = shown[0].quantity("latency_p99")
    assert median is not None
    assert p99 is not None
    assert median.low is not None
    assert median.high is not None
    ends = [tuple(float(x) * 1e-3 for x in np.asarray(line.get_xdata())) for line in axes.lines]
    assert pytest.approx((median.low, median.high)) in ends
    assert pytest.approx((median.value,)) in ends
    assert pytest.approx((p99.value,)) in ends


def test_cases_that_are_not_ranked_are_hollow() -> None:
    shown = shown_run(sample_runs.ten_cases()).entries
    axes = drawn(draw_by_case(shown, LATENCY)).axes[0]
    marks = {
        round(float(line.get_ydata()[0])): line.get_markerfacecolor()  # type: ignore[index, arg-type]
        for line in axes.lines
        if line.get_marker() in style.MARKERS
    }
    assert marks[labels(axes).index("fp16/cpu/b1")] == "white"
    assert marks[labels(axes).index("native/cpu/b1")] != "white"


def test_memory_and_throughput_name_their_units() -> None:
    shown = shown_run(sample_runs.one_case()).entries
    assert drawn(draw_by_case(shown, MEMORY)).axes[0].get_xlabel() == "rise of resident memory (MB)"
    throughput = drawn(draw_by_case(shown, THROUGHPUT)).axes[0]
    assert throughput.get_xlabel() == "throughput (items/s)"
    assert throughput.texts[0].get_text() == "80.1"


def test_the_bar_of_energy_is_the_interval_over_the_trials_and_said_to_be() -> None:
    (measured,) = sample_runs.one_case().cases
    shown = shown_run(factory.make_run([fleet_views.with_energy(measured, 60.0)])).entries
    figure = drawn(FIGURES["energy"](shown))
    assert note(figure).endswith("; bar: its 95 % interval over the trials.")
    quantity = shown[0].quantity("energy_per_inference")
    assert quantity is not None
    assert quantity.low is not None
    assert quantity.high is not None
    # 0.74 J, drawn in mJ.
    lines = figure.axes[0].lines
    ends = [tuple(float(x) * 1e-3 for x in np.asarray(line.get_xdata())) for line in lines]
    assert pytest.approx((quantity.low, quantity.high)) in ends


def test_hundreds_of_cases_are_cut_to_the_best_and_counted() -> None:
    figure = drawn(draw_by_case(entries_of(sample_runs.three_hundred_cases), LATENCY))
    assert len(figure.axes) == 3
    assert sum(len(labels(axes)) for axes in figure.axes) == 36
    assert "36 of 282 cases; the table has them all." in note(figure)
    assert "18 of 300 cases gave no number" in note(figure)
    assert {label.rsplit("/", 1)[1] for label in labels(figure.axes[0])} == {
        "b1",
        "b2",
        "b4",
        "b8",
        "b16",
    }


def test_many_models_are_counted() -> None:
    results = [
        factory.make_result(case=factory.make_case(model=f"net_{index}"), count=40)
        for index in range(9)
    ]
    figure = drawn(draw_by_case(shown_run(factory.make_run(results)).entries, LATENCY))
    assert len(figure.axes) == 6
    assert "Not shown: 3 further models with 3 cases; the table has them." in note(figure)


def test_choice_takes_the_best_of_each_batch_in_turn() -> None:
    results = [
        factory.make_result(case=factory.make_case(batch=batch, knobs={"threads": threads}))
        for batch in (1, 8)
        for threads in ("1", "2", "4")
    ]
    order = {"b1/threads:1": 3, "b1/threads:2": 2, "b1/threads:4": 1}

    def key(entry: Entry) -> float:
        label = entry.label.removeprefix("native/cpu/")
        return order.get(label, 10 + len(label))

    (panel,) = choose_cases(
        shown_run(factory.make_run(results)).entries, key, which="best", rows=4
    ).panels
    assert [entry.label.removeprefix("native/cpu/") for entry in panel.shown] == [
        "b1/threads:4",
        "b1/threads:2",
        "b8/threads:1",
        "b8/threads:2",
    ]
    assert panel.left_out == 2


def test_distribution_draws_curve_strip_and_percentiles() -> None:
    figure = drawn(distribution(shown_run(sample_runs.one_case()).entries))
    curve, strip = figure.axes
    assert curve.get_ylabel() == "share (%)"
    assert strip.get_xlabel() == "latency of one inference (ms)"
    assert labels(strip) == ["native/cpu/b1"]
    line, *marks = curve.lines
    assert float(line.get_ydata()[-1]) == pytest.approx(1.0)  # type: ignore[index, arg-type]
    levels = [(mark.get_marker(), float(mark.get_ydata()[0])) for mark in marks]  # type: ignore[index, arg-type]
    assert levels == [("o", 0.9), ("o", 0.99), ("None", 0.5), ("|", 0.5)]


def test_percentiles_without_enough_samples_have_no_ring() -> None:
    run = factory.make_run([factory.make_result(count=20)])
    curve, _ = drawn(distribution(shown_run(run).entries)).axes
    assert len(curve.lines) == 4  # the curve, p90 of 60 samples, p50 and its interval


def test_a_thinned_worker_weighs_what_it_measured() -> None:
    fast = factory.make_measurement([1000] * 4000, worker=0, samples=None)
    slow = factory.make_measurement([3000] * 1000, worker=1, samples=None)
    (entry,) = shown_run(factory.make_run([factory.make_result(measurements=[fast, slow])])).entries
    durations, share = pooled(entry)
    assert durations[0] == 1e-6
    assert share[durations <= 1e-6].max() == pytest.approx(0.8)


def test_timeline_shades_warm_ups_and_shows_flagged_cases_first() -> None:
    figure = drawn(timeline(shown_run(sample_runs.ten_cases()).entries))
    assert len(figure.axes) == 6
    assert figure.axes[0].get_ylabel() == "latency (ms)"
    assert figure.axes[-1].get_xlabel() == "time in inferences, worker after worker (s)"
    assert len(figure.axes[0].patches) == 3  # one warm-up a worker
    assert "1 case is not shown" in note(figure)
    unsteady = sample_runs.measured(sample_runs.case(batch=2), 0.01, flags=(Flag(name="UNSTEADY"),))
    run = factory.make_run([*sample_runs.ten_cases().cases, unsteady])
    first = drawn(timeline(shown_run(run).entries)).axes[0]
    assert first.get_title(loc="left") == "mobilenet_v2 native/cpu/b2 [UNSTEADY]"


def test_callers_side_by_side_end_in_the_timeline_when_they_did() -> None:
    run = sample_runs.one_case()
    (alone,) = run.cases
    together = dataclasses.replace(
        alone,
        case=dataclasses.replace(alone.case, concurrency=8),
        measurements=tuple(
            dataclasses.replace(
                each,
                samples=dataclasses.replace(each.samples, wall_ns=each.samples.sum_ns // 8),
            )
            for each in alone.measurements
        ),
    )
    ends = [
        drawn(timeline(shown_run(factory.make_run([result])).entries)).axes[0].get_xlim()[1]
        for result in (alone, together)
    ]
    warm = sum(each.warm_up.total_ns for each in alone.measurements) / 1e9
    assert ends[1] - warm == pytest.approx((ends[0] - warm) / 8)


def test_batches_joins_cases_that_differ_in_nothing_else() -> None:
    shown = shown_run(sample_runs.ten_cases()).entries
    lines = [line for group in by_model(shown) for line in lines_of(group.entries)]
    assert [[entry.label for entry in line.entries] for line in lines] == [
        ["native/cpu/b1", "native/cpu/b8"]
    ]
    left, right = drawn(batches(shown)).axes
    assert left.get_xlabel() == "batch size (items)"
    assert left.get_ylabel() == "latency p50 (ms)"
    assert right.get_ylabel() == "throughput (items/s)"
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["1", "8"]


def test_one_batch_size_makes_no_figure_of_batches() -> None:
    assert batches(shown_run(sample_runs.one_case()).entries) is None


def test_a_worker_that_kept_no_durations_is_left_out_of_the_samples() -> None:
    result = factory.make_result()
    first, *others = result.measurements
    bare = dataclasses.replace(first, samples=dataclasses.replace(first.samples, durations_ns=()))
    partly = dataclasses.replace(result, measurements=(bare, *others))
    shown = shown_run(factory.make_run([partly])).entries
    assert len(drawn(timeline(shown)).axes) == 1
    durations, _ = pooled(shown[0])
    assert len(durations) == 800


@pytest.mark.parametrize("name", FIGURES)
def test_a_run_without_numbers_makes_no_figure(name: str) -> None:
    run = factory.make_run([sample_runs.failed(sample_runs.case())])
    assert FIGURES[name](shown_run(run).entries) is None
    assert FIGURES[name](()) is None
    assert name in DESCRIPTIONS


def visible_boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    canvas = FigureCanvasAgg(figure)
    layout = figure.get_layout_engine()
    assert layout is not None
    layout.execute(figure)
    renderer = canvas.get_renderer()
    texts = [text for axes in figure.axes for text in axes.texts]
    for axes in figure.axes:
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            texts += [
                tick.label1
                for tick in axis.get_major_ticks()
                if tick.label1.get_visible() and min(limits) <= tick.get_loc() <= max(limits)
            ]
        texts += [axes.xaxis.label, axes.yaxis.label, axes._left_title]  # type: ignore[attr-defined]
    found = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    found += [
        (legend.get_title().get_text(), legend.get_window_extent(renderer))
        for legend in figure.legends
    ]
    return [(text, box) for text, box in found if text]


@cache
def entries_of(run: Callable[[], Run]) -> tuple[Entry, ...]:
    """The entries of a run, which take a second for hundreds of cases."""
    return shown_run(run()).entries


#: Figures of what not every run has: several sizes, a pass, or requests of a language model.
NEED_MORE = frozenset(
    {
        "accuracy",
        "batch",
        "energy",
        "generation-depth",
        "generation-prompt",
        "generation-quality",
        "generation-tokens",
        "operators",
        "roofline",
        "scaling",
        "turns",
    }
)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize(
    "run",
    [sample_runs.one_case, sample_runs.ten_cases, sample_runs.three_hundred_cases],
    ids=["1", "10", "300"],
)
def test_no_text_overlaps_another_or_leaves_the_figure(name: str, run: Callable[[], Run]) -> None:
    figure = FIGURES[name](entries_of(run))
    if figure is None:
        # One case, or cases that differ in nothing that these figures are about.
        assert name in NEED_MORE
        return
    assert_legible(figure)


def assert_legible(figure: Figure) -> None:
    """No text overlaps another or leaves the figure."""
    boxes = visible_boxes(figure)
    width, height = figure.get_size_inches() * figure.dpi
    for text, box in boxes:
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y1 <= height + 1, text
    for index, (text, box) in enumerate(boxes):
        left, bottom, right, top = box.extents
        for other, beside in boxes[index + 1 :]:
            # Boxes of text hold the room of accents and descenders, which may touch.
            wide = min(right, beside.x1) - max(left, beside.x0) > 2
            assert not (wide and min(top, beside.y1) - max(bottom, beside.y0) > 4), (text, other)


def test_hostile_names_are_drawn_as_text() -> None:
    figure = drawn(draw_by_case(shown_run(sample_runs.hostile()).entries, LATENCY))
    title = figure.axes[0].get_title(loc="left")
    assert title.startswith("=<script>alert(1)</script>|`[b")
    assert title.endswith(r"\$x\$")
    assert "\x1b" not in title


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe", "größe"),
        ("𒀀", r"\u12000"),
        ("$x$", r"\$x\$"),
        ("a" * 80, "a" * 30 + "…" + "a" * 29),
    ],
)
def test_drawable_text(text: str, shown: str) -> None:
    assert style.drawable(text) == shown


#: Names in scripts that the bundled font has, lacks, and writes from right to left.
SCRIPTS = ("模型_手写数字识别", "モデル", "모델", "нейросеть", "عربي", "😀")


@pytest.mark.parametrize("fonts", ["installed", "bundled"])
def test_names_in_other_scripts_are_drawn_or_spelt_without_a_warning(
    fonts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fonts == "bundled":
        names, faces = style._fonts()
        monkeypatch.setattr(style, "_fonts", lambda: (names[:1], faces[:1]))
    run = factory.make_run(
        [
            sample_runs.measured(sample_runs.case(factory.make_model(name), provider=of), 0.004)
            for name in SCRIPTS
            for of in ("cpu", "openvino")
        ]
    )
    shown = shown_run(run).entries
    headings: set[str] = set()
    with warnings.catch_warnings():
        # matplotlib warns of each glyph that it has to replace by a box.
        warnings.simplefilter("error")
        for name in ("latency", "distribution", "timeline"):
            figure = FIGURES[name](shown)
            assert figure is not None
            assert_legible(figure)
            headings |= {axes.get_title(loc="left") for axes in figure.axes}
    assert "нейросеть" in headings
    if fonts == "bundled":
        assert r"\u30e2\u30c7\u30eb" in headings


def test_legends_that_fit_stand_on_one_line() -> None:
    figure = drawn(draw_by_case(shown_run(sample_runs.ten_cases()).entries, LATENCY))
    (legend,) = figure.legends
    assert legend._ncols == len(legend.get_texts()) == 6


def test_what_is_left_out_is_counted_in_good_english() -> None:
    assert style.not_shown(1, "case") == "1 case is not shown"
    assert style.not_shown(2, "case") == "2 cases are not shown"


def test_files_are_pictures(tmp_path: Path) -> None:
    written = write_figures(
        shown_run(sample_runs.one_case()).entries, tmp_path / "new", formats=("png", "svg")
    )
    names = ["latency", "distribution", "timeline", "throughput", "memory"]
    assert [path.name for path in written] == [
        f"{name}.{ending}" for name in names for ending in ("png", "svg")
    ]
    png = written[0].read_bytes()
    width, _ = struct.unpack(">II", png[16:24])
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert width == style.WIDTH_IN * style.DPI
    assert re.search(rb"<svg [^>]*viewBox", written[1].read_bytes())


def test_an_unknown_kind_of_file_is_refused(tmp_path: Path) -> None:
    figure = draw_by_case(shown_run(sample_runs.one_case()).entries, LATENCY)
    assert figure is not None
    with pytest.raises(UsageError, match="can't be written as 'gif'"):
        render(figure, "gif")


def test_nothing_measured_writes_nothing(tmp_path: Path) -> None:
    run = factory.make_run([sample_runs.failed(sample_runs.case())])
    assert write_figures(shown_run(run).entries, tmp_path / "plots") == []
    assert not (tmp_path / "plots").exists()


def test_global_settings_of_matplotlib_stay_as_they_are() -> None:
    before = dict(mpl.rcParams)
    figure = draw_by_case(shown_run(sample_runs.one_case()).entries, LATENCY)
    assert figure is not None
    render(figure, "svg")
    assert dict(mpl.rcParams) == before


@pytest.mark.live
def test_pyplot_is_not_imported() -> None:
    code = "import sys, pytest_ortbench.report.figures; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stdout == "False\n"
