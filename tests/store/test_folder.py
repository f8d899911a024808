from __future__ import annotations

import dataclasses
import math
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.store.documents import load, read
from pytest_ortbench.store.folder import RunFolder, folder_part, new_run_id, write_document
from tests.refused import refused
from tests.schema.full_run import CRASHED, MEASURED, RUN
from tests.store.disk import files_end_at

EMPTY = dataclasses.replace(RUN, cases=(), finished_at=None)


def test_a_run_id_holds_utc_host_and_four_digits():
    started = datetime(2026, 3, 4, 1, 2, 3, tzinfo=timezone(timedelta(hours=2)))
    assert re.fullmatch(
        r"20260303T230203Z-lab-1\.site-[0-9a-f]{4}", new_run_id("lab-1.site", started)
    )


@pytest.mark.parametrize(
    ("host", "part"),
    [
        ("lab-1", "lab-1"),
        ("../../etc/passwd", "etc-passwd"),
        ("a..b", "a.b"),
        ("<script>alert(1)</script>", "script-alert-1-script"),
        ("Jürgens MacBook", "J-rgens-MacBook"),
        ("\x1b[31m\n", "31m"),
        ("...", "host"),
        ("", "host"),
        ("x" * 300, "x" * 40),
    ],
)
def test_host_names_are_made_fit_for_a_folder(host, part):
    assert folder_part(host) == part


@given(st.text())
def test_no_host_name_leaves_the_results_folder(host):
    part = folder_part(host)
    assert re.fullmatch(r"[A-Za-z0-9.-]{1,40}", part)
    assert ".." not in part
    assert Path("/results", part).parent == Path("/results")


def test_nothing_is_on_disk_before_the_first_result(tmp_path):
    root = tmp_path / "results"
    folder = RunFolder.create(root, EMPTY)
    folder.update(EMPTY)
    assert not root.exists()
    folder.append(MEASURED)
    names = {path.name for path in root.rglob("*")}
    assert names == {".gitignore", RUN.run_id, "journal.jsonl"}


def test_while_it_runs_the_journal_is_as_readable_as_the_document(tmp_path):
    folder = RunFolder.create(tmp_path, EMPTY)
    folder.append(MEASURED)
    assert load(folder.path / "journal.jsonl") == dataclasses.replace(EMPTY, cases=(MEASURED,))
    folder.append(CRASHED)
    folder.update(dataclasses.replace(EMPTY, expected=9))
    run = load(folder.path / "journal.jsonl")
    assert run.cases == (MEASURED, CRASHED)
    assert run.expected == 9


def test_at_the_end_the_document_stands_in_place_of_the_journal(tmp_path):
    folder = RunFolder.create(tmp_path, EMPTY)
    folder.append(MEASURED)
    folder.append(CRASHED)
    path = folder.finish(RUN)
    assert path == folder.document == tmp_path / RUN.run_id / "run.json"
    assert load(path) == RUN
    assert (folder.path / "journal.jsonl").exists()
    folder.settle()
    assert [entry.name for entry in folder.path.iterdir()] == ["run.json"]


def test_without_a_document_the_journal_stays(tmp_path):
    folder = RunFolder.create(tmp_path, EMPTY)
    folder.append(MEASURED)
    folder.settle()
    assert (folder.path / "journal.jsonl").exists()


def test_a_run_without_any_result_leaves_its_document_when_asked(tmp_path):
    nothing = dataclasses.replace(RUN, cases=())
    path = RunFolder.create(tmp_path, EMPTY).finish(nothing)
    assert load(path).skips == RUN.skips


def test_a_folder_that_holds_something_already_takes_the_journal(tmp_path):
    folder = RunFolder.create(tmp_path, EMPTY)
    (folder.path / "plots").mkdir(parents=True)
    folder.append(MEASURED)
    assert load(folder.path / "journal.jsonl").cases == (MEASURED,)


@pytest.mark.parametrize("run_id", ["../escape", "a/b", "", ".", ".."])
def test_only_the_name_of_a_folder_is_a_run_id(tmp_path, run_id):
    with pytest.raises(DocumentError, match="name"):
        RunFolder.create(tmp_path, dataclasses.replace(EMPTY, run_id=run_id))


def test_two_runs_never_share_a_folder(tmp_path):
    RunFolder.create(tmp_path, EMPTY).append(MEASURED)
    with pytest.raises(DocumentError, match="exists"):
        RunFolder.create(tmp_path, EMPTY)


# What goes wrong.


def test_a_results_folder_that_is_none_is_told_before_anything_is_measured(tmp_path):
    place = tmp_path / "results"
    place.write_text("a file")
    with pytest.raises(DocumentError) as error:
        RunFolder.create(place, EMPTY)
    assert error.value.place == str(place)
    assert ("--ort-results=DIR" in error.value.hint, "--ort-no-results" in error.value.hint) == (
        True,
        True,
    )


@pytest.mark.parametrize("below", [".", "runs/of/today"])
def test_a_link_that_leads_nowhere_is_told_before_anything_is_measured(tmp_path, below):
    link = tmp_path / "results"
    link.symlink_to(tmp_path / "gone")
    with pytest.raises(DocumentError) as error:
        RunFolder.create(link / below, EMPTY)
    assert str(tmp_path / "gone") in error.value.message
    (tmp_path / "gone").mkdir()
    assert RunFolder.create(link / below, EMPTY).path.parent == link / below


def test_a_folder_that_takes_no_file_is_told_before_anything_is_measured(tmp_path, monkeypatch):
    import tempfile

    # The tests may run as root, whom no permission stops.
    def refuse(*, prefix: str, dir: Path) -> str:
        raise PermissionError(13, "Permission denied", str(dir))

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(DocumentError, match=f"'{tmp_path}' .*Permission denied"):
        RunFolder.create(tmp_path / "results", EMPTY)


def test_a_run_that_no_document_can_hold_is_told_before_anything_is_measured(tmp_path):
    # Else each result would be refused one by one, and the document at the end.
    machine = dataclasses.replace(RUN.machine, volatile={"slots": 4})
    with pytest.raises(DocumentError, match=rf"{RUN.run_id}: .*\$\.machine\.volatile\.slots is 4"):
        RunFolder.create(tmp_path, dataclasses.replace(EMPTY, machine=machine))


def test_the_check_of_the_results_folder_leaves_nothing(tmp_path):
    RunFolder.create(tmp_path / "results", EMPTY)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_costs_only_the_result_in_flight_and_that_is_made_up_for(tmp_path):
    folder = RunFolder.create(tmp_path, EMPTY)
    folder.append(MEASURED)
    journal = folder.path / "journal.jsonl"
    with files_end_at(journal.stat().st_size + 100), pytest.raises(DocumentError) as error:
        folder.append(CRASHED)
    assert str(error.value) == (
        f"{journal}: the result of tagger/native/cpu/b1 can't be stored. The system says: "
        "'File too large'. "
        "The file keeps 1 earlier result"
    )
    assert load(journal).cases == (MEASURED,)
    third = dataclasses.replace(CRASHED, case=dataclasses.replace(CRASHED.case, batch=2))
    folder.append(third)
    assert load(journal).cases == (MEASURED, CRASHED, third)


def test_a_disk_that_is_full_from_the_start_loses_no_result_once_it_is_not(tmp_path):
    folder = RunFolder.create(tmp_path, EMPTY)
    with files_end_at(10):
        for result in (MEASURED, CRASHED):
            with refused(DocumentError, hint="another folder"):
                folder.append(result)
        with pytest.raises(DocumentError, match=r"run document .*too large"):
            folder.finish(RUN)
    assert load(folder.finish(RUN)) == RUN


def test_a_document_that_does_not_fit_leaves_the_journal(tmp_path):
    folder = RunFolder.create(tmp_path, EMPTY)
    folder.append(MEASURED)
    folder.append(CRASHED)
    journal = folder.path / "journal.jsonl"
    with files_end_at(1000), pytest.raises(DocumentError) as error:
        folder.finish(RUN)
    assert re.search(rf"{journal} .*\b2 of 2 ", str(error.value))
    assert [entry.name for entry in folder.path.iterdir()] == ["journal.jsonl"]
    assert load(journal).cases == RUN.cases


def test_a_folder_that_vanishes_does_not_cost_the_document(tmp_path):
    import shutil

    folder = RunFolder.create(tmp_path, EMPTY)
    folder.append(MEASURED)
    shutil.rmtree(folder.path)
    folder.append(CRASHED)
    assert load(folder.finish(RUN)) == RUN


def test_a_result_that_can_not_be_written_is_refused_and_costs_nothing_else(tmp_path):
    folder = RunFolder.create(tmp_path, EMPTY)
    with pytest.raises(DocumentError, match=r"\$\.wall_s is NaN"):
        folder.append(dataclasses.replace(CRASHED, wall_s=math.nan))
    folder.append(MEASURED)
    assert load(folder.path / "journal.jsonl").cases == (MEASURED,)


def test_a_killed_run_is_read_with_a_note_on_its_torn_line(tmp_path):
    folder = RunFolder.create(tmp_path, EMPTY)
    folder.append(MEASURED)
    folder.append(CRASHED)
    journal = folder.path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-50])
    loaded = read(journal)
    assert loaded.run.cases == (MEASURED,)
    [note] = loaded.notes
    assert note.startswith(f"{journal}, line 3 ")


def test_documents_go_where_the_user_wants_them(tmp_path):
    path = tmp_path / "deep" / "mine.json"
    write_document(RUN, path)
    assert load(path) == RUN
    with pytest.raises(DocumentError, match=r"run document .* another file"):
        write_document(RUN, tmp_path)
