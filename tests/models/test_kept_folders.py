"""Folders of the cache: made whole or not at all, by one process at a time, never trusted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.source import Exported
from pytest_ortbench.models.kept_folders import KeptFolders, files_are_whole, is_within


@pytest.fixture
def folders(tmp_path: Path) -> KeptFolders[Exported]:
    root = tmp_path / "cache" / "exports"
    root.mkdir(parents=True)
    return KeptFolders(
        root=root, kind="export", record=Exported, phase="export", kept="exports are kept there"
    )


def fill(folder: Path, content: bytes = b"graph") -> Exported:
    (folder / "model.onnx").write_bytes(content)
    (folder / "weights").mkdir()
    (folder / "weights" / "a.bin").write_bytes(b"weights")
    external = ("weights/a.bin",)
    digest = file_digest(folder / "model.onnx", tuple((name, folder / name) for name in external))
    return Exported(
        file="model.onnx",
        digest=digest,
        external_files=external,
        framework="torch",
        exporter="torch.onnx",
    )


def made(folders: KeptFolders[Exported], content: bytes = b"graph") -> tuple[Path, Exported]:
    return folders.make(folders.root, lambda folder: fill(folder, content), lambda _: "one")


def test_what_was_made_is_read_again_and_replaced_as_a_whole(
    folders: KeptFolders[Exported],
) -> None:
    folder, record = made(folders)
    assert (folder, folders.read(folder)) == (folders.root / "one", record)
    assert files_are_whole(folder, record)
    (folder / "stale").write_text("of the first one")
    again, later = made(folders, b"another graph")
    assert again == folder
    assert later.digest != record.digest
    assert folders.read(folder) == later
    assert not (folder / "stale").exists()
    assert not files_are_whole(folder, record)
    assert [path.name for path in folders.root.iterdir()] == ["one"]


def test_what_could_not_be_made_leaves_nothing(folders: KeptFolders[Exported]) -> None:
    def broken(folder: Path) -> Exported:
        fill(folder)
        raise ValueError("out of luck")

    with pytest.raises(ValueError, match="luck"):
        folders.make(folders.root, broken, lambda _: "one")
    assert list(folders.root.iterdir()) == []


def test_a_link_in_the_place_of_a_folder_is_replaced_and_never_followed(
    folders: KeptFolders[Exported], tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("kept")
    (folders.root / "one").symlink_to(elsewhere)
    folder, record = made(folders)
    assert not folder.is_symlink()
    assert files_are_whole(folder, record)
    assert [path.name for path in elsewhere.iterdir()] == ["mine"]


def _links_to_another(folder: Path) -> None:
    twin = folder.with_name("twin")
    folder.rename(twin)
    folder.symlink_to(twin)


def _may_be_written_by_others(folder: Path) -> None:
    folder.chmod(0o777)


def _loses_its_record(folder: Path) -> None:
    (folder / "export.json").unlink()


def _has_no_json(folder: Path) -> None:
    (folder / "export.json").write_text("{")


def _has_another_record(folder: Path) -> None:
    (folder / "export.json").write_text(json.dumps({"file": 3}))


@pytest.mark.parametrize(
    "spoil",
    [
        _links_to_another,
        _may_be_written_by_others,
        _loses_its_record,
        _has_no_json,
        _has_another_record,
    ],
)
def test_a_folder_of_somebody_else_or_without_a_record_is_not_read(
    spoil: Callable[[Path], None], folders: KeptFolders[Exported]
) -> None:
    folder, _ = made(folders)
    spoil(folder)
    assert folders.read(folder) is None


@pytest.mark.parametrize(
    "change",
    [
        {"file": "missing.onnx"},
        {"file": "../outside.onnx"},
        {"file": "linked.onnx"},
        {"file": "weights"},
        {"external_files": ("../outside.onnx",)},
        {"external_files": ()},
        {"digest": "0" * 64},
    ],
)
def test_what_a_record_names_is_in_its_folder_and_as_it_says(
    change: dict[str, object], folders: KeptFolders[Exported]
) -> None:
    folder, record = made(folders)
    (folders.root / "outside.onnx").write_bytes(b"graph")
    (folder / "linked.onnx").symlink_to(folder / "model.onnx")
    assert not files_are_whole(folder, replace(record, **change))  # type: ignore[arg-type]  # by name
    assert not is_within(folder, str(folders.root / "outside.onnx"))
    assert not is_within(folder, str(folder / "model.onnx"))
    assert is_within(folder, "model.onnx")


def test_another_process_that_makes_it_is_waited_for_and_told(
    folders: KeptFolders[Exported],
) -> None:
    place = folders.root / "one"
    with (
        FileLock(folders.root / "one.lock"),
        pytest.raises(WorkerError) as caught,
        folders.locked(place, timeout_s=0.05, what="exporting this model", hint="Wait"),
    ):
        raise AssertionError
    failure = caught.value.failure
    assert (failure.kind, failure.phase, failure.hint) == ("timeout", "export", "Wait")
    with folders.locked(place, timeout_s=1, what="exporting this model", hint=""):
        pass


def test_a_cache_of_others_is_refused(folders: KeptFolders[Exported]) -> None:
    assert folders.refusal() is None
    folders.root.parent.chmod(0o777)
    refusal = folders.refusal()
    assert refusal is not None
    assert (refusal.kind, refusal.phase, bool(refusal.hint)) == ("unavailable", "export", True)
