"""``ortbench providers``: what runs, remembered, in several runtimes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_ortbench.cli.application import run
from pytest_ortbench.cli.providers import _about
from pytest_ortbench.cli.survey import ProviderState
from pytest_ortbench.cli.terminal import ExitCode

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ORTBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_runs_is_remembered_and_can_be_tried_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["providers"]) == ExitCode.FINE
    first = capsys.readouterr().out.splitlines()
    assert first[0].split() == ["cpu", "runs"]
    assert first[1].split()[:3] == ["azure", "left", "out"]
    assert len(list((folder / "cache" / "probes").iterdir())) == 1
    assert run(["providers"]) == ExitCode.FINE
    second = capsys.readouterr().out.splitlines()
    assert second[0].split()[:2] == ["cpu", "runs"]
    assert second[0] != first[0]
    assert second[-1].startswith("--again ")
    assert run(["providers", "--again"]) == ExitCode.FINE
    assert capsys.readouterr().out.splitlines() == first


def test_in_several_runtimes_one_of_which_is_broken(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "ortbench.toml").write_text(
        f'[runtimes.same]\npython = "{sys.executable}"\n'
        '[runtimes.gone]\npython = "/nowhere/python"\n',
        encoding="utf-8",
    )
    assert run(["providers", "--runtimes=same", "--runtimes=gone"]) == ExitCode.FINE
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == "in same"
    assert lines[1].split() == ["cpu", "runs"]
    assert "in gone" in lines
    assert "/nowhere/python" in captured.err
    assert run(["providers", "--runtimes=gone"]) == ExitCode.NOTHING


def test_reason_and_next_step_stand_together() -> None:
    state = ProviderState(alias="cuda", state="fails", reason="no driver", hint="Install it")
    assert _about(state) == f"{state.reason}. {state.hint}"
