"""``ortbench fleet run`` on three machines behind sshd, with environments that they make.

One has another release of ONNX Runtime, one is killed in the middle, one has a clock an hour off.
It needs the network, sshd, and Debian's faketime.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.fleet.hosts.facts import FleetRun
from pytest_ortbench.fleet.hosts.records import read_record
from pytest_ortbench.store.documents import load
from tests.cli.test_fleet import _inventory, project  # noqa: F401
from tests.launch.ssh_server import SshServer, ssh_server

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.needs("sshd"),
    pytest.mark.needs("network"),
    pytest.mark.needs("faketime"),
]

NAMES = ("desk", "rack", "edge")


@pytest.fixture
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SshServer]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(ssh_server(tmp_path_factory.mktemp(name))) for name in NAMES
        }


def _reached(server: SshServer, folder: Path, **variables: Any) -> dict[str, Any]:
    return {
        "ansible_host": "127.0.0.1",
        "ansible_port": server.port,
        "ansible_ssh_private_key_file": str(server.key),
        "ansible_ssh_common_args": f"-F none -o UserKnownHostsFile={server.known_hosts}",
        "ortbench_folder": str(folder),
        "ortbench_python": sys.executable,
        **variables,
    }


def _kill_once_it_has_a_case(folder: Path) -> None:
    """Kill the pytest of a machine with its workers, once its journal has a case."""
    while not any(
        path.read_bytes().count(b"\n") > 1 for path in folder.glob("runs/*/results/*/journal.jsonl")
    ):
        time.sleep(0.05)
    for path in Path("/proc").glob("[0-9]*"):
        try:
            variables = (path / "environ").read_bytes()
        except OSError:
            continue
        if b"TMPDIR=" + os.fsencode(str(folder)) in variables:
            os.kill(int(path.name), 9)


def test_three_machines_end_with_one_comparison(
    tool: Callable[..., Any],
    project: Path,  # noqa: F811
    servers: dict[str, SshServer],
) -> None:
    late = project / "late-python"
    late.write_text(f'#!/bin/sh\nexec faketime -f +1h {sys.executable} "$@"\n')
    late.chmod(0o700)
    machines = project.parent / f"{project.name}-machines"
    folders = {name: machines / name for name in NAMES}
    further: dict[str, dict[str, Any]] = {
        "rack": {"ortbench_runtime": "onnxruntime==1.20.1"},
        "edge": {"ortbench_python": str(late)},
    }
    inventory = _inventory(
        project,
        {name: _reached(servers[name], folders[name], **further.get(name, {})) for name in NAMES},
    )
    # They are one machine, so they take turns, but wait for nobody else.
    (project / "conftest.py").write_text(
        f"import os\nos.environ['ORTBENCH_MACHINE_LOCK'] = {str(machines / 'turns.lock')!r}\n"
    )
    killer = threading.Thread(target=_kill_once_it_has_a_case, args=(folders["desk"],))
    killer.start()
    arguments = ("fleet", "run", "-i", inventory, "--poll=1")
    ended = tool(*arguments, "--", "test_suite.py", "--ort-workers=2", "--ort-time=1")
    killer.join()
    (record,) = (project / "results" / "fleet").glob("*/fleet.json")
    outcomes = read_record(record.parent, FleetRun).outcomes
    print(ended.out, ended.err, json.dumps({k: v.reason for k, v in outcomes.items()}))
    assert ended.code == 1
    assert {name: outcome.state for name, outcome in outcomes.items()} == {
        "desk": "partial",
        "rack": "measured",
        "edge": "measured",
    }
    assert outcomes["edge"].clock_s == pytest.approx(3600, abs=60)

    ended = tool(*arguments, "--resume")
    print(ended.out, ended.err)
    assert ended.code == 0
    runs = {name: load(record.parent / name / "run.json") for name in NAMES}
    ids = {name: [result.case.case_id for result in run.cases] for name, run in runs.items()}
    assert all(len(set(cases)) == len(cases) == 2 for cases in ids.values())
    versions = {
        name: [info.version for info in run.runtimes.values()] for name, run in runs.items()
    }
    assert versions["rack"] == ["1.20.1"]
    # Nothing of any machine's run is left running.
    for name, folder in folders.items():
        left = [
            path
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if os.fsencode(str(folder)) in path.read_bytes()
        ]
        assert left == [], name


def test_thirty_machines_cost_the_collecting_one_little() -> None:
    program = Path(__file__).parents[2] / "benchmarks" / "fleet_hosts.py"
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0
