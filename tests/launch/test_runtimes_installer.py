"""What uv and pip are asked and what they say; which Pythons are found."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.runtimes.installer import (
    InstallError,
    PipInstaller,
    UvInstaller,
    find_installer,
    install_calls,
    pythons_of,
)
from pytest_ortbench.runtimes.interpreters import (
    Interpreter,
    _data_of_uv,
    find_interpreters,
    identify,
    newest_of_each_minor,
)
from tests.launch.fake_installer import HERE

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are sh scripts"),
]

#: As uv 0.13 said it.
_NO_TAG = """\
Using Python 3.13.0 environment at: made
error: No solution found when resolving dependencies
  cause: Because onnxruntime==1.15.1 has no wheels with a matching Python ABI tag (e.g., `cp313`) \
and you require onnxruntime==1.15.1, we can conclude that your requirements are unsatisfiable.
hint: You require CPython 3.13 (`cp313`), but we only found wheels for `onnxruntime` (v1.15.1) \
with the following Python ABI tags: `cp38`, `cp39`, `cp310`, `cp311`
"""
_NO_VERSION = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of onnxruntime==99 and you require onnxruntime==99, we can \
conclude that your requirements are unsatisfiable.
"""
#: As older ones say it.
_TREE = """\
  × No solution found when resolving dependencies:
  ╰─▶ Because onnxruntimee was not found in the package registry and you
      require onnxruntimee, we can conclude that your requirements are
      unsatisfiable.
"""
_TOO_OLD = """\
  × No solution found when resolving dependencies:
  ╰─▶ Because the current Python version (3.10.13) does not satisfy Python>=3.11 and \
onnx==1.99 depends on Python>=3.11, we can conclude that onnx==1.99 cannot be used.
"""
#: As pip 24 said it.
_PIP = """\
ERROR: Ignored the following versions that require a different python version: \
1.24.1 Requires-Python >=3.11; 1.24.2 Requires-Python >=3.11
ERROR: Could not find a version that satisfies the requirement onnxruntime==1.24.1 (from \
versions: 1.17.0, 1.17.1)
ERROR: No matching distribution found for onnxruntime==1.24.1
"""


@pytest.mark.parametrize(
    ("output", "minors"),
    [
        (_NO_TAG, (8, 9, 10, 11)),
        (_NO_TAG.replace("ABI", "implementation"), (8, 9, 10, 11)),
        (_TOO_OLD, (11, 12, 13, 14)),
        (_PIP, (11, 12, 13, 14)),
        ("Requires-Python >=3.8,<3.12", (8, 9, 10, 11)),
        (_NO_VERSION, ()),
        (_TREE, ()),
        ("", ()),
    ],
)
def test_the_pythons_that_packages_are_built_for(output: str, minors: tuple[int, ...]) -> None:
    assert pythons_of(output) == minors


def test_a_package_that_needs_nothing_of_what_it_asks_for_is_installed_alone() -> None:
    assert install_calls(["onnxruntime", "PNNX==20261020", "ncnn"]) == [
        ([], ["onnxruntime", "ncnn"]),
        (["--no-deps"], ["PNNX==20261020"]),
    ]
    assert install_calls(["onnxruntime"]) == [([], ["onnxruntime"])]


def program(path: Path, output: str, code: int) -> str:
    """A program that notes how it was called, says something and ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "said").write_text(output)
    path.write_text(
        f'#!/bin/sh\nfor word in "$@"; do echo "$word"; done > "{path.parent}/arguments"\n'
        f'env > "{path.parent}/environment"\ncat "{path.parent}/said" >&2\nexit {code}\n'
    )
    path.chmod(0o755)
    return str(path)


def environment_of(folder: Path) -> dict[str, str]:
    lines = (folder / "environment").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_uv_is_told_the_python_and_downloads_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UV_PYTHON_DOWNLOADS", raising=False)
    uv = UvInstaller(program(tmp_path / "uv", "", 0))
    uv.make(tmp_path / "made", HERE)
    arguments = (tmp_path / "arguments").read_text().split()
    assert arguments == [
        "venv", "--quiet", "--relocatable", "--python", HERE.path, str(tmp_path / "made"),
    ]  # fmt: skip
    assert environment_of(tmp_path)["UV_PYTHON_DOWNLOADS"] == "never"
    uv.install(tmp_path / "made", ["onnxruntime==1.20.1", "numpy<2"])
    arguments = (tmp_path / "arguments").read_text().split()
    assert arguments[:2] == ["pip", "install"]
    assert arguments[arguments.index("--only-binary") + 1] == ":all:"
    assert arguments[arguments.index("--python") + 1] == str(tmp_path / "made/bin/python")
    assert arguments[-3:] == ["--", "onnxruntime==1.20.1", "numpy<2"]


def test_who_lets_uv_download_pythons_has_the_last_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "automatic")
    UvInstaller(program(tmp_path / "uv", "", 0)).make(tmp_path / "made", HERE)
    assert environment_of(tmp_path)["UV_PYTHON_DOWNLOADS"] == "automatic"


@pytest.mark.parametrize(
    ("output", "text", "depends", "hint"),
    [
        (
            _NO_TAG,
            "uv says: 'onnxruntime==1.15.1 has no wheels with a matching Python ABI tag (e.g., "
            "`cp313`)'",
            True,
            "",
        ),
        (_NO_VERSION, "uv says: 'there is no version of onnxruntime==99'", False, "a version"),
        (
            _TREE,
            "uv says: 'onnxruntimee was not found in the package registry'",
            False,
            "UV_INDEX",
        ),
        (
            "error: Failed to fetch: `x`",
            "uv says: 'error: Failed to fetch: `x`'",
            False,
            "UV_INDEX",
        ),
        ("", "uv gives no reason", False, ""),
    ],
)
def test_the_reason_in_uvs_words(
    tmp_path: Path, output: str, text: str, depends: bool, hint: str
) -> None:
    uv = UvInstaller(program(tmp_path / "uv", output, 1))
    with pytest.raises(InstallError) as caught:
        uv.install(tmp_path / "made", ["x"])
    assert caught.value.text == text
    assert caught.value.depends_on_python == depends
    assert hint in caught.value.hint
    assert bool(caught.value.hint) == bool(hint)


def test_pip_says_nothing_of_other_pythons(tmp_path: Path) -> None:
    program(tmp_path / "made/bin/python", _PIP, 1)
    with pytest.raises(InstallError) as caught:
        PipInstaller().install(tmp_path / "made", ["onnxruntime==1.24.1"])
    assert caught.value.pythons == (11, 12, 13, 14)
    assert "a version" in caught.value.text
    program(tmp_path / "made/bin/python", "\n".join(_PIP.splitlines()[1:]), 1)
    with pytest.raises(InstallError) as caught:
        PipInstaller().install(tmp_path / "made", ["onnxruntime==1.24.1"])
    assert caught.value.pythons == ()
    assert caught.value.depends_on_python
    assert caught.value.text == (
        "pip says: 'Could not find a version that satisfies the requirement onnxruntime==1.24.1 "
        "(from versions: 1.17.0, 1.17.1)'"
    )


def test_venv_and_pip_are_asked(tmp_path: Path) -> None:
    python = program(tmp_path / "python3", "", 0)
    PipInstaller().make(tmp_path / "made", Interpreter(path=python, version=(3, 11, 7)))
    arguments = (tmp_path / "arguments").read_text().split()
    assert arguments == ["-I", "-m", "venv", str(tmp_path / "made")]
    lacking = "The virtual environment was not created because ensurepip is not available"
    broken = program(tmp_path / "python3", lacking, 1)
    with pytest.raises(InstallError) as caught:
        PipInstaller().make(tmp_path / "made", Interpreter(path=broken, version=(3, 11, 7)))
    assert caught.value.text.startswith("Python 3.11.7 ")
    assert "python3-venv" in caught.value.hint


def test_without_uv_there_is_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_installer().name == "venv and pip"
    program(tmp_path / "uv", "", 0)
    assert find_installer().name == "uv"


# -- interpreters ---------------------------------------------------------------------------------

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Puts stand-ins for Pythons into this machine, which has no others."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), str(tmp_path / "shims")]))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))

    def put_one(name: str, version: str, *, fits: bool = True) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        numbers = [int(number) for number in version.split(".")]
        # No program of PATH: there is none on it any more.
        path.write_text(f"#!/bin/sh\necho '{json.dumps([str(path), numbers, fits])}'\n")
        path.chmod(0o755)
        return path

    return put_one


def test_pythons_on_path_of_pyenv_and_of_uv_are_found(put: Put) -> None:
    expected = {
        "3.90.1": put("bin/python3.90", "3.90.1"),
        "3.91.0": put("pyenv/versions/3.91.0/bin/python3", "3.91.0"),
        "3.92.2": put("uv/cpython-3.92.2-linux/bin/python3", "3.92.2"),
    }
    put("shims/python3.93", "3.93.0")
    put("bin/python3-config", "3.94.0")
    put("bin/python3.95", "3.95.0", fits=False)
    found = {each.text: each.path for each in find_interpreters()}
    assert found.pop(HERE.text)
    assert found == {text: str(path) for text, path in expected.items()}


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/uv"),
        # By XDG on macOS, too, and not where macOS keeps what applications store.
        ("darwin", {"XDG_DATA_HOME": "", "HOME": "/home/me"}, "/home/me/.local/share/uv"),
        ("win32", {"APPDATA": "/Users/me/AppData/Roaming"}, "/Users/me/AppData/Roaming/uv/data"),
    ],
)
def test_uvs_own_folder_of_each_platform(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], folder: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)
    assert _data_of_uv() == Path(folder)


def test_the_newest_of_a_minor_version_of_pyenv_is_taken(put: Put) -> None:
    put("pyenv/versions/3.90.9/bin/python3", "3.90.9")
    put("pyenv/versions/3.90.10/bin/python3", "3.90.10")
    assert "3.90.10" in [each.text for each in find_interpreters()]
    assert "3.90.9" not in [each.text for each in find_interpreters()]


def test_the_running_one_comes_first_then_newer_ones() -> None:
    def of(*version: int) -> Interpreter:
        return Interpreter(path="p", version=(version[0], version[1], version[2]))

    chosen = newest_of_each_minor(
        [of(3, 11, 7), of(3, 9, 1), of(3, 13, 0), of(3, 11, 2), of(3, 10, 3)]
    )
    assert [each.text for each in chosen] == ["3.11.7", "3.13.0", "3.10.3"]


def test_what_is_no_python_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\necho hello\n")
    (tmp_path / "python3").chmod(0o755)
    (tmp_path / "python").write_text("not a program")
    assert identify(tmp_path / "python3") is None
    assert identify(tmp_path / "python") is None
    assert identify(tmp_path / "missing") is None


def test_a_virtual_environment_stands_for_its_base() -> None:
    found = identify(Path(sys.executable))
    assert found is not None
    assert found.version == sys.version_info[:3]
    assert Path(found.path).resolve() == Path(sys.executable).resolve()
    assert not (Path(found.path).parents[1] / "pyvenv.cfg").exists()
