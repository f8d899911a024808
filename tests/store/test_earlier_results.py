"""What earlier runs took is read from the newest documents of the same machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.store import earlier_results as room
from pytest_ortbench.store.documents import write_document
from pytest_ortbench.store.earlier_results import earlier_results
from tests.results_factory import make_machine, make_result, make_run

HERE = make_machine()


def _store(root: Path, name: str, wall_s: float, *, cpu: str = "Example CPU 3000") -> None:
    (root / name).mkdir(parents=True)
    run = make_run([replace(make_result(), wall_s=wall_s)])
    run = replace(run, machine=make_machine(cpu=cpu))
    write_document(run, root / name / "run.json")


def _seen(root: Path) -> list[float]:
    return [result.wall_s for result in earlier_results(root, HERE)]


def test_the_newest_come_last(tmp_path: Path) -> None:
    for day in (3, 1, 2):
        _store(tmp_path, f"2026010{day}T000000Z-a", float(day))
    assert _seen(tmp_path) == [1.0, 2.0, 3.0]


def test_runs_of_other_machines_are_passed_over(tmp_path: Path) -> None:
    _store(tmp_path, "20260101T000000Z-a", 1.0)
    _store(tmp_path, "20260102T000000Z-b", 2.0, cpu="Another CPU")
    assert _seen(tmp_path) == [1.0]


def test_only_some_of_the_newest_are_read(tmp_path: Path) -> None:
    for hour in range(10, 20):
        _store(tmp_path, f"20260101T{hour}0000Z-a", float(hour))
    assert _seen(tmp_path) == [15.0, 16.0, 17.0, 18.0, 19.0]


def test_what_can_not_be_read_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _seen(tmp_path / "absent") == []
    _store(tmp_path, "20260101T000000Z-a", 1.0)
    (tmp_path / "20260102T000000Z-b").mkdir()
    (tmp_path / "20260102T000000Z-b" / "run.json").write_text("{}")
    (tmp_path / "20260103T000000Z-c").mkdir()
    assert _seen(tmp_path) == [1.0]
    monkeypatch.setattr(room, "_LARGEST_BYTES", 10)
    assert _seen(tmp_path) == []
