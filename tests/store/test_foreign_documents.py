"""Files of other tools in a results folder, and what keeps ours out of version control."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from pytest_ortbench.core.errors import DocumentError, ForeignDocumentError
from pytest_ortbench.store.baseline import find_baseline
from pytest_ortbench.store.documents import foreign_note, list_runs, load, read_run
from pytest_ortbench.store.folder import RunFolder
from pytest_ortbench.store.resume import resumable
from tests.schema.full_run import RUN
from tests.store.test_documents import stored

#: Of another tracker, of another tool with a version of its own, a list, text, an image.
FOREIGN = (
    b'{"experiment": "of another tool"}',
    b'{"schema_version": "1.0", "results": []}',
    b"[1, 2]",
    b"name: run\n",
    b"\x89PNG\r\n\x1a\n\xff",
)


def put(root: Path, content: bytes, name: str = "run.json") -> Path:
    folder = root / "zz"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


@pytest.mark.parametrize("content", FOREIGN)
def test_foreign_files_are_passed_over_with_a_note(tmp_path: Path, content: bytes) -> None:
    run = stored(tmp_path, 3)
    path = put(tmp_path, content)
    own = tmp_path / run.run_id / "run.json"
    assert [entry.state for entry in list_runs(tmp_path)] == ["foreign", "finished"]
    latest = read_run("latest", tmp_path)
    assert latest.path == own
    baseline = find_baseline("latest", tmp_path, base=tmp_path, place="--ort-baseline")
    assert baseline.paths == (own,)
    left = resumable(tmp_path, RUN.plan, [])
    for note in (*latest.notes, baseline.foreign, left.foreign):
        assert note.startswith(f"{path} was skipped: ")
    with pytest.raises(ForeignDocumentError):
        load(path)


def test_a_foreign_journal_is_no_run_either(tmp_path: Path) -> None:
    put(tmp_path, b'{"step": 1, "loss": 0.5}\n', "journal.jsonl")
    assert [entry.state for entry in list_runs(tmp_path)] == ["foreign"]
    assert find_baseline("latest", tmp_path, base=tmp_path, place="x").paths == ()


def test_many_are_told_in_one_note(tmp_path: Path) -> None:
    assert foreign_note(list_runs(tmp_path)) == ""
    for name in "abc":
        put(tmp_path / name, b"{}")
        (tmp_path / name / "zz").rename(tmp_path / f"run-{name}")
    assert "(and 2 more)" in foreign_note(list_runs(tmp_path))


@pytest.mark.parametrize("cut", [300, -2])
def test_a_damaged_run_of_ours_is_not_foreign(tmp_path: Path, cut: int) -> None:
    run = stored(tmp_path, 3)
    path = tmp_path / run.run_id / "run.json"
    path.write_bytes(path.read_bytes()[:cut])
    assert [entry.state for entry in list_runs(tmp_path)] == ["unreadable"]
    with pytest.raises(DocumentError) as told:
        load(path)
    assert not isinstance(told.value, ForeignDocumentError)


@pytest.mark.live
def test_a_results_folder_that_we_make_is_ignored_by_version_control(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    stored(tmp_path / "results", 3)
    status = ["git", "-C", str(tmp_path), "status", "--short"]
    assert subprocess.run(status, check=True, capture_output=True).stdout == b""


def test_a_results_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "results"
    root.mkdir()
    stored(root, 3)
    assert not (root / ".gitignore").exists()
    (tmp_path / "other").mkdir()
    RunFolder.create(tmp_path / "other" / "made", dataclasses.replace(RUN)).keep(RUN)
    assert (tmp_path / "other" / "made" / ".gitignore").read_text().endswith("\n*\n")
