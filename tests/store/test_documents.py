from __future__ import annotations

import dataclasses
import os

import pytest

from pytest_ortbench.core.errors import DocumentError, UsageError
from pytest_ortbench.core.run import SCHEMA_VERSION, Run
from pytest_ortbench.store.documents import list_runs, load, resolve_run
from pytest_ortbench.store.folder import RunFolder
from tests.refused import refused
from tests.schema.full_run import CRASHED, MEASURED, RUN


def stored(root, day: int, *, finished: bool = True, host: str = "lab", **changes) -> Run:
    """Store a run that began on that day of March."""
    run = dataclasses.replace(
        RUN,
        run_id=f"202603{day:02}T050600Z-{host}-0000",
        started_at=f"2026-03-{day:02}T05:06:00+00:00",
        **changes,
    )
    folder = RunFolder.create(root, dataclasses.replace(run, finished_at=None))
    folder.append(MEASURED)
    if finished:
        folder.finish(run)
    return run


def test_runs_are_listed_newest_first_with_their_state(tmp_path):
    stored(tmp_path, 3)
    stored(tmp_path, 5, finished=False)
    stored(tmp_path, 4)
    stored(tmp_path, 1, finished_at=None)
    (tmp_path / "20260302T000000Z-x-0000").mkdir()
    (tmp_path / "20260302T000000Z-x-0000" / "run.json").write_text("{")
    (tmp_path / "README.md").write_text("about this folder")
    (tmp_path / "empty").mkdir()
    assert [(run.run_id[6:8], run.state, run.cases) for run in list_runs(tmp_path)] == [
        ("05", "unfinished", 1),
        ("04", "finished", 2),
        ("03", "finished", 2),
        ("02", "unreadable", 0),
        ("01", "unfinished", 2),
    ]
    assert "1 byte" in list_runs(tmp_path)[3].problem


def test_a_missing_results_folder_has_no_runs(tmp_path):
    assert list_runs(tmp_path / "results") == []


def test_latest_is_the_newest_finished_run(tmp_path):
    stored(tmp_path, 3, host="z")
    newest = stored(tmp_path, 4, host="a")
    stored(tmp_path, 5, finished=False)
    assert resolve_run("latest", tmp_path) == tmp_path / newest.run_id / "run.json"


def test_of_runs_that_began_in_one_second_the_later_written_is_newer(tmp_path):
    for written, host in ((2, "a"), (1, "z")):
        run = stored(tmp_path, 4, host=host)
        os.utime(tmp_path / run.run_id / "run.json", (written, written))
    assert [run.run_id[17] for run in list_runs(tmp_path)] == ["a", "z"]


def test_a_run_is_found_by_id_folder_and_file(tmp_path, monkeypatch):
    run = stored(tmp_path, 3)
    path = tmp_path / run.run_id / "run.json"
    assert resolve_run(run.run_id, tmp_path) == path
    assert resolve_run(str(path.parent), tmp_path / "other") == path
    assert resolve_run(str(path), tmp_path / "other") == path
    monkeypatch.chdir(tmp_path / run.run_id)
    assert load(resolve_run(".", tmp_path)) == run
    assert load(resolve_run("run.json", tmp_path)) == run


def test_a_killed_run_is_found_by_its_id_too(tmp_path):
    run = stored(tmp_path, 3, finished=False)
    path = resolve_run(run.run_id, tmp_path)
    assert path == tmp_path / run.run_id / "journal.jsonl"
    assert load(path).cases == (MEASURED,)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("20260303T050600Z-lab-00", "Did you mean '20260303T050600Z-lab-0000'?"),
        ("latst", "contains no run 'latst'. Did you mean 'latest'?"),
        ("", "contains no run ''"),
        ("../results", "the run '../results' does not exist"),
        ("x" * 5000, "File name too long"),
        ("nul\0", "contains no run"),
    ],
)
def test_an_unknown_run_gets_the_nearest_name(tmp_path, spec, message):
    stored(tmp_path / "r", 3)
    with pytest.raises(UsageError) as error:
        resolve_run(spec, tmp_path / "r")
    assert message in str(error.value)


def test_a_link_that_leads_nowhere_is_not_proposed_in_its_own_place(tmp_path):
    link = tmp_path / "run.json"
    link.symlink_to(link)
    with pytest.raises(UsageError) as error:
        resolve_run(str(link), tmp_path)
    assert error.value.hint.startswith("If the path is wrong")


def test_a_folder_of_runs_is_not_a_run(tmp_path):
    run = stored(tmp_path, 3)
    with pytest.raises(UsageError, match=f" 1 run,.*{run.run_id}$"):
        resolve_run(str(tmp_path), tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"run\.json"):
        resolve_run(str(tmp_path / "empty"), tmp_path)


def test_without_a_finished_run_latest_says_what_there_is(tmp_path):
    with refused(UsageError, "finished run"):
        resolve_run("latest", tmp_path)
    run = stored(tmp_path, 3, finished=False)
    with pytest.raises(UsageError, match=f"{run.run_id}', is unfinished.*--ort-resume"):
        resolve_run("latest", tmp_path)


def test_where_no_run_can_be_read_the_next_step_is_that_of_the_newest(tmp_path):
    path = tmp_path / stored(tmp_path, 3).run_id / "run.json"
    whole = path.read_bytes()
    path.write_bytes(
        whole.replace(b'"schema_version": %d' % SCHEMA_VERSION, b'"schema_version": 99')
    )
    with pytest.raises(UsageError, match=f"{path.parent.name}.*99") as told:
        resolve_run("latest", tmp_path)
    assert "pip install" in told.value.hint


def test_files_that_can_not_be_read_are_document_errors(tmp_path):
    with pytest.raises(DocumentError, match="does not exist"):
        load(tmp_path / "run.json")
    with pytest.raises(DocumentError, match="is a folder"):
        load(tmp_path)


def test_a_document_may_have_any_name(tmp_path):
    run = stored(tmp_path, 3)
    copy = tmp_path / "ten machines.txt"
    copy.write_bytes((tmp_path / run.run_id / "run.json").read_bytes())
    assert load(resolve_run(str(copy), tmp_path)) == run
    assert run.cases == (MEASURED, CRASHED)
