"""``ortbench fleet shard``: a suite over workers of Dask that were started by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.store.documents import load
from tests.cli.test_fleet import QUICK
from tests.fleet.dask_workers import dask_workers
from tests.fleet.product_models import save_product
from tests.inner_runs import CONFTEST

SUITE = """
import pytest

@pytest.mark.ortbench(models=["m0.onnx", "m1.onnx"], batch_sizes=[1, 2])
def test_placement(ortbench):
    assert ortbench.placement().ratio == 1.0

def test_of_something_else():
    raise AssertionError("it is no test of a model, so no worker runs it")
"""
#: The first pytest whose case is done kills the worker that started it.
KILLER = """
import os, pathlib, signal, time
def pytest_runtest_logreport(report):
    mark = pathlib.Path({mark!r})
    if report.when == "teardown" and not mark.exists():
        mark.write_text("")
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
"""


def processes_of(folder: Path) -> list[str]:
    """Return the processes whose temporary files go into the folder of a worker."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            variables = (path / "environ").read_bytes()
        except OSError:
            continue
        if b"TMPDIR=" + os.fsencode(folder) in variables:
            found.append((path / "cmdline").read_bytes().decode())
    return found


@pytest.mark.live
def test_what_a_lost_worker_was_at_is_measured_by_another_one(
    tool: Callable[..., Any], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    machine = tmp_path_factory.mktemp("machine")
    (tmp_path / "test_suite.py").write_text(SUITE)
    for number in range(2):
        save_product(tmp_path / f"m{number}.onnx", seed=number)
    killer = KILLER.format(mark=str(machine / "mark"))
    (tmp_path / "conftest.py").write_text(CONFTEST + killer)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    agreed = machine / "agreed"
    with dask_workers(machine, ["one", "two"]) as cluster:
        ended = tool(
            *("fleet", "shard", f"--scheduler={cluster.address}", f"--folder={agreed}"),
            *("--", "test_suite.py", *QUICK),
        )
        print(ended.out, ended.err)
        dead = [name for name, process in cluster.workers.items() if process.poll() is not None]
    (path,) = (tmp_path / "results").glob("*/run.json")
    run = load(path)
    assert ended.code == 0, (ended.out, ended.err)
    assert {(r.case.model.name, r.case.batch) for r in run.cases} == {
        *(("m0", 1), ("m0", 2), ("m1", 1), ("m1", 2))
    }
    assert (len(run.cases), run.expected, run.finished_at is None) == (4, 4, False)
    (lost,) = (shard for shard in run.shards if shard.state == "interrupted")
    assert [lost.worker] == dead
    measured = [shard for shard in run.shards if shard.state == "measured"]
    assert {shard.worker for shard in measured} == {"one", "two"} - {lost.worker}
    assert {model for shard in measured for model in shard.models} == {"m0", "m1"}
    assert {result.shard for result in run.cases} == {shard.name for shard in measured}
    # Of what ran there, nothing is left but the files by their digests, and caches.
    assert processes_of(agreed) == []
    assert list((agreed / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("--scheduler=10.0.0.1:8786", "--", "x"), "--scheduler"),
        (("--scheduler=http://10.0.0.1:8787/status", "--", "x"), "--scheduler"),
        (("--scheduler=tls://10.0.0.1:8786", "--", "x"), "--scheduler"),
        (("--scheduler=tcp://10.0.0.1:8786", "--tls-ca=c", "--", "x"), "fleet shard"),
        (
            ("--scheduler=tcp://h:1", "--tls-ca=c", "--tls-cert=c", "--tls-key=c", "--", "x"),
            "--scheduler",
        ),
        (("--scheduler=tcp://10.0.0.1:8786",), "fleet shard"),
        (("--scheduler=tcp://10.0.0.1:8786", "--resume"), "--resume"),
    ],
)
@pytest.mark.live
def test_a_call_that_can_not_be_is_refused(
    tool: Callable[..., Any], tmp_path: Path, arguments: tuple[str, ...], place: str
) -> None:
    (tmp_path / "c").write_text("")
    ended = tool("fleet", "shard", *arguments)
    assert (ended.code, ended.error.place, bool(ended.error.hint)) == (2, place, True)
