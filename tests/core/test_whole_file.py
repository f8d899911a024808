"""Files that are written whole or not at all."""

from __future__ import annotations

import os

import pytest

from pytest_ortbench.core.whole_file import append_whole, replace_file
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.figures import write_figures
from pytest_ortbench.report.html import write_html
from pytest_ortbench.store.journal import Journal
from tests.results_factory import make_run
from tests.store.disk import files_end_at


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "new" / "run.json"
    replace_file(path, b"first")
    replace_file(path, b"second")
    assert path.read_bytes() == b"second"
    assert [entry.name for entry in path.parent.iterdir()] == ["run.json"]


def test_the_users_umask_decides_who_may_read(tmp_path):
    old = os.umask(0o027)
    try:
        replace_file(tmp_path / "run.json", b"x")
        Journal(tmp_path / "journal.jsonl").write(b"x\n")
    finally:
        os.umask(old)
    assert (tmp_path / "run.json").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "journal.jsonl").stat().st_mode & 0o777 == 0o640


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "run.json"
    replace_file(path, b"old")
    with files_end_at(10), pytest.raises(OSError, match="too large"):
        replace_file(path, b"n" * 100)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_links_stay_links(tmp_path):
    target = tmp_path / "target.json"
    target.write_bytes(b"old")
    link = tmp_path / "link.json"
    link.symlink_to(target)
    replace_file(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        replace_file(pipe, b"data")
        assert os.read(reader, 10) == b"data"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_folder_in_the_way_is_an_error(tmp_path):
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path, b"x")


def test_an_error_names_the_file_and_no_temporary_one(tmp_path):
    path = tmp_path / "page.html"
    with files_end_at(10), pytest.raises(OSError, match="too large") as refused:
        replace_file(path, b"n" * 100)
    assert refused.value.filename == str(path)
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(OSError, match="symbolic") as refused:
        replace_file(circle, b"n")
    assert refused.value.filename == str(circle)


def test_what_does_not_fit_is_not_appended_by_half(tmp_path):
    path = tmp_path / "summary.md"
    append_whole(path, b"first\n")
    with files_end_at(10), pytest.raises(OSError, match="too large") as refused:
        append_whole(path, b"n" * 100)
    assert refused.value.filename == str(path)
    assert path.read_bytes() == b"first\n"


def test_pages_and_figures_that_do_not_fit_leave_the_old_ones(tmp_path):
    run = make_run()
    page, plots = tmp_path / "page.html", tmp_path / "plots"
    page.write_text("old")
    (old, *_) = write_figures(shown_run(run).entries, plots)
    before = old.read_bytes()
    with files_end_at(100), pytest.raises(OSError, match="too large") as refused:
        write_html(shown_run(run), page)
    assert refused.value.filename == str(page)
    with files_end_at(100), pytest.raises(OSError, match="too large") as refused:
        write_figures(shown_run(run).entries, plots)
    assert refused.value.filename == str(old)
    assert (page.read_text(), old.read_bytes()) == ("old", before)
    assert list(tmp_path.rglob("*.tmp")) == []
