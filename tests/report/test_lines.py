"""Lines of figures: what each is called, and that no two look alike."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.figures.batches import batches
from pytest_ortbench.report.figures.differing import differing
from pytest_ortbench.report.figures.scaling import scaling
from tests import results_factory as factory


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        pytest.param([("fp32", "cpu", "b1", "width:320")], ["fp32/cpu"]),
        pytest.param([("fp32", "cpu", "b1"), ("fp32", "cpu", "b8")], ["b1", "b8"]),
        pytest.param(
            [("fp32", "cpu", "b1", "width:320"), ("fp16", "cuda", "b1", "width:320")],
            ["fp32/cpu", "fp16/cuda"],
        ),
        pytest.param([("fp32", "cpu"), ("fp32", "cpu", "threads:2")], ["fp32", "threads:2"]),
    ],
)
def test_a_line_is_called_by_what_varies(labels: list[tuple[str, ...]], said: list[str]) -> None:
    assert differing(labels) == said


def swept() -> list[CaseResult]:
    return [
        factory.make_result(
            case=factory.make_case(
                provider=provider,
                batch=batch,
                knobs={"threads": threads},
                dims={"height": 224, "width": 320},
            ),
            median_ns=round(8e6 * batch / int(threads)),
        )
        for provider in ("cpu", "openvino")
        for threads in ("1", "2", "4")
        for batch in (1, 8)
    ]


def test_lines_of_several_thread_counts_look_different_and_are_named_beside_the_panel() -> None:
    figure = batches(shown_run(factory.make_run(swept())).entries)
    assert figure is not None
    left, right = figure.axes
    lines = [
        line
        for line in left.lines
        if line.get_marker() == "None" and np.size(line.get_xdata()) == 2
    ]
    looks = {(line.get_color(), line.get_linestyle()) for line in lines if line.get_linewidth() < 2}
    assert len(looks) == 6
    legend = right.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == {
        f"{provider}/threads:{threads}"
        for provider in ("cpu", "openvino")
        for threads in ("1", "2", "4")
    }
    assert left.get_legend() is None


def test_the_legend_of_scaling_covers_no_line() -> None:
    figure = scaling(shown_run(factory.make_run(swept())).entries)
    assert figure is not None
    left, right = figure.axes
    assert left.get_legend() is None
    figure.draw_without_rendering()
    legend = right.get_legend()
    assert legend is not None
    assert legend.get_window_extent().x0 >= right.get_window_extent().x1
    assert {text.get_text() for text in legend.get_texts()} == {
        f"{provider}/{batch}" for provider in ("cpu", "openvino") for batch in ("b1", "b8")
    }
