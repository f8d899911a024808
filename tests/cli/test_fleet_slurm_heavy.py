"""The script of the guide, sent by ``sbatch`` to a Slurm of two nodes; what it left is compared.

It starts munged, slurmctld and two slurmd of Debian's slurm-wlm on the loopback, configured
for themselves, and needs root.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.fleet.hosts.facts import FleetRun
from pytest_ortbench.fleet.hosts.records import read_record
from tests.cli.test_fleet import QUICK, SUITE
from tests.cli.test_fleet_collect import COSTS
from tests.fleet.recipes import recipe

pytestmark = [pytest.mark.heavy, pytest.mark.needs("slurm")]

ROOT = Path(__file__).parents[2]
NODES = ("node-1", "node-2")
CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=500"


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@pytest.fixture
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Run a Slurm of two nodes; yields the environment in which its commands find it."""
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o600)
    controller, *ports = _free_ports(1 + len(NODES))
    host = socket.gethostname().partition(".")[0]
    nodes = [
        NODE.format(node=node, host=host, port=port)
        for node, port in zip(NODES, ports, strict=True)
    ]
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(
            host=host, nodes="\n".join(nodes), folder=folder, controller=controller
        )
    )
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    with ExitStack() as stack:

        def start(*command: str) -> None:
            path = shutil.which(command[0], path=f"{os.environ['PATH']}:/usr/sbin")
            assert path is not None
            log = stack.enter_context((folder / f"{Path(path).name}.log").open("ab"))
            process = subprocess.Popen(
                [path, *command[1:]], env=environment, stdout=log, stderr=log
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)

        start(
            *("munged", "--foreground", "--force", f"--socket={folder}/munge.socket"),
            *(f"--key-file={folder}/key", f"--pid-file={folder}/munge.pid"),
            *(f"--seed-file={folder}/munge.seed", f"--log-file={folder}/munge.log"),
        )
        _until(lambda: (folder / "munge.socket").exists())
        start("slurmctld", "-D")
        for node in NODES:
            start("slurmd", "-D", "-N", node)
        _until(lambda: _told(environment, "sinfo", "-h", "-o", "%t %D").split() == ["idle", "2"])
        yield environment


def _until(holds: Callable[[], bool], most_s: float = 120.0) -> None:
    ends = time.monotonic() + most_s
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.2)


def _told(environment: dict[str, str], *command: str) -> str:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout


def test_a_suite_sent_by_sbatch_ends_with_a_document_that_is_collected(
    tool: Callable[..., Any],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    slurm: dict[str, str],
) -> None:
    shared = tmp_path_factory.mktemp("shared")
    activate = shared / "ortbench" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    activate.write_text(
        f"export PATH={Path(sys.executable).parent}:$PATH PYTHONPATH={ROOT}\n"
        f"export ORTBENCH_MACHINE_LOCK={shared / 'turns.lock'} PYTEST_ADDOPTS='{' '.join(QUICK)}'\n"
    )
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    script = recipe("Slurm", "bash").replace("/shared", str(shared)).replace("0-3", "0-1")
    (tmp_path / "suite.sh").write_text(script)
    sent = subprocess.run(
        ["sbatch", "suite.sh"], cwd=tmp_path, env=slurm, capture_output=True, text=True, check=False
    )
    assert sent.returncode == 0, sent.stderr
    _until(lambda: _told(slurm, "squeue", "-h") == "", most_s=3000)
    logs = [path.read_text() for path in tmp_path.glob("slurm-*.out")]
    print(logs)
    (tmp_path / "machines.toml").write_text(
        "".join(f"[machines.{node}]\nprice = 1000\n" for node in NODES)
    )
    ended = tool("fleet", "collect", shared / "results", *COSTS)
    print(ended.out, ended.err)
    assert ended.code == 0
    (record,) = (tmp_path / "results" / "fleet").glob("*/fleet.json")
    outcomes = read_record(record.parent, FleetRun).outcomes
    came = {name: (outcome.state, outcome.cases) for name, outcome in outcomes.items()}
    assert came == dict.fromkeys(NODES, ("measured", 2))
    assert " 1000 " in ended.out
