"""The kernel's cache of files: emptied, filled, and what is said where that can't be done."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path

import pytest

from pytest_ortbench.worker import page_cache
from pytest_ortbench.worker.page_cache import resident, set_state

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mincore of Linux")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files of 300 pages and a bit together, and one that is empty."""
    sizes = (200 * mmap.PAGESIZE + 17, 100 * mmap.PAGESIZE, 0)
    made = [tmp_path / f"{number}.bin" for number in range(3)]
    for path, size in zip(made, sizes, strict=True):
        path.write_bytes(os.urandom(size))
    return made


@linux_only
def test_what_was_read_is_there_and_what_was_dropped_is_not(files: list[Path]) -> None:
    assert set_state(files, "warm") == (1.0, "")
    share, reason = set_state(files, "cold")
    if reason:
        pytest.skip(f"the folder of temporary files can't be emptied: {reason}")
    assert share is not None
    assert share <= page_cache.LEFT
    # Dropping loses nothing, and looking at it brings nothing back.
    assert resident(files) == share
    assert files[0].stat().st_size == len(files[0].read_bytes())
    assert set_state(files, "warm") == (1.0, "")


@linux_only
def test_a_part_of_a_file_is_a_share(files: list[Path]) -> None:
    share, reason = set_state(files, "cold")
    if reason:
        pytest.skip(f"the folder of temporary files can't be emptied: {reason}")
    files[1].read_bytes()
    share = resident(files)
    # 100 of 301 pages, and what the kernel reads ahead of other files is none of these.
    assert share == pytest.approx(100 / 301, abs=0.02)


@linux_only
def test_pages_that_another_mapping_holds_are_seen_to_stay(files: list[Path]) -> None:
    with files[0].open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        assert sum(held[:: mmap.PAGESIZE]) > 0  # maps every page
        share, reason = set_state([files[0]], "cold")
    assert share is not None
    assert share > 0.9
    assert reason.endswith(
        "% of the model's pages stayed in memory: another process maps them, "
        "or the file system keeps them there"
    )


def test_a_platform_without_means_says_so(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    share, reason = set_state(files, "cold")
    assert share is None
    assert reason.startswith(f"{sys.platform} ")


def test_a_platform_that_does_not_tell_says_so(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "posix_fadvise", lambda *_: None, raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_DONTNEED", 4, raising=False)
    monkeypatch.setattr(page_cache, "resident", lambda _: None)
    share, reason = set_state(files, "cold")
    assert share is None
    assert reason.endswith("does not say whether a file is cached")
