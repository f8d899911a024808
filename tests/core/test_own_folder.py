"""Temporary folders: the living keep theirs, and what the dead left is removed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from pytest_ortbench.core import own_folder
from pytest_ortbench.core.errors import CarriedFailure
from pytest_ortbench.core.failure import Failure
from pytest_ortbench.core.own_folder import OWNER, OwnFolder, is_alive, start_of, sweep
from tests.left_folders import NOBODY, left_folder

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")


def _space() -> str:
    with OwnFolder("probe") as folder:
        return str(json.loads((folder / OWNER).read_text())["space"])


def test_a_closed_folder_is_gone_and_an_open_one_stays(tmp_path: Path) -> None:
    kept, closed = OwnFolder("kept", tmp_path), OwnFolder("closed", tmp_path)
    (kept.path / "file").write_bytes(b"1")
    closed.close()
    closed.close()
    assert sweep(tmp_path) == 0
    assert [path.name for path in kept.path.iterdir() if path.name != OWNER] == ["file"]
    assert not closed.path.exists()
    kept.close()


@pytest.mark.parametrize("space", ["", "here"], ids=["an earlier start or namespace", "this one"])
def test_what_a_dead_process_left_is_removed(tmp_path: Path, space: str) -> None:
    left = left_folder(tmp_path / ".ortbench-engines-a", space=space and _space())
    assert sweep(tmp_path) == 1
    assert not left.exists()


def test_a_process_that_got_the_id_of_a_dead_one_does_not_count(tmp_path: Path) -> None:
    left_folder(tmp_path / ".ortbench-engines-a", pid=os.getpid(), start="1", space=_space())
    assert sweep(tmp_path) == 1


def test_where_temporary_files_are_the_names_have_no_dot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_folder.tempfile, "tempdir", str(tmp_path))
    left = left_folder(tmp_path / "ortbench-logs-a")
    hidden = left_folder(tmp_path / ".ortbench-logs-a")
    assert sweep() == 1
    assert not left.exists()
    assert hidden.exists()


def test_of_a_living_process_nothing_is_removed(tmp_path: Path) -> None:
    # Whoever looks from another namespace of process ids sees that nobody has this id.
    mine = OwnFolder("mine", tmp_path)
    record = {"pid": NOBODY, "start": "1", "space": "elsewhere"}
    (mine.path / OWNER).write_text(json.dumps(record))
    left_folder(
        tmp_path / ".ortbench-b", pid=os.getpid(), start=start_of(os.getpid()), space=_space()
    )
    assert sweep(tmp_path) == 0
    mine.close()


@pytest.mark.parametrize(
    "record", [None, "", "[]", "{}", '{"pid": "1", "start": "1", "space": ""}', '{"pid": -1}']
)
def test_a_name_alone_is_no_reason(tmp_path: Path, record: str | None) -> None:
    folder = tmp_path / ".ortbench-engines-of-somebody"
    folder.mkdir()
    if record is not None:
        (folder / OWNER).write_text(record)
    assert sweep(tmp_path) == 0
    assert folder.exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    real = left_folder(tmp_path / "photos")
    (tmp_path / ".ortbench-a").symlink_to(real)
    forged = tmp_path / ".ortbench-b"
    forged.mkdir()
    (forged / OWNER).symlink_to(real / OWNER)
    assert sweep(tmp_path) == 0
    assert (real / "engine.bin").exists()
    assert forged.exists()


def test_a_link_inside_of_what_is_removed_stays_what_it_leads_to(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "1.png").write_bytes(b"1")
    left = left_folder(tmp_path / ".ortbench-a")
    (left / "photos").symlink_to(photos)
    assert sweep(tmp_path) == 1
    assert (photos / "1.png").exists()


def test_another_users_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = left_folder(tmp_path / ".ortbench-a")
    monkeypatch.setattr(own_folder.os, "geteuid", lambda: os.getuid() + 1)
    assert sweep(tmp_path) == 0
    assert left.exists()


def test_a_folder_that_is_not_there_is_swept(tmp_path: Path) -> None:
    assert sweep(tmp_path / "none") == 0


def test_where_no_temporary_folder_can_be_made_a_case_can_not_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a folder that is named the caller knows what to tell."""
    file = tmp_path / "file"
    file.write_bytes(b"")
    monkeypatch.setattr(own_folder.tempfile, "tempdir", str(file))
    with pytest.raises(CarriedFailure) as raised:
        OwnFolder("probe")
    assert raised.value.failure == Failure(
        kind="error",
        phase="inputs",
        message=f"no file can be written in the temporary folder {file}. "
        "The system says: 'Not a directory'",
        hint="Name another folder in the environment variable TMPDIR",
    )
    with pytest.raises(NotADirectoryError):
        OwnFolder("probe", file)


def test_a_process_lives_under_the_time_of_its_start_only() -> None:
    assert is_alive(os.getpid(), start_of(os.getpid()))
    assert not is_alive(os.getpid(), "1")
    assert not is_alive(NOBODY, "1")
