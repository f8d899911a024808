"""``ortbench trend``."""

from __future__ import annotations

import dataclasses

from tests.analysis.test_history import run_of
from tests.results_factory import make_case, make_result


def test_changes_are_told_and_drawn_and_never_fail(tool, store, tmp_path):
    for index in range(10):
        store(run_of(index, 3_000_000 if index < 5 else 3_600_000))
    ended = tool("trend", "results", "--plot=trend.png")
    assert ended.code == 0
    assert "on a: +20" in ended.out or "on a: +19" in ended.out
    for fact in ("2026-01-06", "0123456789ab", "run-05"):
        assert fact in ended.out
    assert (tmp_path / "trend.png").read_bytes().startswith(b"\x89PNG")


def test_too_few_runs_are_not_called_without_a_change(tool, store):
    def lines(count: int) -> str:
        for index in range(count):
            store(run_of(index, 3_000_000))
        return tool("trend", "results").out

    assert "no change" not in lines(4)
    assert "no change" in lines(5)


def test_a_figure_that_can_not_be_written_is_one_line_below_the_changes(tool, store, tmp_path):
    (tmp_path / "taken").touch()
    for index in range(2):
        store(run_of(index, 3_000_000))
    ended = tool("trend", "results", "--plot=taken/trend.png")
    assert ended.code == 2
    assert (ended.error.place, "--plot" in ended.error.hint) == ("taken/trend.png", True)
    assert ended.err.count("\n") == 1
    [change] = ended.out.splitlines()
    assert change.startswith("mobilenet_v2/native/cpu/b1 ")


def test_the_end_of_a_name_says_how_a_figure_is_written(tool, store, tmp_path):
    for index in range(2):
        store(run_of(index, 3_000_000))
    assert tool("trend", "results", "--plot=trend.PNG").code == 0
    assert (tmp_path / "trend.PNG").read_bytes().startswith(b"\x89PNG")
    ended = tool("trend", "results", "--plot=trend.gif")
    assert (ended.code, ended.error.place) == (2, "--plot")


def test_machines_of_one_host_and_runtimes_are_told_apart(tool, store):
    one, two = run_of(0, 3_000_000), run_of(1, 3_000_000)
    machine = dataclasses.replace(two.machine, stable={**two.machine.stable, "memory": "16 GB"})
    other = make_result(case=make_case(runtime="onnxruntime-1.20.1"), workers=1)
    store(dataclasses.replace(one, cases=(*one.cases, other)))
    store(dataclasses.replace(two, machine=machine))
    case = "mobilenet_v2/native/cpu/b1"
    assert [line.partition(":")[0] for line in tool("trend", "results").out.splitlines()] == [
        f"{case}+current on a",
        f"{case}+onnxruntime-1.20.1 on a",
        f"{case}+current on a (2)",
    ]


def test_without_a_canary_there_is_nothing_to_tell(tool, store):
    store(dataclasses.replace(run_of(0, 3_000_000), canary=None))
    for folder in ("results", "not-there-yet"):
        ended = tool("trend", folder)
        assert ended.code == 0
        assert ended.out == ""
        assert ended.err.split()[:2] == ["note:", folder]


def test_files_of_other_tools_are_passed_over_with_a_note(tool, store, tmp_path):
    store(run_of(0, 3_000_000))
    foreign = tmp_path / "results" / "1" / "run.json"
    foreign.parent.mkdir()
    foreign.write_text('{"experiment": "of another tool"}')
    for command in (("trend", "results"), ("show",), ("export", "latest", "--format=csv")):
        ended = tool(*command)
        assert ended.code == 0
        assert ended.err.split()[1].endswith("1/run.json")
        assert "run.json was skipped: " in ended.err
