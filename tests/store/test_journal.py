from __future__ import annotations

import errno
import os

import pytest

from pytest_ortbench.store.journal import Journal
from tests.store.disk import files_end_at


def test_lines_are_on_disk_as_soon_as_they_are_written(tmp_path):
    journal = Journal(tmp_path / "deep" / "journal.jsonl")
    assert not journal.made
    assert list(tmp_path.iterdir()) == []
    journal.write(b"one\n")
    assert journal.made
    assert journal.path.read_bytes() == b"one\n"
    journal.write(b"two\n", b"three\n")
    assert journal.path.read_bytes() == b"one\ntwo\nthree\n"
    journal.remove()
    assert not journal.path.exists()


def test_every_line_is_flushed_to_the_device(tmp_path, monkeypatch):
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_size), fsync(fd)))
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write(b"one\n")
    synced.clear()
    journal.write(b"two\n")
    assert synced == [8]


def test_an_existing_file_is_never_touched(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"of another run\n")
    with pytest.raises(FileExistsError):
        Journal(path).write(b"mine\n")
    assert path.read_bytes() == b"of another run\n"


def test_a_write_that_the_disk_cuts_leaves_whole_lines_and_is_made_up_for(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write(b"a" * 99 + b"\n")
    with files_end_at(150), pytest.raises(OSError, match="too large"):
        journal.write(b"b" * 99 + b"\n")
    assert journal.path.read_bytes() == b"a" * 99 + b"\n"
    assert journal.pending
    journal.write(b"c\n")
    assert journal.path.read_bytes() == b"a" * 99 + b"\n" + b"b" * 99 + b"\nc\n"
    assert not journal.pending


def test_a_torn_line_that_can_not_be_taken_back_is_ended_by_the_next(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write(b"a" * 99 + b"\n")
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", refuse)
        with files_end_at(110), pytest.raises(OSError, match="too large"):
            journal.write(b"b" * 99 + b"\n")
    assert journal.path.read_bytes() == b"a" * 99 + b"\n" + b"b" * 10
    journal.flush()
    assert journal.path.read_bytes() == b"a" * 99 + b"\n" + b"b" * 10 + b"\n" + b"b" * 99 + b"\n"


def test_an_interrupt_takes_the_torn_line_back(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write(b"one\n")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            journal.write(b"two\n")
    assert journal.path.read_bytes() == b"one\n"
    journal.flush()
    assert journal.path.read_bytes() == b"one\ntwo\n"


def refuse(*_):
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def interrupt(_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("code", "stored"), [(errno.EINVAL, True), (errno.ENOTSUP, True), (errno.EIO, False)]
)
def test_only_a_missing_fsync_is_forgiven(tmp_path, monkeypatch, code, stored):
    def fsync(descriptor):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fsync)
    journal = Journal(tmp_path / "journal.jsonl")
    if stored:
        journal.write(b"one\n")
    else:
        with pytest.raises(OSError, match="Input/output"):
            journal.write(b"one\n")
    assert journal.pending is not stored
