"""Throughput over callers and sessions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.scaling import Scaling, scalings, total_threads
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.scaling import scaling_lines
from tests.results_factory import make_case, make_result, make_run
from tests.summarised import row_of


def scalings_of(run: Run) -> list[Scaling]:
    return scalings(run, [summarise(result) for result in run.cases])


def at(concurrency: int, sessions: int = 1, *, per_s: float, cpu_s: float = 1e-4) -> CaseResult:
    """A case whose callers together make so many inferences a second, in every worker."""
    knobs = {"concurrency": str(concurrency), "sessions": str(sessions)}
    case = replace(make_case(batch=1), knobs=knobs, concurrency=concurrency, sessions=sessions)
    result = make_result(case=case)
    measurements = tuple(
        replace(
            each,
            threads=2,
            samples=replace(
                each.samples,
                wall_ns=round(each.samples.count / per_s * 1e9),
                sum_ns=round(each.samples.count * concurrency * sessions / per_s * 1e9),
                cpu_ns=round(each.samples.count * cpu_s * 1e9),
            ),
        )
        for each in result.measurements
    )
    return replace(result, measurements=measurements, flags=())


# As seen on two CPUs.
SEEN = [at(1, per_s=7702), at(2, per_s=5167), at(4, per_s=3758)]


def test_throughput_of_several_callers_is_over_wall_time() -> None:
    assert summarise(SEEN[1]).quantities["throughput"].value == pytest.approx(5167, rel=1e-4)
    assert summarise(SEEN[0]).quantities["throughput"].value == pytest.approx(7702, rel=1e-4)


def test_efficiency_is_of_what_as_many_single_callers_would_do() -> None:
    """T5: callers on a shared session, with all threads stated."""
    [scaling] = scalings_of(make_run(SEEN))
    assert [point.efficiency for point in scaling.points] == pytest.approx(
        [1.0, 5167 / 7702 / 2, 3758 / 7702 / 4], rel=1e-3
    )
    assert [point.total_threads for point in scaling.points] == [2, 3, 5]
    assert [point.cpu_s for point in scaling.points] == pytest.approx([1e-4] * 3, rel=1e-3)


def test_what_may_not_be_ranked_has_no_highest_throughput() -> None:
    nan = (Flag(name="NONFINITE", detail="64 values in the first run"),)
    broken = [replace(result, flags=nan) for result in SEEN]
    assert scaling_lines(shown_run(make_run(broken)))[1].endswith(": nothing can be ranked")
    one_broken = [broken[0], *SEEN[1:]]
    assert scaling_lines(shown_run(make_run(one_broken)))[1].endswith(
        ": highest throughput 5.17 k/s with 1 session of 2 callers"
    )


def test_sessions_have_their_own_threads() -> None:
    assert total_threads(at(1, 4, per_s=100)) == 8
    assert total_threads(at(2, 2, per_s=100)) == 6


def test_ways_of_calling_stand_beside_each_other() -> None:
    def how(call: str, spin: str, per_s: float) -> CaseResult:
        result = at(1, per_s=per_s)
        knobs = {**result.case.knobs, "spin": spin, **({"call": call} if call != "sync" else {})}
        return replace(result, case=replace(result.case, knobs=knobs, call=call))

    found = [how("async", "on", 500), how("sync", "off", 800), how("sync", "on", 1000)]
    [scaling] = scalings_of(make_run(found))
    assert [(point.call, point.spin) for point in scaling.points] == [
        ("sync", "on"),
        ("sync", "off"),
        ("async", "on"),
    ]
    assert [point.efficiency for point in scaling.points] == pytest.approx([1, 0.8, 0.5], rel=1e-4)
    # The caller of asynchronous inferences only waits.
    assert [point.total_threads for point in scaling.points] == [2, 2, 1]
    lines = scaling_lines(shown_run(make_run(found)))
    assert lines[1].endswith("1.00 k/s with 1 session of 1 caller, spinning on")
    assert lines[2].split()[3:5] == ["call", "spinning"]
    assert [line.split()[2:4] for line in lines[3:]] == [
        ["sync", "on"],
        ["sync", "off"],
        ["async", "on"],
    ]


def test_cases_that_differ_otherwise_are_no_scaling() -> None:
    other = at(2, per_s=1)
    other = replace(other, case=replace(other.case, batch=8))
    assert scalings_of(make_run([SEEN[0], other])) == []
    assert scalings_of(make_run([make_result(), make_result()])) == []


def test_lines_state_threads_efficiency_and_cpu() -> None:
    lines = scaling_lines(shown_run(make_run([SEEN[2], SEEN[0]])))
    assert lines[0] == ""
    assert lines[1].endswith(": highest throughput 7.70 k/s with 1 session of 1 caller")
    assert lines[2].split("  ")[-1] == "peak RSS"
    cells = [line.split() for line in lines[3:]]
    assert [cell[:3] for cell in cells] == [["1", "1", "2"], ["1", "4", "5"]]
    assert "12 %" in lines[4]
    assert "100 µs" in lines[4]


def test_a_column_of_rates_has_one_unit() -> None:
    lines = scaling_lines(shown_run(make_run([at(1, per_s=935), at(2, per_s=1748)])))
    assert [line.split()[3] for line in lines[3:]] == ["935", "1750"]
    assert " ".join(lines[2].split()).startswith("sessions callers each threads in all items/s ")


def test_rows_have_both_axes() -> None:
    cells = row_of(at(2, 4, per_s=10), make_run())
    assert (cells["concurrency"], cells["sessions"]) == (2, 4)
