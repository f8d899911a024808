"""Who wins, what ties, what is a hole, and what may not be compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.fleet.numbers.facts import CaseFacts, RunFacts
from pytest_ortbench.fleet.numbers.matrix import ABSENT, OTHERWISE, Matrix, by_case, by_workload
from pytest_ortbench.fleet.numbers.sentences import conclusions, warnings
from pytest_ortbench.fleet.numbers.sides import choose_axis, lay_out_sides
from tests.fleet.numbers.runs import case, exact, latency, run


def compared(*runs: RunFacts, axis: str = "machine", metric: str = "latency_p50") -> Matrix:
    return by_case(lay_out_sides(runs, axis), metric)


def marks(matrix: Matrix) -> list[list[str]]:
    return [
        ["best" if cell.best else "tie" if cell.tie else "" for cell in row.cells]
        for row in matrix.rows
    ]


def test_the_fastest_of_three_and_its_ratio() -> None:
    matrix = compared(
        run("a", case(latency(3.9, 4.0, 4.1))),
        run("b", case(latency(1.9, 2.0, 2.1))),
        run("c", case(latency(7.8, 8.0, 8.2))),
    )
    assert [side.label for side in matrix.sides] == ["a", "b", "c"]
    assert marks(matrix) == [["", "best", ""]]
    ratios = [cell.ratio for cell in matrix.rows[0].cells]
    assert [one.value for one in ratios if one] == [1.0, 0.5, 2.0]
    assert ratios[1] is not None
    assert (ratios[1].low, ratios[1].high) == (1.9 / 4.1, 2.1 / 3.9)
    assert [cell.differs for cell in matrix.rows[0].cells] == [False, True, True]


def test_a_gap_inside_the_intervals_is_a_tie() -> None:
    matrix = compared(
        run("a", case(latency(1.8, 2.0, 2.2))), run("b", case(latency(2.1, 2.3, 2.5)))
    )
    assert marks(matrix) == [["best", "tie"]]
    assert not matrix.rows[0].cells[1].differs


def test_between_runs_less_than_five_per_cent_is_a_tie_however_narrow_the_intervals() -> None:
    narrow = compared(
        run("a", case(latency(1.99, 2.0, 2.01))), run("b", case(latency(2.07, 2.08, 2.09)))
    )
    assert marks(narrow) == [["best", "tie"]]
    wide = compared(
        run("a", case(latency(1.99, 2.0, 2.01))), run("b", case(latency(2.11, 2.12, 2.13)))
    )
    assert marks(wide) == [["best", ""]]


def test_within_one_run_the_intervals_alone_decide() -> None:
    matrix = compared(
        run(
            "a", case(latency(1.99, 2.0, 2.01)), case(latency(2.07, 2.08, 2.09), provider="xnnpack")
        ),
        axis="provider",
    )
    assert marks(matrix) == [["best", ""]]


def test_single_processes_of_one_run_are_like_different_runs() -> None:
    def of_one_worker(ms: float, provider: str) -> CaseFacts:
        return replace(case(latency(ms - 0.01, ms, ms + 0.01), provider=provider), one_worker=True)

    near = compared(run("a", of_one_worker(2.0, "cpu"), of_one_worker(2.08, "x")), axis="provider")
    assert marks(near) == [["best", "tie"]]
    assert not near.rows[0].cells[1].differs
    far = compared(run("a", of_one_worker(2.0, "cpu"), of_one_worker(2.12, "x")), axis="provider")
    assert marks(far) == [["best", ""]]
    assert far.rows[0].cells[1].differs


def test_a_blurred_number_ties_more_easily() -> None:
    matrix = compared(
        run("a", case(latency(1.9, 2.0, 2.1))),
        run("b", case(latency(2.15, 2.2, 2.25), blurred_by=["STEAL"])),
    )
    assert marks(matrix) == [["best", "tie"]]


def test_higher_is_better_where_the_metric_says_so() -> None:
    matrix = compared(
        run("a", case({"throughput": (99, 100, 101)})),
        run("b", case({"throughput": (198, 200, 202)})),
        metric="throughput",
    )
    assert marks(matrix) == [["", "best"]]


def test_what_must_not_be_ranked_keeps_its_number_and_wins_nothing() -> None:
    matrix = compared(
        run("a", case(latency(3.9, 4.0, 4.1)), case(latency(7, 8, 9), batch=8)),
        run(
            "b", case(latency(0.9, 1.0, 1.1), reason="INACCURATE"), case(latency(7, 8, 9), batch=8)
        ),
    )
    cell = matrix.rows[0].cells[1]
    assert cell.quantity is not None
    assert (cell.quantity.value, cell.reason, cell.ratio) == (1.0, "INACCURATE", None)
    assert marks(matrix) == [["", ""], ["best", "tie"]]
    assert matrix.common == 1


def test_energy_that_two_ways_disagree_on_is_shown_and_not_ranked() -> None:
    def of(joule: float, reason: str = "") -> CaseFacts:
        spans = {"energy_per_inference": exact(joule), **latency(joule, joule, joule)}
        return replace(case(spans), power_reason=reason)

    runs = run("a", of(4.0)), run("b", of(1.0, "ENERGY-DISAGREE")), run("c", of(2.0))
    matrix = compared(*runs, metric="energy_per_inference")
    doubted = matrix.rows[0].cells[1]
    assert doubted.quantity is not None
    assert (doubted.quantity.value, doubted.reason) == (1.0, "ENERGY-DISAGREE")
    assert marks(matrix) == [["", "", "best"]]
    assert marks(compared(*runs)) == [["", "best", ""]]


def test_holes_stay_holes_and_the_mean_is_over_the_common_cases() -> None:
    matrix = compared(
        run(
            "a",
            case(latency(4, 4, 4)),
            case(latency(8, 8, 8), model="other"),
            case(latency(1, 1, 1), precision="fp16"),
        ),
        run("b", case(latency(2, 2, 2)), case(latency(32, 32, 32), model="other")),
    )
    # The other machine did that work in another way.
    assert [cell.reason for cell in matrix.rows[2].cells] == ["", OTHERWISE]
    only = compared(run("a", case(latency(4, 4, 4))), run("b", case(latency(1, 1, 1), model="o")))
    assert [cell.reason for row in only.rows for cell in row.cells if cell.reason] == [ABSENT] * 2
    assert matrix.rows[2].cells[1].quantity is None
    # ×1/2 and ×4: their geometric mean is √2.
    mean = matrix.overall[1].ratio
    assert mean is not None
    assert abs(mean.value - 2**0.5) < 1e-12
    assert (matrix.common, [one.cells for one in matrix.overall]) == (2, [3, 2])


def test_other_inputs_and_other_files_are_not_compared() -> None:
    base = run("a", case(latency(4, 4, 4)))
    shapes = compared(base, run("b", case(latency(1, 1, 1), inputs="x:[1, 9]")))
    assert shapes.rows[0].cells[1].reason.startswith("SHAPES")
    files = compared(base, run("b", case(latency(1, 1, 1), digest="e")))
    assert files.rows[0].cells[1].reason == "another model file under this name"
    over_time = compared(base, run("a", case(latency(1, 1, 1), digest="e"), day=2), axis="time")
    assert over_time.rows[0].cells[1].comparable


def test_each_side_sends_its_best_variant_that_may_be_ranked() -> None:
    layout = lay_out_sides(
        [
            run("a", case(latency(4, 4, 4)), case(latency(3, 3, 3), precision="fp16")),
            run(
                "b",
                case(latency(2, 2, 2), provider="cuda"),
                case(latency(1, 1, 1), provider="cuda", precision="int8", reason="INACCURATE"),
            ),
        ],
        "machine",
    )
    matrix = by_workload(layout, "latency_p50")
    assert [[cell.variant for cell in row.cells] for row in matrix.rows] == [
        ["fp16/cpu", "native/cuda"]
    ]
    assert marks(matrix) == [["", "best"]]


def test_the_newest_run_of_a_machine_counts() -> None:
    layout = lay_out_sides(
        [
            run("a", case(latency(9, 9, 9)), day=2),
            run("a", case(latency(4, 4, 4)), day=3),
            run("b", case(latency(2, 2, 2))),
        ],
        "machine",
    )
    matrix = by_case(layout, "latency_p50")
    assert [cell.quantity.value for cell in matrix.rows[0].cells if cell.quantity] == [4, 2]
    assert layout.replaced == 1
    assert "An older measurement" in " ".join(warnings(matrix, "machine", layout.replaced))


@pytest.mark.parametrize(("axis", "other"), [("machine", "b"), ("time", "a")])
def test_a_device_in_software_is_not_compared_with_another_one(axis: str, other: str) -> None:
    one, two = (
        run(host, case(latency(value, value, value), provider="webgpu"), day=day)
        for host, value, day in (("a", 40.0, 1), (other, 2.0, 2))
    )
    simulated = replace(
        one, cases=tuple(replace(entry, software=("SwiftShader",)) for entry in one.cases)
    )
    cells = compared(simulated, two, axis=axis).rows[0].cells
    assert [cell.comparable for cell in cells] == [True, False]
    assert cells[1].reason.startswith("DEVICE: ")
    assert [cell.ratio is None for cell in cells] == [False, True]
    same = compared(one, two, axis=axis).rows[0].cells
    assert [cell.comparable for cell in same] == [True, True]


def test_a_device_in_software_may_be_compared_with_another_provider() -> None:
    cases = (
        case(latency(4, 4, 4)),
        replace(case(latency(9, 9, 9), provider="webgpu"), software=("SwiftShader",)),
    )
    cells = compared(run("a", *cases), axis="provider").rows[0].cells
    assert [cell.comparable for cell in cells] == [True, True]


def test_a_host_with_another_processor_is_another_machine() -> None:
    matrix = compared(
        run("a", case(latency(4, 4, 4)), cpu="old"),
        run("a", case(latency(2, 2, 2)), cpu="new", day=2),
    )
    assert [side.label for side in matrix.sides] == ["a", "a (2)"]


def test_what_differs_becomes_the_columns() -> None:
    one = case(latency(4, 4, 4))
    assert choose_axis([run("a", one), run("b", one)]) == "machine"
    older = run("a", one, runtime="onnxruntime 1.31.0")
    assert choose_axis([older, run("a", one, day=2)]) == "runtime"
    assert choose_axis([run("a", one), run("a", one, day=2)]) == "time"
    assert choose_axis([run("a", one, case(latency(4, 4, 4), provider="cuda"))]) == "provider"
    layout = lay_out_sides([older, run("a", one, day=2)], "runtime")
    assert [side.label for side in layout.sides] == ["onnxruntime 1.31.0", "onnxruntime 1.32.0"]


def test_runs_over_time_stand_from_old_to_new_and_the_canary_tells_whose_fault_it_is() -> None:
    matrix = compared(
        run("a", case(latency(4, 4, 4)), day=2, canary_s=0.0011),
        run("a", case(latency(2, 2, 2)), day=1, canary_s=0.001),
        axis="time",
    )
    assert [side.label for side in matrix.sides] == ["2026-01-01 03:04", "2026-01-02 03:04"]
    said = " ".join(warnings(matrix, "time", 0))
    assert "the machine changed" in said
    assert "2026-01-02 03:04 ×1.10" in said


def test_sentences_say_who_wins_by_how_much_and_with_what() -> None:
    runs = [
        run("a", case(latency(3.9, 4.0, 4.1))),
        run("b", case(latency(1.9, 2.0, 2.1), precision="fp16"), case(latency(2.9, 3.0, 3.1))),
    ]
    layout = lay_out_sides(runs, "machine")
    said = conclusions(by_workload(layout, "latency_p50"), by_case(layout, "latency_p50"))
    assert said == [
        "net: recommended: fp16/cpu on b, fastest, ×2.00 [×1.86, ×2.16] faster than a "
        "(native/cpu); its accuracy was not measured",
        "overall: b is fastest; the next one, a, takes ×1.33 [×1.26, ×1.41] as long, latency p50 "
        "of the one case that every side has",
        "net b1: fastest b with fp16/cpu, latency p50 2.00 s [1.90, 2.10], ×2.00 [×1.86, ×2.16] "
        "faster than a (native/cpu)",
    ]


def test_where_the_baseline_is_best_the_next_one_says_by_how_much() -> None:
    runs = [
        run("a", case(latency(1.9, 2.0, 2.1))),
        run("b", case(latency(3.9, 4.0, 4.1))),
        run("c", case(latency(2.9, 3.0, 3.1))),
    ]
    layout = lay_out_sides(runs, "machine")
    said = conclusions(by_workload(layout, "latency_p50"), by_case(layout, "latency_p50"))
    assert said[1] == (
        "overall: a is fastest; the next one, c, takes ×1.50 [×1.38, ×1.63] as long, latency p50 "
        "of the one case that every side has"
    )


def test_an_overall_tie_is_said() -> None:
    runs = [run("a", case(latency(3, 4, 5))), run("b", case(latency(2.9, 3.9, 4.9)))]
    layout = lay_out_sides(runs, "machine")
    said = conclusions(by_workload(layout, "latency_p50"), by_case(layout, "latency_p50"))
    assert said[:2] == [
        "net: no recommendation: native/cpu on b and native/cpu on a can't be told apart, "
        "too noisy",
        "overall: no clear best: a and b can't be told apart, too noisy, latency p50 of the one "
        "case that every side has",
    ]
    assert not said[1].winner
    near = [run("a", case(latency(3.9, 4, 4.1))), run("b", case(latency(3.8, 3.95, 4.1)))]
    layout = lay_out_sides(near, "machine")
    said = conclusions(by_workload(layout, "latency_p50"), by_case(layout, "latency_p50"))
    assert "no clear best: a and b are alike" in said[1]


def test_without_a_common_case_there_is_no_mean_and_the_emptiest_side_is_named() -> None:
    runs = [
        run("a", case(latency(4, 4, 4), provider="x"), case(latency(4, 4, 4), provider="y")),
        run("b", case(latency(2, 2, 2), provider="x"), case(latency(2, 2, 2), provider="y")),
        run("c", case(latency(1, 1, 1), provider="z", model="third")),
    ]
    layout = lay_out_sides(runs, "machine")
    said = conclusions(by_workload(layout, "latency_p50"), by_case(layout, "latency_p50"))
    assert next(text for text in said if text.startswith("overall")) == (
        "overall: no case has a number on every side, so no mean can be computed; without c "
        "there would be 2 cases"
    )
    assert said[-1] == "not ranked, because only one side has a number: third b1"


def test_where_a_number_is_0_there_is_no_mean_and_whose_it_is_is_said() -> None:
    metric = "accuracy_max_abs"

    def overall(*values: float) -> str:
        runs = [
            run(name, case({metric: exact(value)}))
            for name, value in zip("abc", values, strict=False)
        ]
        layout = lay_out_sides(runs, "machine")
        said = conclusions(by_workload(layout, metric), by_case(layout, metric))
        return next(text for text in said if text.startswith("overall"))

    assert overall(0.0, 0.25) == (
        "overall: no mean of the ratios can be computed, because a has a value that is not above 0"
    )
    assert overall(0.5, 0.0) == (
        "overall: no mean of the ratios can be computed, because b has a value that is not above 0"
    )
    assert overall(0.0, 0.0, 0.5) == (
        "overall: no mean of the ratios can be computed, because a, b have values that are not "
        "above 0"
    )


def test_machines_carry_the_warning_about_single_units() -> None:
    matrix = compared(run("a", case(latency(4, 4, 4))), run("b", case(latency(2, 2, 2))))
    assert "8 %" in warnings(matrix, "machine", 0)[0]
    assert "22 %" in warnings(matrix, "machine", 0)[0]
