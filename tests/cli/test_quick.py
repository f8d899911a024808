"""``ortbench quick``: the call of pytest that it makes, and when a page is opened."""

from __future__ import annotations

import shlex
import subprocess
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ortbench.cli import quick
from tests.plugin.conftest import model_file

from .conftest import Ended

Tool = Callable[..., Ended]


class Calls:
    """What was called, and what pytest does then."""

    def __init__(self) -> None:
        self.pytest: list[list[str]] = []
        self.opened: list[str] = []
        self.ends_with = 0
        self.writes = True

    def run(self, arguments: list[str], **_: Any) -> Any:
        self.pytest.append(arguments)
        (page,) = [text.partition("=")[2] for text in arguments if text.startswith("--ort-html=")]
        if self.writes:
            Path(page).write_text("a page", encoding="utf-8")
        return SimpleNamespace(returncode=self.ends_with)

    def open(self, address: str) -> bool:
        self.opened.append(address)
        return True


__all__ = ["model_file"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    made = Calls()
    monkeypatch.setattr(subprocess, "run", made.run)
    monkeypatch.setattr(webbrowser, "open", made.open)
    monkeypatch.setattr(quick, "_has_display", lambda _: True)
    return made


def test_a_file_is_measured_and_its_page_opened(tool: Tool, calls: Calls, tmp_path: Path) -> None:
    (tmp_path / "a net.onnx").write_bytes(b"")
    assert tool("quick", "a net.onnx").code == 0
    (call,) = calls.pytest
    assert call[1:4] == ["-m", "pytest", "a net.onnx"]
    assert {"--ort-html=ortbench-a-net.html", "--ort-providers=all"} <= set(call)
    assert calls.opened == [(tmp_path / "ortbench-a-net.html").as_uri()]


@pytest.mark.parametrize("model", ["zoo:silero-vad", "net[1].onnx", "net.py:build", "gone.onnx"])
def test_what_pytest_can_not_be_told_goes_to_the_suites(
    tool: Tool, calls: Calls, tmp_path: Path, model: str
) -> None:
    (tmp_path / "net[1].onnx").write_bytes(b"")
    assert tool("quick", model).code == 0
    assert {"--pyargs", f"--ort-models={model}"} <= set(calls.pytest[0])


def test_arguments_of_pytest_come_last_and_win(tool: Tool, calls: Calls) -> None:
    tool("quick", "zoo:a", "--", "--ort-providers=cpu", "-k", "latency")
    call = calls.pytest[0]
    assert call[-3:] == ["--ort-providers=cpu", "-k", "latency"]
    assert [text for text in call if text.startswith("--ort-providers")] == ["--ort-providers=cpu"]


@pytest.mark.parametrize(
    ("arguments", "budget"), [((), []), (("--budget=90s",), ["--ort-budget=90s"])]
)
def test_a_budget_is_set_only_where_one_is_asked_for(
    tool: Tool, calls: Calls, arguments: tuple[str, ...], budget: list[str]
) -> None:
    tool("quick", "zoo:a", *arguments)
    call = calls.pytest[0]
    assert [text for text in call if text.startswith("--ort-budget")] == budget


def test_the_command_is_printed_as_it_is_run(tool: Tool, calls: Calls, tmp_path: Path) -> None:
    (tmp_path / "a net.onnx").write_bytes(b"")
    printed = tool("quick", "a net.onnx", "--", "-k", "not startup").out.splitlines()[0]
    command = shlex.split(printed.partition(": ")[2])
    assert command == ["pytest", *calls.pytest[0][3:]]


def test_a_file_called_results_is_left_alone(tool: Tool, calls: Calls, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("mine")
    tool("quick", "zoo:a")
    assert "--ort-results=ortbench-results" in calls.pytest[0]


@pytest.mark.parametrize(
    ("ends_with", "writes", "code"),
    [(0, True, 0), (1, True, 1), (4, False, 3), (2, False, 130), (2, True, 0)],
)
def test_the_exit_code_follows_from_pytest_and_the_page(
    tool: Tool, calls: Calls, ends_with: int, writes: bool, code: int
) -> None:
    calls.ends_with, calls.writes = ends_with, writes
    assert tool("quick", "zoo:a", "-o", "page.html").code == code
    assert bool(calls.opened) is writes


def test_a_page_of_an_earlier_run_is_not_opened(tool: Tool, calls: Calls, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("old")
    calls.writes = False
    assert tool("quick", "zoo:a", "--output=page.html").code == 3
    assert calls.opened == []


def test_no_open_says_where_the_page_is(tool: Tool, calls: Calls, tmp_path: Path) -> None:
    ended = tool("quick", "zoo:a", "--no-open", "-o", "page.html")
    assert str(tmp_path / "page.html") in ended.out
    assert calls.opened == []


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({}, False),
        ({"DISPLAY": ":0"}, True),
        ({"BROWSER": "x"}, True),
        ({"CI": "true", "DISPLAY": ":0"}, False),
    ],
)
def test_a_browser_needs_a_display(
    environment: dict[str, str], shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick.sys, "platform", "linux")
    assert quick._has_display(environment) is shown
    monkeypatch.setattr(quick.sys, "platform", "darwin")
    assert quick._has_display({}) is True


def test_a_real_model_gets_a_page(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    model_file()
    done = pytester.run(
        sys.executable, "-m", "pytest_ortbench.cli", "quick", "mlp.onnx", "--no-open", "--",
        "--ort-time=0.06", "--ort-workers=1", "-k", "latency",
    )  # fmt: skip
    assert done.ret == 0
    assert "mlp" in (pytester.path / "ortbench-mlp.html").read_text(encoding="utf-8")
    assert str(pytester.path / "ortbench-mlp.html") in done.outlines[-1]
