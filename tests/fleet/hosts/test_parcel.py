"""What is sent to the machines of a fleet."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import onnx
import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.hosts.facts import Host
from pytest_ortbench.fleet.hosts.parcel import (
    LARGE_BYTES,
    Parcel,
    SentFile,
    own_wheel,
    project_files,
    wheels_of,
)


def _write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def _names(files: list[SentFile]) -> list[str]:
    return [entry.path for entry in files]


@pytest.mark.live
def test_what_git_knows_or_could_add_is_sent(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    _write(tmp_path, "suites/test_a.py", "m.onnx", "ignored.onnx", ".env", "results/x/run.json")
    (tmp_path / ".gitignore").write_text("ignored.onnx\nresults\n")
    subprocess.run(["git", "-C", str(tmp_path), "add", ".gitignore"], check=True)
    sent = _names(project_files(tmp_path, ["suites", "--ort-providers=all"], []))
    # A hidden file that git does not track often holds secrets.
    assert sent == [".gitignore", "m.onnx", "suites/test_a.py"]
    named = _names(project_files(tmp_path, ["ignored.onnx", "suites/test_a.py::test_x"], []))
    assert named == [".gitignore", "ignored.onnx", "m.onnx", "suites/test_a.py"]
    assert "ignored.onnx" in _names(project_files(tmp_path, ["suites"], [Path("ignored.onnx")]))


@pytest.mark.live
@pytest.mark.parametrize("argument", ["m.onnx", "--ort-models=nosuch,m.onnx"])
def test_a_model_that_is_named_goes_along_with_its_weights(tmp_path: Path, argument: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node("Identity", ["w"], ["y"])],
            "g",
            [],
            [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1000])],
            [onnx.numpy_helper.from_array(np.zeros(1000, np.float32), "w")],
        )
    )
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data")
    _write(tmp_path, "a.py", "of_others.onnx", "results/run.json")
    (tmp_path / ".gitignore").write_text("*.onnx\n*.data\nresults\n")
    (tmp_path.parent / "outside.csv").write_text("")
    further = ["--ort-csv=../outside.csv", "--ort-dir=", "--ort-other=results"]
    sent = _names(project_files(tmp_path, [argument, *further], []))
    assert set(sent) - {".gitignore"} == {"a.py", "m.onnx", "m.data"}


@pytest.mark.live
def test_without_git_all_is_sent_but_environments_results_and_what_is_hidden(
    tmp_path: Path,
) -> None:
    _write(
        tmp_path,
        *("a.py", ".env", "venv/pyvenv.cfg", "venv/lib/x.py", "results/r/run.json", "d/m.onnx"),
        *("__pycache__/a.pyc", ".git-less/x"),
    )
    assert _names(project_files(tmp_path, [], [])) == ["a.py", "d/m.onnx"]


@pytest.mark.live
@pytest.mark.parametrize("path", ["../outside.onnx", "link.onnx"])
def test_what_lies_outside_of_the_project_is_refused(tmp_path: Path, path: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    _write(tmp_path, "outside.onnx")
    (project / "link.onnx").symlink_to(tmp_path / "outside.onnx")
    with pytest.raises(UsageError) as refused:
        project_files(project, [path], [])
    # One who named a file of the folder learns that this is a link.
    named = {tmp_path / "outside.onnx", Path(os.path.normpath(project / path))}
    assert [file for file in named if repr(str(file)) not in refused.value.message] == []


@pytest.mark.live
def test_a_further_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        project_files(tmp_path, [], [Path("nosuch.onnx")])
    assert refused.value.place == "--send"


def _parcel(root: Path, sizes: dict[str, int]) -> Parcel:
    files = []
    for name, size in sizes.items():
        content = name.encode() * (size // len(name) + 1)
        (root / name).write_bytes(content[:size])
        digest = hashlib.sha256(content[:size]).hexdigest()
        files.append(SentFile(path=name, source=root / name, digest=digest, size=size))
    wheel = files[0]
    return Parcel(
        files=tuple(files[1:]),
        wheels={"pytest_ortbench-1-py3-none-any.whl": wheel},
        offline=False,
        arguments=("suites",),
    )


def test_each_file_travels_once_large_ones_by_themselves(tmp_path: Path) -> None:
    parcel = _parcel(tmp_path, {"wheel": 10, "small": 20, "large": LARGE_BYTES})
    with tarfile.open(fileobj=BytesIO(parcel.pack())) as archive:
        packed = {member.name: member.size for member in archive}
    digests = {entry.path: entry.digest for entry in parcel.files}
    wheel = parcel.wheels["pytest_ortbench-1-py3-none-any.whl"].digest
    assert packed == {wheel: 10, digests["small"]: 20}
    assert set(parcel.large()) == {digests["large"]}
    assert parcel.size == 30 + LARGE_BYTES


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_bytes(b"another")])
def test_a_file_that_changed_since_it_was_listed_is_refused(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    parcel = _parcel(tmp_path, {"wheel": 10, "small": 20})
    change(tmp_path / "small")
    with pytest.raises(UsageError) as raised:
        parcel.pack()
    assert raised.value.place == str(tmp_path / "small")


@pytest.mark.parametrize(
    ("host", "requirements"),
    [
        (Host(name="a"), ["pytest-ortbench[cpu] @ file://{wheels}/W"]),
        (Host(name="a", extra="gpu,load"), ["pytest-ortbench[gpu,load] @ file://{wheels}/W"]),
        (
            Host(name="a", runtime="onnxruntime==1.20.1", packages=("numpy<2",)),
            ["pytest-ortbench @ file://{wheels}/W", "onnxruntime==1.20.1", "numpy<2"],
        ),
    ],
)
def test_a_machine_installs_its_own_runtime(
    tmp_path: Path, host: Host, requirements: list[str]
) -> None:
    parcel = _parcel(tmp_path, {"wheel": 10, "small": 20})
    told = json.loads(parcel.instructions(host))
    name = "pytest_ortbench-1-py3-none-any.whl"
    assert told["requirements"] == [text.replace("W", name) for text in requirements]
    assert told["arguments"] == ["suites"]


def test_our_wheel_is_the_same_each_time_and_has_what_an_installer_needs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first, second = own_wheel(tmp_path / "a"), own_wheel(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        members = set(archive.namelist())
        (record,) = [name for name in members if name.endswith(".dist-info/RECORD")]
        recorded = {line.split(",")[0] for line in archive.read(record).decode().splitlines()}
    assert recorded == members
    folder = record.rpartition("/")[0]
    assert {f"{folder}/METADATA", f"{folder}/WHEEL", f"{folder}/entry_points.txt"} <= members
    assert "pytest_ortbench/fleet/hosts/host.py" in members
    assert not [name for name in members if "direct_url" in name or name.endswith(".pyc")]


@pytest.mark.parametrize("name", ["numpy-2.4.6-py3-none-any.whl", "pytest_ortbench-1.tar.gz"])
def test_a_wheel_of_another_package_is_refused(tmp_path: Path, name: str) -> None:
    _write(tmp_path, name)
    with pytest.raises(UsageError) as refused:
        wheels_of(tmp_path / name, None, tmp_path)
    assert refused.value.place == "--wheel"


def test_a_wheelhouse_without_wheels_is_refused(tmp_path: Path) -> None:
    house = tmp_path / "house"
    house.mkdir()
    with pytest.raises(UsageError) as refused:
        wheels_of(None, house, tmp_path)
    assert refused.value.place == "--wheelhouse"
    assert "pip download" in refused.value.hint
    (house / "lab-1").mkdir()
    (house / "lab-1" / "a-1-py3-none-any.whl").touch()
    with pytest.raises(UsageError) as refused:
        wheels_of(None, house, tmp_path)
    assert "pip" not in refused.value.hint
