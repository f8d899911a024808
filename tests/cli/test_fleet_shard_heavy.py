"""200 cases over four workers with certificates, one of which is killed while it measures."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.store.documents import load
from tests.cli.test_fleet import QUICK
from tests.cli.test_fleet_shard import processes_of
from tests.fleet.dask_workers import dask_workers
from tests.fleet.product_models import save_product
from tests.inner_runs import CONFTEST

pytestmark = [pytest.mark.heavy, pytest.mark.needs("openssl")]

MODELS, BATCHES = 20, 10
SUITE = f"""
import pytest

@pytest.mark.ortbench(
    models=[f"m{{number}}.onnx" for number in range({MODELS})],
    batch_sizes=list(range(1, {BATCHES} + 1)),
)
def test_latency(ortbench):
    assert ortbench.case
"""
#: The pytest of worker ``w2`` kills it at its fifth case.
KILLER = """
import os, pathlib, signal, time
cases = []
def pytest_runtest_logreport(report):
    if report.when == "teardown":
        cases.append(report.nodeid)
    parent = pathlib.Path(f"/proc/{os.getppid()}/cmdline").read_bytes()
    if len(cases) == 5 and b"--name=w2" in parent:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
"""


def certificate(folder: Path) -> tuple[str, str]:
    """Make a certificate that vouches for itself, and its key."""
    cert, key = folder / "node.pem", folder / "node.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=node", "-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    return str(cert), str(key)


def test_every_case_stands_once_in_one_document(
    tool: Callable[..., Any], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    machine = tmp_path_factory.mktemp("machine")
    for number in range(MODELS):
        save_product(tmp_path / f"m{number}.onnx", seed=number)
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text(CONFTEST + KILLER)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    cert, key = certificate(machine)
    agreed = machine / "agreed"
    options = ("--protocol=tls", f"--tls-ca-file={cert}", f"--tls-cert={cert}", f"--tls-key={key}")
    names = [f"w{number}" for number in range(4)]
    with dask_workers(machine, names, *options) as cluster:
        assert cluster.address.startswith("tls://")
        ended = tool(
            *("fleet", "shard", f"--scheduler={cluster.address}", f"--folder={agreed}"),
            *(f"--tls-ca={cert}", f"--tls-cert={cert}", f"--tls-key={key}"),
            *("--", "test_suite.py", *QUICK),
        )
        dead = [name for name, process in cluster.workers.items() if process.poll() is not None]
    print(ended.out, ended.err)
    assert (ended.code, dead) == (0, ["w2"])
    (path,) = (tmp_path / "results").glob("*/run.json")
    run = load(path)
    keys = {(result.case.model.name, result.case.batch) for result in run.cases}
    assert len(keys) == len(run.cases) == run.expected == MODELS * BATCHES
    (lost,) = (shard for shard in run.shards if shard.state == "interrupted")
    assert lost.worker == "w2"
    again = {shard.models: shard.worker for shard in run.shards if shard.state == "measured"}
    assert len(again) == MODELS
    assert again[lost.models] != "w2"
    assert processes_of(agreed) == []
    assert list((agreed / "runs").iterdir()) == []
