"""Figures about what something costs: accuracy, more threads, larger batches, energy."""

from __future__ import annotations

import dataclasses
from importlib import import_module

import pytest
from matplotlib.figure import Figure

from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.passes.load.facts import Load, LoadTest
from pytest_ortbench.passes.load.numbers.spec import parse_load
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.figures import FIGURES, figures
from pytest_ortbench.report.figures.accuracy import accuracy, decibels, front_of
from pytest_ortbench.report.figures.batches import batches
from pytest_ortbench.report.figures.scaling import courses, scaling
from pytest_ortbench.report.figures.slo import Slo, slo_of_limits
from tests import results_factory as factory
from tests.report import fleet_views, sample_runs
from tests.report.test_figures import assert_legible, drawn

#: Share of the time, share of the size and signal to noise of each precision.
PRECISIONS = {
    "native": (1.0, 1.0, None),
    "fp16": (0.7, 0.5, 62.0),
    "int8-static": (0.4, 0.26, 22.0),
    "int4": (0.6, 0.14, 11.0),
}


def variants(batch: int = 1) -> list[CaseResult]:
    """All precisions of one model on the CPU; int4 must not be ranked."""
    made = []
    for precision, (time, size, ratio) in PRECISIONS.items():
        case = sample_runs.case("mobilenet_v2", precision, "cpu", batch)
        variant = dataclasses.replace(case.variant, size_bytes=round(14e6 * size))
        flags = (Flag(name="INACCURATE"),) if precision == "int4" else ()
        case = dataclasses.replace(case, variant=variant)
        made.append(sample_runs.measured(case, 0.004 * time * batch, sqnr_db=ratio, flags=flags))
    return made


def front(figure: Figure, panel: int) -> list[float]:
    line = next(line for line in figure.axes[panel].lines if line.get_drawstyle() == "steps-post")
    return [float(value) for value in line.get_ydata()]


def test_accuracy_stands_against_latency_and_size_with_the_front() -> None:
    figure = drawn(accuracy(shown_run(factory.make_run(variants())).entries))
    left, right = figure.axes
    assert left.get_title(loc="left") == "mobilenet_v2 b1"
    assert left.get_xlabel() == "latency p50 (ms)"
    assert right.get_xlabel() == "model size (MB)"
    assert left.get_ylabel() == "signal to noise (dB)"
    # int8 and fp16, then the exact one above both; int4 is no part of it.
    for panel in (0, 1):
        heights = front(figure, panel)
        assert heights[:2] == [22.0, 62.0]
        assert len(heights) == 3
        assert heights[2] > 62
    assert any(text.get_text() == "∞" for text in left.texts)
    assert_legible(figure)


def test_batch_sizes_are_not_mixed_and_equal_accuracy_needs_no_figure() -> None:
    both = [*variants(), *variants(batch=8)[:2]]
    figure = drawn(accuracy(shown_run(factory.make_run(both)).entries))
    marks = [line for line in figure.axes[0].lines if line.get_linestyle() == "None"]
    assert len(marks) == 4
    assert accuracy(shown_run(factory.make_run(variants()[:1])).entries) is None


def sized(precision: str, median_s: float, sqnr_db: float | None, size_bytes: int) -> CaseResult:
    case = sample_runs.case("net", precision)
    variant = dataclasses.replace(case.variant, size_bytes=size_bytes)
    return sample_runs.measured(
        dataclasses.replace(case, variant=variant), median_s, sqnr_db=sqnr_db, count=40
    )


def heights(figure: Figure, panel: int) -> list[float]:
    lines = figure.axes[panel].lines
    return [float(line.get_ydata()[0]) for line in lines if line.get_linestyle() == "None"]


def test_cases_without_a_size_leave_the_panel_of_sizes_to_the_others() -> None:
    results = [sized("fp32", 0.004, None, 14_000_000), sized("fp16", 0.003, 60.0, 0)]
    figure = drawn(accuracy(shown_run(factory.make_run(results)).entries))
    # One span for both panels: exact stands 6 dB above the 60 dB.
    assert heights(figure, 0) == [60.0, 66.0]
    assert heights(figure, 1) == [66.0]
    assert figure.axes[1].get_xlabel() == "model size (MB)"
    assert figure.axes[0].get_ylim() == pytest.approx((59.52, 66.48))
    neither = [sized("fp32", 0.004, None, 0), sized("fp16", 0.003, 60.0, 0)]
    figure = drawn(accuracy(shown_run(factory.make_run(neither)).entries))
    assert [axes.get_visible() for axes in figure.axes] == [True, False]


def test_cases_that_differ_only_beyond_those_that_are_drawn_need_no_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_module("pytest_ortbench.report.figures.accuracy"), "POINTS", 2)
    exact = [sized(name, time, None, 14) for name, time in (("a", 0.001), ("b", 0.002))]
    shown = shown_run(factory.make_run([*exact, sized("c", 0.003, 60.0, 14)])).entries
    assert accuracy(shown) is None
    faster = shown_run(factory.make_run([*exact, sized("c", 0.0005, 60.0, 14)])).entries
    figure = drawn(accuracy(faster))
    assert heights(figure, 0) == [60.0, 66.0]
    assert "1 case is not shown" in figure.get_supxlabel()


def test_exact_is_infinite_and_not_compared_is_none() -> None:
    exact, half, *_ = shown_run(factory.make_run(variants())).entries
    assert (decibels(exact), decibels(half)) == (float("inf"), 62.0)
    (failed,) = shown_run(factory.make_run([sample_runs.failed(sample_runs.case())])).entries
    assert decibels(failed) is None


def test_the_front_of_points() -> None:
    points = [(3.0, 5.0), (1.0, 1.0), (2.0, 4.0), (2.0, 3.0), (4.0, 4.5)]
    assert front_of(points) == [(1.0, 1.0), (2.0, 4.0), (3.0, 5.0)]
    assert front_of([]) == []


def threads() -> list[CaseResult]:
    """One, two and four threads, each half as good as hoped."""
    return [
        sample_runs.measured(
            dataclasses.replace(sample_runs.case(), knobs={"threads": str(count)}),
            0.004 / (1 + (count - 1) / 2),
        )
        for count in (4, 1, 2)
    ]


def test_scaling_against_the_first_point() -> None:
    shown = shown_run(factory.make_run(threads())).entries
    (course,) = courses(shown)
    assert (course.knob, course.parts[:3]) == ("threads", ("native", "cpu", "b1"))
    assert [count for count, _ in course.points] == [1, 2, 4]
    figure = drawn(scaling(shown))
    shares = next(line for line in figure.axes[1].lines if len(line.get_xdata()) == 3)
    assert list(shares.get_ydata()) == pytest.approx([1, 0.75, 0.625], rel=0.02)
    assert figure.axes[0].get_ylabel() == "throughput (items/s)"
    assert figure.axes[1].get_ylabel() == "share of the ideal (%)"
    assert_legible(figure)


def test_one_value_of_a_knob_is_no_course() -> None:
    assert scaling(shown_run(factory.make_run(threads()[:1])).entries) is None


def test_the_latency_to_keep_is_a_line_in_both_panels() -> None:
    run = factory.make_run(
        [sample_runs.measured(sample_runs.case(batch=b), 0.004 * b) for b in (1, 8)]
    )
    figure = drawn(batches(shown_run(run).entries, slo=Slo(latency_s=0.02)))
    left, right = figure.axes
    assert any(list(line.get_ydata()) == [20.0, 20.0] for line in left.lines)
    assert any(list(line.get_xdata()) == [20.0, 20.0] for line in right.lines)
    assert "the latency limit, p50 of at most 20.0 ms" in figure.get_supxlabel()
    assert left.get_ylabel() == "latency p50 (ms)"
    assert left.get_ylim()[0] < 20 < left.get_ylim()[1]
    assert_legible(figure)


def test_a_bound_on_p99_is_drawn_against_p99() -> None:
    run = factory.make_run(
        [sample_runs.measured(sample_runs.case(batch=b), 0.004 * b, count=400) for b in (1, 8)]
        + [sample_runs.measured(sample_runs.case(precision="fp16"), 0.002, count=20)]
    )
    shown = shown_run(run).entries
    figure = drawn(batches(shown, slo=Slo(latency_s=0.02, metric="latency_p99")))
    left, right = figure.axes
    assert (left.get_ylabel(), right.get_xlabel()) == ("latency p99 (ms)", "latency p99 (ms)")
    line = next(
        one for one in left.lines if len(one.get_xdata()) == 2 and one.get_linewidth() == 1.1
    )
    p99 = [entry.quantity("latency_p99") for entry in shown[:2]]
    assert list(line.get_ydata()) == pytest.approx([q.value * 1e3 for q in p99 if q])
    marks = [one.get_ydata()[0] for one in left.lines if one.get_marker() != "None"]
    assert marks == list(line.get_ydata())
    note = figure.get_supxlabel()
    assert "the latency limit, p99 of at most 20.0 ms" in note
    assert "Too few samples for p99: 1 of the measured cases" in note
    assert_legible(figure)


def test_without_samples_for_p99_the_figure_falls_back_to_p50_without_a_line() -> None:
    run = factory.make_run(
        [sample_runs.measured(sample_runs.case(batch=b), 0.004 * b, count=20) for b in (1, 8)]
    )
    figure = drawn(batches(shown_run(run).entries, slo=Slo(latency_s=0.02, metric="latency_p99")))
    assert figure.axes[0].get_ylabel() == "latency p50 (ms)"
    assert "to keep" not in figure.get_supxlabel()


@pytest.mark.parametrize(
    ("limits", "slo"),
    [
        ((), None),
        (("peak_rss <= 5 MB", "latency_p50 >= 1 ms"), None),
        (
            ("latency_p50 <= 10 ms", "latency_p99 <= 30 ms"),
            Slo(latency_s=0.03, metric="latency_p99"),
        ),
        (("latency_p50 <= 10 ms", "latency_p50 <= 10 ms"), Slo(latency_s=0.01)),
        (("latency_p99 <= 10 ms", "latency_p99 <= 20 ms"), None),
    ],
)
def test_the_bound_comes_from_the_limits_of_tests(limits: tuple[str, ...], slo: Slo | None) -> None:
    assert slo_of_limits(parse_limit(text, place="here") for text in limits) == slo


def test_the_bound_of_a_load_is_not_drawn_over_latencies_without_waiting() -> None:
    """An INVALID load would look kept: every latency of a closed loop lies below its bound."""
    late = Load(
        spec=parse_load("server:100:20ms", place="here"),
        tests=(LoadTest(rate_per_s=100, valid=False, percentiles_ns={"99": 300_000_000}),),
        answer=0,
    )
    results = [
        dataclasses.replace(
            sample_runs.measured(sample_runs.case(batch=b), 0.004 * b), loads=(late,)
        )
        for b in (1, 2)
    ]
    made = dict(figures(shown_run(factory.make_run(results)).entries))["batch"]
    left, right = made.axes
    assert left.get_ylabel() == "latency p50 (ms)"
    assert "to keep" not in made.get_supxlabel()
    assert not [line for line in left.lines if list(line.get_ydata()) == [20.0, 20.0]]
    assert not [line for line in right.lines if list(line.get_xdata()) == [20.0, 20.0]]


def test_energy_by_case() -> None:
    with_energy = [fleet_views.with_energy(result, 60.0) for result in variants()]
    figure = drawn(FIGURES["energy"](shown_run(factory.make_run(with_energy)).entries))
    assert figure.axes[0].get_xlabel() == "energy of one inference (mJ)"
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[0] == "int8-static/cpu/b1"
    assert_legible(figure)
