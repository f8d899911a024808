"""The commands that a run ends with: the user's own arguments, in_shell; each works as printed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.analysis import next_steps
from pytest_ortbench.core.command_line import in_shell
from pytest_ortbench.core.run import Run
from pytest_ortbench.plugin.next_commands import arguments_with, pytest_words
from pytest_ortbench.store.documents import load

from .conftest import QUICK

#: Kinds of suggestions, in their order.
KINDS = ("workers", "inputs", "threads", "profile", "precision", "gate")


@pytest.mark.parametrize(
    ("arguments", "options", "expected"),
    [
        (["m.onnx"], {"--ort-threads": "1,2"}, ["m.onnx", "--ort-threads=1,2"]),
        (
            ["--ort-workers=2", "m.onnx", "--ort-time", "1"],
            {"--ort-workers": "4", "--ort-time": "2"},
            ["m.onnx", "--ort-workers=4", "--ort-time=2"],
        ),
        (
            ["a dir/m.onnx", "--ort-workers-x=1", "-k", "latency or memory"],
            {"--ort-workers": "4"},
            ["a dir/m.onnx", "--ort-workers-x=1", "-k", "latency or memory", "--ort-workers=4"],
        ),
    ],
)
def test_an_option_is_set_once_and_the_other_arguments_stay(
    arguments: list[str], options: dict[str, str], expected: list[str]
) -> None:
    assert arguments_with(arguments, options) == expected


@pytest.mark.skipif(os.name == "nt", reason="the rules of a POSIX shell")
def test_what_a_shell_would_change_is_quoted() -> None:
    words = ["pytest", "my models/$det.onnx", "--ort-limits=latency_p90 < 5 ms", "it's"]
    assert shlex.split(in_shell(words)) == words
    assert in_shell(["pytest", "m.onnx", "--ort-time=1"]) == "pytest m.onnx --ort-time=1"


def test_pytest_is_started_again_as_it_was(tmp_path: Path) -> None:
    assert pytest_words("/site-packages/pytest/__main__.py")[1:] == ["-m", "pytest"]
    assert pytest_words(str(tmp_path / "pytest")) == [str(tmp_path / "pytest")]
    assert pytest_words("/somewhere/ide_runner.py") == ["pytest"]


@pytest.mark.heavy
def test_each_printed_command_does_what_it_says(
    pytester: pytest.Pytester,
    model_file: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Every kind at once: evidence is whatever there is, and the model is large enough for all.
    for name, value in {"MOST": 9, "_WIDE": -1.0, "_GATED": 1e9, "_PROFILED_S": 0.0}.items():
        monkeypatch.setattr(next_steps, name, value)
    monkeypatch.setattr(next_steps, "_LEAST_WEIGHTS", 1)
    monkeypatch.setattr(sys, "argv", [str(Path(pytest.__file__).with_name("__main__.py"))])
    folder = pytester.mkdir("my models")
    model_file("my models/mlp.onnx")
    np.savez(folder / "mlp.npz", x=np.ones((1, 8), dtype=np.float32))
    pytester.makeini("[pytest]\naddopts = --ort-timeout=77 -p no:cacheprovider")
    result = pytester.runpytest("my models/mlp.onnx", *QUICK)
    result.assert_outcomes(passed=6)
    lines = result.outlines[result.outlines.index("next:") + 1 :]
    commands = [line.strip() for line in lines if line.startswith("    ")][:6]
    known = {path.parent.name for path in pytester.path.glob("results/*/run.json")}
    runs: dict[str, Run] = {}
    for kind, command in zip(KINDS, commands, strict=True):
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        stored = {path.parent.name for path in pytester.path.glob("results/*/run.json")} - known
        known |= stored
        for name in stored:
            runs[kind] = load(pytester.path / "results" / name / "run.json")
    assert list(runs) == [kind for kind in KINDS if kind != "profile"]
    assert {result.case.sampling.workers for result in runs["workers"].cases} == {2}
    assert {result.case.inputs[0].path for result in runs["inputs"].cases} != {""}
    threads = [result.case.knobs["threads"] for result in runs["threads"].cases]
    assert len(threads) == 2
    assert threads[0] == "1"
    assert len(runs["precision"].cases) == 2
    assert runs["gate"].gate
    # What stands in addopts is neither lost nor printed.
    cases = [result.case for run in runs.values() for result in run.cases]
    assert {case.sampling.timeout_s for case in cases} == {77}
    assert not any("--ort-timeout" in command for command in commands)
