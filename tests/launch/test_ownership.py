from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.ownership import other_writers, others_in
from pytest_ortbench.runtimes.environments import Environments
from pytest_ortbench.runtimes.specs import parse_requirements

#: A user that no machine has.
_OTHER = 54_321


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Make a folder that of another user: by giving it away, or by becoming another one."""

    def make(folder: Path) -> None:
        if os.geteuid() == 0:
            os.chown(folder, _OTHER, -1)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: _OTHER)

    return make


def test_a_folder_of_ones_own_or_one_that_is_not_there(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert other_writers(tmp_path) == ""
    assert other_writers(tmp_path / "none") == ""


def test_a_folder_of_another_user(tmp_path: Path, others: Callable[[Path], None]) -> None:
    others(tmp_path)
    assert other_writers(tmp_path)
    assert others_in(tmp_path / "none", tmp_path).startswith(f"{tmp_path} ")


@pytest.mark.parametrize(("mode", "open_to_all"), [(0o777, True), (0o1777, False), (0o775, False)])
def test_a_folder_that_all_may_write_to(tmp_path: Path, mode: int, open_to_all: bool) -> None:
    tmp_path.chmod(mode)
    assert bool(other_writers(tmp_path)) is open_to_all


def test_a_system_without_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.delattr(os, "geteuid")
    assert other_writers(tmp_path) == ""


@pytest.mark.parametrize("which", ["cache", "folder of environments"])
def test_no_environment_of_another_user_is_used_or_made(
    tmp_path: Path, others: Callable[[Path], None], which: str
) -> None:
    folder = tmp_path / "cache" / "runtimes"
    folder.mkdir(parents=True)
    others(folder.parent if which == "cache" else folder)
    asked: list[str] = []
    environments = Environments(folder, notify=asked.append)
    with pytest.raises(WorkerError) as caught:
        environments.ensure(parse_requirements(["onnxruntime"], place="test"))
    failure = caught.value.failure
    assert failure.kind == "unavailable"
    assert "another user" in failure.message
    assert "ORTBENCH_CACHE" in failure.hint
    assert asked == []
    assert list(folder.iterdir()) == []
