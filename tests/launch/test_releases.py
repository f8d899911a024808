"""Ranges of releases."""

from __future__ import annotations

import subprocess
import sys

import pytest
from packaging.version import Version

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.runtimes import releases
from tests.refused import refused


@pytest.fixture(autouse=True)
def pip(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        known = command[-1] in ("onnxruntime", "unfinished")
        told = (
            "onnxruntime (1.32.0)\nAvailable versions: 1.32.0, 1.31.1, 1.31.0rc1, 1.9.0, 1.20.1\n"
            if command[-1] == "onnxruntime"
            else "unfinished (2.0rc1)\nAvailable versions: 2.0rc1, 1.0b1\n"
        )
        return subprocess.CompletedProcess(
            command, int(not known), told if known else "", "" if known else "ERROR: no such thing"
        )

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(releases, "has_pip", lambda: True)


def test_a_range_has_both_ends_in_order_of_release_without_pre_releases():
    assert releases.expand_range("onnxruntime==1.20.1..1.32.0", place="p") == [
        "onnxruntime==1.20.1",
        "onnxruntime==1.31.1",
        "onnxruntime==1.32.0",
    ]


@pytest.mark.parametrize("text", ["onnxruntime==1.20.1", "current", "a==1+b==2", "a==1,a==2"])
def test_what_is_no_range(text: str):
    assert releases.expand_range(text, place="p") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("onnxruntime==1.33..1.34", "onnxruntime==1.31.1..1.32.0"),
        ("onnxruntime==1.0..1.1", "onnxruntime==1.9.0..1.20.1"),
        ("onnxruntime==1.20.0..1.20.1", "onnxruntime==1.9.0..1.31.1"),
        ("onnxruntime==1.21..1.22", "onnxruntime==1.20.1..1.31.1"),
        ("onnxrutime==1.20..1.30", "pip reaches its index"),
        ("onnxruntime==x..y", "'x' in 'onnxruntime==x..y'"),
        ("unfinished==1.0..2.0", ",unfinished==2.0rc1"),
        ("onnxrutime==1.20..1.30", "ERROR: no such thing"),
        ("onnxrutime==1.20..1.30", "write onnxruntime in place of onnxrutime"),
        ("onnxruntime==1.32.0..1.20.1", "Write onnxruntime==1.20.1..1.32.0"),
    ],
)
def test_wrong_ranges(text: str, message: str):
    with pytest.raises(UsageError) as raised:
        releases.expand_range(text, place="--runtimes")
    assert message in str(raised.value)


def test_without_pip_the_step_is_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(releases, "has_pip", lambda: False)
    with refused(UsageError, sys.executable, place="--runtimes", hint="-m ensurepip"):
        releases.expand_range("onnxruntime==1.20..1.30", place="--runtimes")


def test_the_only_release_is_named_beside_another_distribution(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(releases, "released", lambda *_, **__: [Version("1.2")])
    with refused(UsageError, "1 release ", hint="x==1.2,onnxruntime"):
        releases.expand_range("x==1.0..2.0", place="--runtimes")


def test_pip_that_does_not_answer_is_to_be_tried_by_hand(monkeypatch: pytest.MonkeyPatch):
    def late(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 120.0)

    monkeypatch.setattr(releases.subprocess, "run", late)
    command = f"{sys.executable} -m pip index versions onnxruntime"
    with refused(UsageError, "120 s", place="--runtimes", hint=command):
        releases.expand_range("onnxruntime==1.20..1.30", place="--runtimes")
