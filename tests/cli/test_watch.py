"""``ortbench watch`` and ``ortbench metrics``: runs while they measure."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pytest_ortbench.cli import watch
from pytest_ortbench.core import extras
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.report.live import render_live
from pytest_ortbench.report.prometheus import prometheus_name
from pytest_ortbench.serving.metrics import SERVICE_METRICS
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


def test_a_run_that_ends_between_two_looks_is_shown_whole(tool, tmp_path, monkeypatch):
    folder = begun(tmp_path / "results", 2)
    read = watch._read

    def ending(path):
        run = read(path)
        if run.finished_at is None:
            folder.append(RUN.cases[2])
            folder.finish(replace(RUN, expected=3))
            (folder.path / "journal.jsonl").unlink(missing_ok=True)
        return run

    monkeypatch.setattr(watch, "_read", ending)
    ended = tool("watch", "--once")
    assert (ended.code, heads(ended.out)) == (0, ["[1/3]", "[2/3]", "[3/3]", RUN.run_id])


def test_without_a_run_it_says_where_it_looked(tool):
    ended = tool("watch", "--once")
    assert ended.code == 2
    assert isinstance(ended.error, UsageError)
    assert ended.error.place == "--results"


def test_why_there_is_no_run_is_told_apart(tool, tmp_path):
    messages = set()
    for name in ("gone", "empty", "damaged"):
        folder = tmp_path / name
        if name != "gone":
            (folder / "run").mkdir(parents=True)
        if name == "damaged":
            (folder / "run" / "run.json").write_text("{")
        error = tool("watch", "--once", f"--results={folder}").error
        messages.add(error.message.replace(str(folder), ""))
    assert len(messages) == 3


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
        assert measured_at(url.removesuffix("metrics")) == {"cpu": 1.0, "openvino": 1.0}
        for path in ("/nothing", "/", "s?a=b"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url + path)
            with refused.value as answer:
                assert answer.code == 404
        folder.append(RUN.cases[2])
        assert measured_at(url) == {"cpu": 1.0, "openvino": 1.0, "cuda": 0.0}
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
        watchdog.cancel()
    assert process.returncode == 0


@pytest.mark.live
def test_a_page_shows_the_newest_run_until_the_end(tmp_path):
    """Each look shows what is finished by then; nothing else of the machine can be had."""
    folder = begun(tmp_path, 2)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_ortbench.cli", "watch", f"--results={tmp_path}", "--http=0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0]
        assert url.startswith("http://127.0.0.1:")
        assert progress_at(url) == ("3", "2")
        folder.append(RUN.cases[2])
        assert progress_at(url) == ("3", "3")
        for path, host, status in (("../run.json", None, 404), ("", "pages.example:80", 403)):
            asked = urllib.request.Request(url + path, headers={"Host": host} if host else {})
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(asked)
            with refused.value as answer:
                assert answer.code == status
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
        watchdog.cancel()
    assert process.returncode == 0


def progress_at(url: str) -> tuple[str, str]:
    """Cases that are expected, and finished ones."""
    with urllib.request.urlopen(url) as answer:
        assert answer.headers["Refresh"]
        found = re.search(r'<progress max="(\d+)" value="(\d+)"', answer.read().decode())
    assert found is not None
    return found[1], found[2]


def test_names_of_a_run_are_text_on_its_page():
    """A case with hostile names brings no element into the page."""
    hostile = "<script>alert(1)</script>"
    case = RUN.cases[0].case
    case = replace(case, model=replace(case.model, name=hostile))
    run = replace(RUN, run_id=hostile, cases=(replace(RUN.cases[0], case=case),))
    page = render_live(run, written_s=None)
    assert "alert(1)" in page
    assert "<script" not in page


def test_a_page_and_a_single_look_exclude_each_other(tool, tmp_path):
    begun(tmp_path / "results", 1)
    ended = tool("watch", "--http=0", "--once")
    assert (ended.code, ended.error.place) == (2, "--once, --http")


def test_the_dashboard_asks_for_metrics_that_exist(tool):
    """Each name in a query is one of the service, of a run, or of a process."""
    dashboard = json.loads(tool("metrics", "--dashboard").out)
    queries = [
        target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())
    ]
    queries += [entry["definition"] for entry in dashboard["templating"]["list"][1:]]
    names = {name for query in queries for name in re.findall(r"\b(?:ortbench|process)_\w+", query)}
    assert len(names) > 12
    histograms = {
        f"{name}_{part}" for name in SERVICE_METRICS for part in ("bucket", "sum", "count")
    }
    of_runs = {prometheus_name(metric) for metric in METRICS.values()}
    of_runs |= {"ortbench_case_measured", "ortbench_flag", "ortbench_run_info"}
    of_process = {"process_resident_memory_bytes", "process_cpu_seconds_total"}
    assert names <= {*SERVICE_METRICS, *histograms, *of_runs, *of_process}


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
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = tool("metrics", tmp_path, f"--port={taken.getsockname()[1]}")
    assert ended.code == 2
    assert ended.error.place == "--port"


def test_numbers_of_a_folder_that_is_not_there_are_refused(tool):
    ended = tool("metrics", "nowhere", "--port=0")
    assert ended.code == 2
    assert isinstance(ended.error, UsageError)
    assert ended.error.place == "RESULTS"


@pytest.mark.parametrize(("begins", "notes"), [(False, 1), (True, 0)])
def test_a_folder_without_a_run_is_told_at_the_start(tool, tmp_path, begins, notes):
    if begins:
        begun(tmp_path, 1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = tool("metrics", tmp_path, f"--port={taken.getsockname()[1]}")
    assert ended.error.place == "--port"
    assert len(re.findall(r"^note: ", ended.err, re.MULTILINE)) == notes


def test_without_its_package_metrics_say_which_extra_brings_it(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "prometheus_client")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        error = tool("metrics", tmp_path, f"--port={taken.getsockname()[1]}").error
    assert (error.place, error.hint) == ("metrics", extras.install_command("prometheus"))
