from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from pytest_ortbench.core import file_digest as module
from pytest_ortbench.core.file_digest import content_of, file_digest

Hashed = list[Path]


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> Hashed:
    """The files that were read to be hashed, in order."""
    found: Hashed = []
    feed = module._feed

    def noting(hasher: hashlib._Hash, path: Path) -> None:
        found.append(path)
        feed(hasher, path)

    monkeypatch.setattr(module, "_feed", noting)
    return found


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as old at once."""
    monkeypatch.setattr(module, "_COARSEST_NS", -(10**12))


def _keep_times(path: Path, content: bytes) -> None:
    """Write another content of the same size with the time of the old one."""
    before = path.stat()
    assert len(content) == before.st_size
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_it_is_the_sha256_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"model")
    assert file_digest(path) == hashlib.sha256(b"model").hexdigest()


def test_external_data_counts_with_its_location(tmp_path: Path) -> None:
    path, data = tmp_path / "m.onnx", tmp_path / "w.bin"
    path.write_bytes(b"model")
    data.write_bytes(b"weights")
    expected = hashlib.sha256(b"model" + b"w.bin\0" + b"weights").hexdigest()
    assert file_digest(path, (("w.bin", data),)) == expected


@pytest.mark.usefixtures("settled")
def test_what_nobody_touched_is_not_read_again(tmp_path: Path, hashed: Hashed) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"model")
    digests = {file_digest(path) for _ in range(5)}
    assert digests == {hashlib.sha256(b"model").hexdigest()}
    assert hashed == [path] if os.name == "posix" else [path] * 5


def test_what_changed_a_moment_ago_is_read_again(tmp_path: Path, hashed: Hashed) -> None:
    """A second change within a step of the clock would leave no trace."""
    path = tmp_path / "m.onnx"
    path.write_bytes(b"model")
    assert file_digest(path) == file_digest(path)
    assert hashed == [path, path]


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("how", ["in place", "renamed over", "linked elsewhere", "touched"])
def test_a_change_of_the_same_size_and_time_is_seen(tmp_path: Path, how: str) -> None:
    path = tmp_path / "m.onnx"
    file = tmp_path / "v1.onnx" if how == "linked elsewhere" else path
    file.write_bytes(b"first")
    if how == "linked elsewhere":
        path.symlink_to(file)
    before, times = file_digest(path), path.stat()
    if how == "in place":
        _keep_times(path, b"other")
    elif how == "touched":
        os.utime(path, ns=(1, 1))
    else:
        other = tmp_path / "v2.onnx"
        other.write_bytes(b"other")
        os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
        if how == "renamed over":
            other.replace(path)
        else:
            path.unlink()
            path.symlink_to(other)
    expected = b"first" if how == "touched" else b"other"
    assert file_digest(path) == hashlib.sha256(expected).hexdigest()
    assert (file_digest(path) == before) is (how == "touched")


@pytest.mark.usefixtures("settled")
def test_a_change_of_external_data_is_seen(tmp_path: Path) -> None:
    path, data = tmp_path / "m.onnx", tmp_path / "w.bin"
    path.write_bytes(b"model")
    data.write_bytes(b"first")
    before = file_digest(path, (("w.bin", data),))
    _keep_times(data, b"other")
    assert file_digest(path, (("w.bin", data),)) != before


def test_the_content_of_other_files(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    assert content_of(str(path)) == ""
    assert content_of("\0") == ""
    path.write_bytes(b"input")
    assert content_of(str(path)) == hashlib.sha256(b"input").hexdigest()
    os.utime(path, ns=(1, 7))
    assert content_of(str(path)) == hashlib.sha256(b"input").hexdigest()
    assert content_of(str(tmp_path)).split(" bytes of ")[1] == str(tmp_path.stat().st_mtime_ns)


def test_not_everything_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 3)
    monkeypatch.setattr(module, "_known", {})
    for number in range(5):
        path = tmp_path / str(number)
        path.write_bytes(b"")
        file_digest(path)
    assert [key[0].name for key in module._known] == ["2", "3", "4"]


_HOLE = 1 << 36


def _sparse(path: Path, *parts: tuple[int, bytes]) -> Path:
    with path.open("wb") as file:
        file.truncate(_HOLE)
        for place, data in parts:
            file.seek(place)
            file.write(data)
    if path.stat().st_blocks * 512 > _HOLE // 2:
        pytest.skip("this file system has no holes")
    return path


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="needs holes in files")
def test_of_a_file_with_holes_the_parts_in_use_are_hashed(tmp_path: Path) -> None:
    # 64 GB would take minutes.
    one = file_digest(_sparse(tmp_path / "one", (5, b"weights"), (_HOLE - 3, b"end")))
    assert one == file_digest(_sparse(tmp_path / "two", (5, b"weights"), (_HOLE - 3, b"end")))
    written = _sparse(
        tmp_path / "three", (5, b"weights"), (1 << 30, bytes(1 << 20)), (_HOLE - 3, b"end")
    )
    assert one == file_digest(written)
    for place in (6, 5 + (1 << 20)):
        assert one != file_digest(
            _sparse(tmp_path / "four", (place, b"weights"), (_HOLE - 3, b"end"))
        )


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="needs holes in files")
def test_a_file_that_is_nothing_but_a_hole_has_a_digest(tmp_path: Path) -> None:
    assert file_digest(_sparse(tmp_path / "hole"))


def test_what_takes_long_is_told_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx.data"
    path.write_bytes(bytes(range(256)) * 64)
    monkeypatch.setattr(module, "_LONG_BYTES", 1000)
    told: list[str] = []
    with module.long_reads_told(told.append):
        file_digest(path)
        file_digest(tmp_path / "m.onnx.data")
    file_digest(path)
    assert [path.name in text for text in told] == [True] * len(told)
    assert told
