from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.runtimes.installed import installed

CPU_FILES = {
    "onnxruntime/__init__.py": 10,
    "onnxruntime/capi/onnxruntime_pybind11_state.so": 500,
    "onnxruntime/capi/libonnxruntime.so.1.32.0": 900,
}
OPENVINO_FILES = {
    "onnxruntime/__init__.py": 10,
    "onnxruntime/capi/onnxruntime_pybind11_state.so": 600,
    "onnxruntime/capi/libonnxruntime_providers_openvino.so": 300,
}


class Environment:
    """A folder of installed packages with pip's records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, name: str, version: str, files: dict[str, int], *, record: bool = True):
        """Write files of the given sizes, replacing what is there, as pip does."""
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        for file, size in files.items():
            path = self.folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * size)
        if record:
            lines = [f"{file},sha256=x,{size}" for file, size in files.items()]
            lines.append("onnxruntime/__pycache__/__init__.cpython-311.pyc,,")
            (info / "RECORD").write_text("\n".join(lines) + "\n")

    def look(self):
        return installed([str(self.folder)])


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path)


def test_one_distribution_is_sound(environment):
    environment.install("onnxruntime", "1.32.0", CPU_FILES)
    found = environment.look()
    assert [each.requirement for each in found.runtimes] == ["onnxruntime==1.32.0"]
    assert found.folder == str(environment.folder / "onnxruntime")
    assert found.problems() == []
    assert found.repair() == []


def test_of_other_packages_nothing_is_read(environment, monkeypatch):
    environment.install("onnxruntime", "1.32.0", CPU_FILES)
    environment.install("openvino", "2026.1", {"openvino/__init__.py": 5})
    environment.install("orderly", "1.0", {"orderly.py": 5})
    opened: list[Path] = []
    read_text = Path.read_text

    def noting(path: Path, *arguments: Any, **options: Any) -> str:
        opened.append(path)
        return read_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", noting)
    assert len(environment.look().distributions) == 1
    assert {path.parent.name for path in opened} == {"onnxruntime-1.32.0.dist-info"}
    # Its record is long.
    assert [path.name for path in opened].count("RECORD") == 1


def test_nothing_installed_is_sound_too(environment):
    assert environment.look().distributions == ()
    assert environment.look().problems() == []


def test_a_plug_in_provider_is_no_second_runtime(environment):
    environment.install("onnxruntime", "1.32.0", CPU_FILES)
    environment.install("onnxruntime-qnn", "2.0.0", {"onnxruntime_qnn/__init__.py": 5})
    found = environment.look()
    assert [each.name for each in found.distributions] == ["onnxruntime", "onnxruntime-qnn"]
    assert [each.name for each in found.runtimes] == ["onnxruntime"]
    assert found.problems() == []


def test_two_distributions_are_named_with_what_was_replaced_and_the_repair(environment):
    environment.install("onnxruntime-openvino", "1.24.1", OPENVINO_FILES)
    environment.install("onnxruntime", "1.32.0", CPU_FILES)
    found = environment.look()
    assert [each.replaced for each in found.runtimes] == [0, 1]
    together, replaced = found.problems()
    for requirement in ("onnxruntime==1.32.0", "onnxruntime-openvino==1.24.1"):
        assert requirement in together
    assert (replaced.split()[0], "onnxruntime-openvino==1.24.1" in replaced) == ("1", True)
    remove, install = (line.split() for line in found.repair())
    assert remove[0] == install[0] == sys.executable
    assert remove[3:] == ["uninstall", "-y", "onnxruntime", "onnxruntime-openvino"]
    assert install[3:5] == ["install", "onnxruntime-openvino==1.24.1"]
    assert "onnxruntime==1.32.0;" in install


def test_what_a_removed_distribution_took_along_is_noticed(environment):
    environment.install("onnxruntime-openvino", "1.24.1", OPENVINO_FILES)
    (environment.folder / "onnxruntime/__init__.py").unlink()
    (environment.folder / "onnxruntime/capi/onnxruntime_pybind11_state.so").unlink()
    [problem] = environment.look().problems()
    assert problem.split()[::3][:2] == ["2", "onnxruntime-openvino==1.24.1"]


def test_left_over_libraries_are_named(environment):
    environment.install("onnxruntime", "1.32.0", CPU_FILES)
    left = environment.folder / "onnxruntime/capi/libonnxruntime_providers_openvino.so"
    left.write_bytes(b"x")
    (environment.folder / "onnxruntime/notes.txt").write_text("not a library")
    found = environment.look()
    assert found.leftovers == ("onnxruntime/capi/libonnxruntime_providers_openvino.so",)
    (problem,) = found.problems()
    assert problem.endswith(f": {found.leftovers[0]}")
    assert any(line.endswith(f" {environment.folder / 'onnxruntime'}") for line in found.repair())


def test_a_folder_that_all_distributions_left_behind_is_noticed(environment):
    capi = environment.folder / "onnxruntime/capi"
    capi.mkdir(parents=True)
    for number in range(7):
        (capi / f"lib{number}.so.1.{number}").write_bytes(b"x")
    found = environment.look()
    [problem] = found.problems()
    assert problem.split()[-4:] == ["onnxruntime/capi/lib4.so.1.4", "and", "2", "more"]
    assert found.repair()[-1].split()[-2:] == ["install", "onnxruntime"]


def test_without_an_installers_record_nothing_is_called_left_over(environment):
    environment.install("onnxruntime", "1.32.0", CPU_FILES, record=False)
    found = environment.look()
    assert [each.name for each in found.distributions] == ["onnxruntime"]
    assert found.problems() == []


def test_a_folder_of_that_name_does_not_hide_the_package(environment, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("project")
    (elsewhere / "onnxruntime" / "models").mkdir(parents=True)
    environment.install("onnxruntime", "1.32.0", CPU_FILES)
    found = installed([str(elsewhere), str(environment.folder)])
    assert found.folder == str(environment.folder / "onnxruntime")
    assert found.problems() == []


def test_the_interpreter_that_runs_the_tests_is_sound():
    found = installed()
    assert found.problems() == []
    assert next(each.name for each in found.runtimes).startswith("onnxruntime")
