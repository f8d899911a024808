"""The benchmark that accumulates runs: what a line keeps, and what the table makes of lines."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.results_factory import make_case, make_result, make_turns

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("yardstick_trials")


def line(trials: ModuleType, seed: int, *, slower: float = 1.0, flags: int = 0) -> dict[str, Any]:
    case = make_case(knobs={"threads": "1"})
    case = replace(case, session=replace(case.session, intra_op_num_threads=1))
    turns = [make_turns(seed=3 * seed + worker, slower=(slower,)) for worker in range(3)]
    median_ns = round(3_000_000 * slower)
    result = make_result(case=case, seed=seed, turns=turns, median_ns=median_ns)
    run: dict[str, Any] = trials.line_of(result, load=(0.1, 0.2))
    return {**run, "flags": ["CPU-SHARE"] * flags}


def test_lines_are_read_back_and_a_torn_one_is_dropped(trials: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "trials.jsonl"
    runs = [line(trials, seed) for seed in range(3)]
    assert len(runs[0]["launches"][0]["model_mean_ns"]) == 100
    whole = "".join(json.dumps(run) + "\n" for run in runs)
    file.write_text(whole + json.dumps(runs[0])[:100])
    trials.drop_torn_line(file)
    assert file.read_text() == whole
    assert [run["at"] for run in trials.read(file)] == [run["at"] for run in runs]
    assert trials.read(tmp_path / "none") == []


def test_a_machine_that_is_slower_at_times_moves_p50_and_no_ratio(trials: ModuleType) -> None:
    runs = [line(trials, seed, slower=1 + 0.2 * (seed % 2)) for seed in range(6)]
    estimates = {
        name: [estimate(run) for run in runs] for name, estimate in trials.ESTIMATES.items()
    }
    apart = {name: max(values) / min(values) - 1 for name, values in estimates.items()}
    assert apart["p50"] == pytest.approx(0.2, abs=0.02)
    assert apart["yardstick itself"] == pytest.approx(0.2, abs=0.02)
    assert max(apart["ratio of blocks"], apart["ratio of floors"]) < 0.02
    assert apart["latency_relative"] < 0.02


def test_the_table_leaves_flagged_runs_out_unless_told_otherwise(trials: ModuleType) -> None:
    runs = [line(trials, seed, flags=seed % 2) for seed in range(5)]
    runs[0]["at"] = "2026-01-02T03:04:05+00:00"
    assert trials.occasions(runs) == 2
    assert trials.counted_flags(runs) == [("CPU-SHARE", 2)]
    for flagged, compared in ((False, 3), (True, 5)):
        table = trials.table(runs, flagged=flagged)
        assert f"{compared} of 5 runs compared" in table


def test_a_failed_run_and_one_without_a_yardstick_are_lines_as_well(trials: ModuleType) -> None:
    failed = trials.line_of(make_result(status="crash"), load=(0.0, 0.0))
    alone = trials.line_of(make_result(), load=(0.0, 0.0))
    assert (failed["status"], "p50_ns" in failed) == ("crash", False)
    assert alone["launches"] == [{"absence": ""}] * 3
    assert trials.ESTIMATES["ratio of blocks"](alone) is None
    assert trials.table([failed, alone, alone], flagged=True)


def test_how_often_an_interval_covers(trials: ModuleType) -> None:
    runs = [[10, 9, 11], [10, 9, 11], [13, 12, 14], [10, None, None]]
    assert trials.coverage(runs) == (2, 3)
    assert trials.coverage([[10, None, None]]) == (0, 0)


def test_what_stored_runs_say_of_the_runs_and_where_a_trend_steps(trials: ModuleType) -> None:
    runs = [line(trials, seed, slower=1 + 0.2 * (seed % 2)) for seed in range(24)]
    text = trials.verdicts(runs)
    by_nearest = [row.split() for row in text.splitlines() if row.startswith("nearest runs")]
    # Slower, inconclusive, same, faster, flagged, incomparable, for +0, +10 and +20 %.
    assert [sum(map(int, row[4:10])) for row in by_nearest] == [24] * 3
    assert [int(row[4]) for row in by_nearest] == [0, 24, 24]
    *_, trend, changed = text.splitlines()
    assert trend.split()[-1] == "none"
    assert changed.split()[-4:] == ["+10.0", "%", "at", "15"]


def test_runs_beside_a_busy_process_are_judged_by_the_others_and_in_no_table(
    trials: ModuleType,
) -> None:
    runs = [line(trials, seed) for seed in range(24)]
    beside = [line(trials, seed, slower=1.5) | {"busy": 1} for seed in range(30, 34)]
    beside.append(trials.line_of(make_result(status="crash"), load=(0.0, 0.0)) | {"busy": 1})
    told = trials.beside_busy(
        [trials.stored_trial(run) for run in runs], [trials.stored_trial(run) for run in beside]
    )
    assert [text.partition(": ")[2] for text in told] == ["incomparable 1", "same 4"]
    assert trials.table([*runs, *beside], flagged=True) == trials.table(runs, flagged=True)
    verdicts = trials.verdicts([*runs, *beside])
    assert "nearest runs" in verdicts
    assert all(text in verdicts for text in told)


def test_a_run_without_a_ratio_is_a_trial_with_its_cause(trials: ModuleType) -> None:
    failed = trials.line_of(make_result(status="crash"), load=(0.0, 0.0))
    alone = trials.line_of(make_result(), load=(0.0, 0.0))
    causes = [trials.stored_trial(run).cause for run in (failed, alone)]
    assert causes == ["crash", "absence"]


def test_intervals_that_knew_nothing_of_other_runs_are_widened(trials: ModuleType) -> None:
    now = {"p50_ns": [100, 99, 101], "on_shared_machine": True}
    before = {"p50_ns": [100, 99, 101]}
    assert trials.p50_of(now) == [100, 99, 101]
    _, low, high = trials.p50_of(before)
    assert (low, high) == pytest.approx((96.0, 104.1), abs=0.1)
    assert trials.p50_of({"p50_ns": [100, None, None]}) == [100, None, None]
