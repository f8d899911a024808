"""The newest result of each case over stored runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.run import Run
from pytest_ortbench.store.folder import RunFolder, write_document
from pytest_ortbench.store.newest import NewestResults
from tests.results_factory import make_case, make_result, make_run


def run_at(minute: int, *providers: str, host: str = "lab") -> Run:
    run = make_run(
        [make_result(case=make_case(provider=name)) for name in providers],
        run_id=f"20260102T03{minute:02}00Z-{host}-0000",
    )
    machine = replace(run.machine, host=host)
    return replace(run, started_at=f"2026-01-02T03:{minute:02}:00Z", machine=machine)


def store(root: Path, run: Run) -> Path:
    path = root / run.run_id / "run.json"
    write_document(run, path)
    return path


def names(newest: NewestResults) -> list[tuple[str, list[str]]]:
    return [
        (run.run_id[9:13], [result.case.provider.alias for result in run.cases])
        for run in newest.runs()
    ]


def test_of_each_case_of_a_machine_the_newest_result_counts(tmp_path: Path) -> None:
    store(tmp_path, run_at(1, "cpu", "cuda"))
    store(tmp_path, run_at(2, "cpu", "openvino"))
    store(tmp_path, run_at(3, "cpu", host="other"))
    newest = NewestResults(tmp_path, most=9)
    assert names(newest) == [
        ("0303", ["cpu"]),
        ("0302", ["cpu", "openvino"]),
        ("0301", ["cuda"]),
    ]
    assert names(NewestResults(tmp_path, most=2)) == names(newest)[:2]


def test_what_comes_and_changes_is_seen_and_nothing_else_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_ortbench.store import newest as module

    read: list[Path] = []
    load = module.load
    monkeypatch.setattr(module, "load", lambda path: read.append(path) or load(path))
    first = store(tmp_path, run_at(1, "cpu"))
    newest = NewestResults(tmp_path, most=9)
    assert newest.runs()
    assert newest.runs()
    assert read == [first]
    second = store(tmp_path, run_at(2, "cuda"))
    assert len(newest.runs()) == 2
    assert read == [first, second]
    write_document(run_at(1, "cpu", "openvino"), first)
    assert names(newest) == [("0302", ["cuda"]), ("0301", ["cpu", "openvino"])]


def test_a_run_in_progress_counts_and_what_is_none_is_left_out(tmp_path: Path) -> None:
    run = run_at(1, "cpu", "cuda")
    folder = RunFolder.create(tmp_path, replace(run, finished_at=None, cases=()))
    folder.append(run.cases[0])
    broken = store(tmp_path, run_at(2, "cpu"))
    broken.write_text("{")
    assert names(NewestResults(tmp_path, most=9)) == [("0301", ["cpu"])]
    assert NewestResults(tmp_path / "none", most=9).runs() == []
