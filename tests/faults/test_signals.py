"""SIGTERM and SIGHUP end runs and commands like Ctrl-C, and leave nothing in temporary folders."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from pytest_ortbench.core.own_folder import OWNER

from .runs import QUICK, started, stored_results, write_model

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(sys.platform == "win32", reason="needs the signals of POSIX"),
]


#: Cases of a run that a signal ends.
_CASES = 39


def _long(folder: Path) -> tuple[str, ...]:
    """Write a model, and return the arguments of a run that goes on after its first case."""
    write_model(folder / "m.onnx")
    sizes = ",".join(map(str, range(1, _CASES + 1)))
    return ("m.onnx", "-k", "latency", f"--ort-batch-sizes={sizes}", "--ort-providers=cpu", *QUICK)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_run_with_table_and_document(tmp_path: Path, name: str) -> None:
    arguments = _long(tmp_path)
    with started(tmp_path, arguments) as run:
        run.until(lambda: stored_results(tmp_path))
        run.signal(getattr(signal, name))
        printed = run.end()
        assert run.process.returncode == pytest.ExitCode.INTERRUPTED
        assert run.left() == []
    (document,) = tmp_path.glob("results/*/run.json")
    statuses = [case["status"] for case in json.loads(document.read_text())["cases"]]
    # One at least: how many a run gets through until the signal is there is the machine's affair.
    assert set(statuses) == {"measured"}
    assert len(statuses) < _CASES
    assert "= ortbench =" in printed
    assert "p50" in printed
    assert "INTERNALERROR" not in printed
    assert "Traceback" not in printed


def test_a_terminal_that_closes_costs_no_document(tmp_path: Path) -> None:
    arguments = _long(tmp_path)
    terminal, theirs = os.openpty()
    with started(
        tmp_path,
        arguments,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as run:
        os.close(theirs)
        run.until(lambda: stored_results(tmp_path))
        os.close(terminal)
        run.signal(signal.SIGHUP)
        run.process.wait(600)
        assert run.process.returncode == pytest.ExitCode.INTERRUPTED
        assert run.left() == []
    assert list(tmp_path.glob("results/*/run.json"))


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    arguments = _long(tmp_path)
    with started(
        tmp_path, arguments, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ) as run:
        run.until(lambda: stored_results(tmp_path))
        run.signal(signal.SIGHUP)
        run.signal(signal.SIGTERM)
        run.end()
        assert run.process.returncode == pytest.ExitCode.INTERRUPTED


#: A runtime that never answers, so that a command is not over before the signal.
_SILENT = '[runtimes.silent]\ncommand = ["sh", "-c", "exec sleep 600"]\n'


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_command(tmp_path: Path, name: str) -> None:
    (tmp_path / "ortbench.toml").write_text(_SILENT)
    arguments = ["providers", "--runtimes=silent"]
    with started(tmp_path, arguments, module="pytest_ortbench.cli") as command:
        # Not at the first file: Python's own look for a folder makes one, and may leave it then.
        command.until(lambda: list(command.temporary.glob(f"*/{OWNER}")))
        command.signal(getattr(signal, name))
        command.end()
        assert command.process.returncode == 130
        assert command.left() == []


def test_what_a_killed_run_left_the_next_one_removes(tmp_path: Path) -> None:
    arguments = _long(tmp_path)
    with started(tmp_path, arguments) as killed:
        killed.until(lambda: stored_results(tmp_path))
        killed.signal(signal.SIGKILL)
        killed.end()
        assert killed.left()
    (tmp_path / "temporary" / "ortbench-of-somebody").mkdir()
    with started(tmp_path, ["m.onnx", "-k", "latency", "--ort-no-results", *QUICK]) as following:
        following.end()
        assert following.process.returncode == 0
        assert following.left() == ["ortbench-of-somebody"]
