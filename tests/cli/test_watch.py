"""``ortbench watch`` and ``ortbench metrics``: runs while they measure."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pytest_ortbench.cli import watch
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.store.folder import RunFolder
from tests.results_factory import make_run

RUN = make_run()


def begun(root: Path, cases: int) -> RunFolder:
    """Begin a run of which some cases are finished."""
    folder = RunFolder.create(root, replace(RUN, finished_at=None, cases=(), expected=3))
    for result in RUN.cases[:cases]:
        folder.append(result)
    return folder


def heads(out: str) -> list[str]:
    return [line.split()[0] for line in out.splitlines()]


def test_a_run_is_shown_as_far_as_it_is(tool, tmp_path):
    begun(tmp_path / "results", 2)
    ended = tool("watch", "--once")
    assert (ended.code, heads(ended.out)) == (0, ["[1/3]", "[2/3]", f"{RUN.run_id}:"])


def test_it_goes_on_until_the_run_is_finished(tool, tmp_path, monkeypatch):
    folder = begun(tmp_path / "results", 1)
    steps = iter(
        [
            lambda: folder.append(RUN.cases[1]),
            lambda: None,
            lambda: (folder.append(RUN.cases[2]), folder.finish(replace(RUN, expected=3))),
        ]
    )
    # The clock moves on where the command waits; a step that is missing fails the test.
    monkeypatch.setattr(watch.time, "sleep", lambda _: next(steps)())
    ended = tool("watch")
    assert (ended.code, heads(ended.out)) == (0, ["[1/3]", "[2/3]", "[3/3]", RUN.run_id])
    assert next(steps, None) is None


def test_a_torn_line_is_no_case(tool, tmp_path):
    folder = begun(tmp_path / "results", 1)
    journal = folder.path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"case": {"mo')
    assert heads(tool("watch", "--once").out)[:1] == ["[1/3]"]


def test_without_a_run_it_says_where_it_looked(tool):
    ended = tool("watch", "--once")
    assert ended.code == 2
    assert isinstance(ended.error, UsageError)
    assert ended.error.place == "results"


@pytest.mark.live
def test_numbers_are_served_on_loopback_until_the_end(tmp_path):
    folder = begun(tmp_path, 2)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_ortbench.cli", "metrics", str(tmp_path), "--port=0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0]
        assert url.startswith("http://127.0.0.1:")
        assert measured_at(url) == {"cpu": 1.0, "openvino": 1.0}
        folder.append(RUN.cases[2])
        assert measured_at(url) == {"cpu": 1.0, "openvino": 1.0, "cuda": 0.0}
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
        watchdog.cancel()
    assert process.returncode == 0


def measured_at(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {
            sample.labels["provider"]: sample.value
            for family in families
            if family.name == "ortbench_case_measured"
            for sample in family.samples
        }


def test_a_port_that_is_taken_is_refused(tool, tmp_path):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = tool("metrics", tmp_path, f"--port={taken.getsockname()[1]}")
    assert ended.code == 2
    assert ended.error.place == "--port"
