"""Cases of machines whose runtimes are called, or are, something else."""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.fleet.numbers.facts import RunFacts
from pytest_ortbench.fleet.numbers.matrix import by_case
from pytest_ortbench.fleet.numbers.sides import lay_out_sides
from pytest_ortbench.fleet.report.view import build_view
from tests.fleet.numbers.runs import case, latency, run


def on(host: str, runtimes: dict[str, str], *labels: str) -> RunFacts:
    """A run of one model, once in each runtime."""
    cases = [case(latency(1.0, 1.1, 1.2), runtime=label) for label in labels]
    return replace(run(host, *cases), runtimes=runtimes)


PLAIN = on("a", {"current": "onnxruntime 1.32.0"}, "current")


def test_a_runtime_that_is_only_called_otherwise_pairs() -> None:
    other = on("b", {"ort-1.32.0": "onnxruntime 1.32.0"}, "ort-1.32.0")
    layout = lay_out_sides([PLAIN, other], "machine")
    matrix = by_case(layout, "latency_p50")
    assert (matrix.common, len(matrix.rows)) == (1, 1)
    assert layout.runtimes == {}
    assert [row.label for row in matrix.rows] == ["native/cpu/b1"]


def test_machines_with_a_runtime_each_pair_and_it_is_kept_that_they_differ() -> None:
    other = on("b", {"ov": "onnxruntime-openvino 1.24.1"}, "ov")
    layout = lay_out_sides([PLAIN, other], "machine")
    assert by_case(layout, "latency_p50").common == 1
    assert layout.runtimes == {"a": "onnxruntime 1.32.0", "b": "onnxruntime-openvino 1.24.1"}
    assert any("openvino 1.24.1 on b" in text for text in build_view([PLAIN, other]).warnings)


def test_where_a_machine_has_several_each_pairs_with_its_own_kind() -> None:
    both = on(
        "b",
        {"old": "onnxruntime 1.31.0", "new": "onnxruntime 1.32.0"},
        "old",
        "new",
    )
    layout = lay_out_sides([PLAIN, both], "machine")
    matrix = by_case(layout, "latency_p50")
    assert [row.whole for row in matrix.rows] == [True, False]
    assert layout.runtimes == {}
    assert [row.label for row in matrix.rows] == [
        "native/cpu/b1+onnxruntime 1.32.0",
        "native/cpu/b1+onnxruntime 1.31.0",
    ]


def test_one_label_for_two_runtimes_pairs_by_the_label() -> None:
    changed = on("b", {"current": "onnxruntime 1.31.0", "x": "onnxruntime 1.32.0"}, "current", "x")
    matrix = by_case(lay_out_sides([PLAIN, changed], "machine"), "latency_p50")
    assert len(matrix.rows) == 2


def test_no_mean_is_told_over_nothing() -> None:
    fast, slow = (
        run(host, case(latency(1.0, 1.1, 1.2), provider=provider))
        for host, provider in (("a", "cpu"), ("b", "cuda"))
    )
    shown = build_view([fast, slow])
    assert shown.main.common == 0
    # Each side's best is common, so the overview is of these.
    assert shown.over_all is shown.sections[0].matrix
    assert shown.over_all.common == 1
    assert "workload" in shown.counts
    apart = build_view([fast, run("b", case(latency(1.0, 1.1, 1.2), model="other"))])
    assert apart.over_all.common == 0
    assert "none" in apart.counts
