"""The program that runs on a machine of a fleet."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.fleet.hosts import host


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def place(tmp_path: Path) -> host.AgreedFolder:
    made = host.AgreedFolder(str(tmp_path / "agreed"), "T1")
    host.look_around(made, "the_text")
    return made


def _send(place: host.AgreedFolder, files: dict[str, bytes], **more: Any) -> None:
    """Write the instructions, as Ansible copies them."""
    entries = [
        {
            "path": name,
            "digest": _digest(content),
            "size": len(content),
            "large": len(content) > 100,
            "executable": name.endswith(".sh"),
        }
        for name, content in files.items()
    ]
    parcel = {"files": entries, "wheel_files": [], "wheels": {}, "room": 0, **more}
    (place.run / "parcel.json").write_text(json.dumps(parcel))


def _pack(place: host.AgreedFolder, contents: list[tuple[str, bytes]]) -> None:
    with tarfile.open(place.run / "pack.tar", "w") as archive:
        for name, content in contents:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, BytesIO(content))


def test_look_makes_the_folder_for_its_user_alone_and_keeps_the_program(
    place: host.AgreedFolder,
) -> None:
    assert place.folder.stat().st_mode & 0o777 == 0o700
    assert (place.folder / "host.py").read_text().startswith("the_text\n")


def test_a_call_that_reads_the_program_gets_all_of_it(place: host.AgreedFolder) -> None:
    with (place.folder / "host.py").open() as reads:
        host.look_around(place, "another_text")
        assert reads.readline() == "the_text\n"
    assert (place.folder / "host.py").read_text().startswith("another_text\n")


def test_only_what_is_not_there_is_asked_for(place: host.AgreedFolder) -> None:
    small, large, kept = b"s", b"l" * 101, b"k" * 102
    _send(place, {"a.py": small, "m.onnx": large, "n.onnx": kept})
    (place.blobs / _digest(kept)).write_bytes(kept)
    assert host.missing_files(place) == {"pack": True, "large": [_digest(large)]}
    (place.blobs / _digest(small)).write_bytes(small)
    assert host.missing_files(place) == {"pack": False, "large": [_digest(large)]}


def test_a_file_that_was_changed_is_asked_for_again(place: host.AgreedFolder) -> None:
    content = b"m" * 200
    _send(place, {"m.onnx": content})
    (place.blobs / _digest(content)).write_bytes(b"n" * 200)
    assert host.missing_files(place)["large"] == [_digest(content)]


def test_a_disk_without_room_is_refused_with_both_sizes(place: host.AgreedFolder) -> None:
    _send(place, {}, room=1 << 60)
    with pytest.raises(host.HostError, match="1152921504607 MB"):
        host.missing_files(place)


def test_the_project_is_laid_out_with_what_may_be_run(place: host.AgreedFolder) -> None:
    big = b"b" * (1 << 20)
    files = {"sub/a.py": b"text", "run.sh": b"#!/bin/sh", "m.onnx": big}
    _send(place, files)
    (place.run / "project").mkdir()
    (place.run / "project" / "of_before.py").write_text("")
    _pack(place, [(_digest(content), content) for content in files.values()])
    host.unpack(place.run / "pack.tar", place.blobs)
    host.lay_out_project(place, place.parcel()["files"])
    project = place.run / "project"
    laid_out = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    assert laid_out == set(files)
    assert {name: (project / name).read_bytes() for name in files} == files
    assert os.access(project / "run.sh", os.X_OK)
    assert not (project / "sub" / "a.py").stat().st_mode & 0o100
    # A model lies on the disk once.
    assert (project / "m.onnx").samefile(place.blobs / _digest(big))


@pytest.mark.parametrize("name", ["../out", "sub/file", "/etc/passwd"])
def test_an_archive_that_names_no_digest_is_refused(place: host.AgreedFolder, name: str) -> None:
    _pack(place, [(name, b"x")])
    with pytest.raises(host.HostError):
        host.unpack(place.run / "pack.tar", place.blobs)
    assert list(place.blobs.iterdir()) == []


@pytest.mark.parametrize("changed", ["requirements", "wheels"])
def test_other_requirements_are_another_environment(place: host.AgreedFolder, changed: str) -> None:
    parcel = {"requirements": ["a"], "wheels": {"a.whl": "0"}}
    other = {**parcel, changed: {"b.whl": "1"} if changed == "wheels" else ["b"]}
    assert host.environment_folder(place, parcel) == host.environment_folder(place, dict(parcel))
    assert host.environment_folder(place, parcel) != host.environment_folder(place, other)


def test_status_counts_whole_lines_of_the_newest_journal(place: host.AgreedFolder) -> None:
    _send(place, {})
    folder = place.results / "R1"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_bytes(b'{"expected": 5}\n{"case": 1}\n{"case": 2}\n{"cas')
    os.utime(place.run / "parcel.json", (0, 0))
    answer = host.run_status(place, 0)
    assert (answer["cases"], answer["expected"]) == (2, 5)
    assert answer["journal"] == str(folder / "journal.jsonl")


def _is_made(place: host.AgreedFolder) -> None:
    """Let a machine have the environment that it was told to make."""
    folder = host.environment_folder(place, place.parcel())
    folder.mkdir(parents=True)
    (folder / "complete").write_text("")


def test_a_run_whose_process_is_gone_is_lost(place: host.AgreedFolder) -> None:
    _send(place, {}, requirements=[])
    _is_made(place)
    host.prepare_project(place)
    # It may still begin, however long its environment took.
    os.utime(place.run / "parcel.json", (0, 0))
    assert host.run_status(place, 0)["state"] == "running"
    gone = {"pid": os.getpid(), "start": "another"}
    host._write(place.process, gone)
    assert host.run_status(place, 0)["state"] == "lost"
    # Whoever waits for its end has not written yet how that was.
    host._write(place.process, {**gone, "waits": host._record_of(os.getpid())})
    assert host.run_status(place, 0)["state"] == "running"
    host._write(place.process, host._record_of(os.getpid()))
    assert host.run_status(place, 0)["state"] == "running"
    host._write(place.exit, {"code": 0})
    assert host.run_status(place, 0)["state"] == "ended"


def test_how_a_run_before_ended_says_nothing_of_the_next_one(place: host.AgreedFolder) -> None:
    _send(place, {}, requirements=[])
    _is_made(place)
    host._write(place.process, {"pid": os.getpid(), "start": "another"})
    host._write(place.exit, {"code": 4})
    host.prepare_project(place)
    assert host.run_status(place, 0)["state"] == "running"


def test_the_project_of_what_measures_still_is_left_alone(place: host.AgreedFolder) -> None:
    _send(place, {"a.py": b"new"}, requirements=[])
    _is_made(place)
    project = place.run / "project"
    project.mkdir()
    (project / "a.py").write_text("old")
    host._write(place.process, host._record_of(os.getpid()))
    host.prepare_project(place)
    assert (project / "a.py").read_text() == "old"


def test_a_process_of_another_machine_is_none_of_this_one(place: host.AgreedFolder) -> None:
    host._write(place.process, {**host._record_of(os.getpid()), "node": "elsewhere"})
    assert host._working(place) == []
    # They share the folder, so it is not removed before that one has ended.
    with pytest.raises(host.HostError):
        host.clean(place)
    host._write(place.exit, {"code": 0})
    assert host.clean(place) == {"left": []}


@pytest.mark.live
def test_a_run_that_is_stopped_before_it_begins_ends_when_it_does(
    place: host.AgreedFolder,
) -> None:
    (place.run / "project").mkdir()
    python = place.run / "python"
    python.write_text("#!/bin/sh\nexec sleep 600\n")
    python.chmod(0o700)
    assert host.stop(place) == {"stopped": False}
    assert host.run_pytest(place, str(python), []) == -signal.SIGTERM


@pytest.mark.live
def test_what_makes_an_environment_is_ended_with_all_that_it_started(
    place: host.AgreedFolder, tmp_path: Path
) -> None:
    _send(place, {}, requirements=["nothing"], offline=True)
    mark = tmp_path / "began"
    (tmp_path / "uv").write_text(
        f"#!/bin/sh\necho $$ > {mark}.part\nmv {mark}.part {mark}\nsleep 600\n"
    )
    (tmp_path / "uv").chmod(0o700)
    starts = "import sys\nfrom pytest_ortbench.fleet.hosts import host\nhost.main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", starts, "prepare", str(place.folder), "T1"],
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        stdout=subprocess.DEVNULL,
    )
    try:
        while not mark.exists():
            assert process.poll() is None
            time.sleep(0.05)
        with pytest.raises(host.HostError):
            host.clean(place)
        assert host.stop(place) == {"stopped": True}
        assert process.wait() == -signal.SIGTERM
    finally:
        process.kill()
    # Whoever reaps it may take a moment.
    until = time.monotonic() + 20.0
    while host._start_of(int(mark.read_text())) and time.monotonic() < until:
        time.sleep(0.05)
    assert host._start_of(int(mark.read_text())) == ""


def test_what_pytest_printed_is_told_where_there_is_no_document(place: host.AgreedFolder) -> None:
    _send(place, {})
    place.output.write_text("=== start ===\nERROR: nosuch\n\n=====\n")
    host._write(place.exit, {"code": 4})
    answer = host.last_answer(place)
    assert (answer["code"], answer["document"]) == (4, "")
    assert answer["output"].split(" / ") == ["start", "ERROR: nosuch"]


def test_the_document_of_a_run_before_is_not_that_of_this_one(place: host.AgreedFolder) -> None:
    for name, file, written in (("R1", "run.json", 1000), ("R2", "journal.jsonl", 2000)):
        (place.results / name).mkdir(parents=True)
        path = place.results / name / file
        path.write_text("{}")
        os.utime(path, (written, written))
    answer = host.last_answer(place)
    assert (answer["document"], Path(answer["journal"]).parent.name) == ("", "R2")


def test_nothing_that_is_started_keeps_files_elsewhere(place: host.AgreedFolder) -> None:
    variables = place.environment()
    for name in ("TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME", "UV_CACHE_DIR", "PIP_CACHE_DIR"):
        assert Path(variables[name]).is_relative_to(place.folder)
    assert "PYTHONPATH" not in variables


def test_each_call_prints_one_line(
    place: host.AgreedFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert host.main(["missing", str(place.folder), "T1"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False
    _send(place, {})
    assert host.main(["missing", str(place.folder), "T1"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "pack": False, "large": []}


def test_what_is_kept_is_removed_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    place = host.AgreedFolder(str(tmp_path / "agreed"), "T1")
    for name in ("runs/T1/project/x", "blobs/ab", "environments/e/bin/python", "cache/uv/x"):
        (place.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (place.folder / name).write_text("")
    (place.folder / "tmp").symlink_to(tmp_path)
    (place.folder / "thesis.txt").write_text("mine")
    assert host.clean(place) == {"left": ["thesis.txt"]}
    (place.folder / "thesis.txt").unlink()
    assert host.clean(place) == {"left": []}
    assert host.clean(place) == {"left": []}
    assert list(tmp_path.iterdir()) == []


def test_a_machine_that_measures_is_not_cleaned(tmp_path: Path) -> None:
    place = host.AgreedFolder(str(tmp_path), "T1")
    place.run.mkdir(parents=True)
    host._write(place.process, {"pid": os.getpid(), "start": host._start_of(os.getpid())})
    with pytest.raises(host.HostError):
        host.clean(place)
    assert place.process.exists()


def test_files_may_be_large_here_whatever_bounds_those_that_are_collected(
    place: host.AgreedFolder,
) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, before[1]))
        host.main(["collect", str(place.folder), "T1"])
        assert resource.getrlimit(resource.RLIMIT_FSIZE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
