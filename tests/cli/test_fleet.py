"""``ortbench fleet``: machines that are reached by Ansible, and those that are not."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.fleet.hosts import host, parcel, returned
from pytest_ortbench.fleet.hosts.facts import FleetRun, Host, HostOutcome
from pytest_ortbench.fleet.hosts.records import read_record
from pytest_ortbench.store.documents import load
from tests.inner_runs import CONFTEST
from tests.launch.ssh_server import ssh_server

pytestmark = [pytest.mark.live, pytest.mark.needs("git")]

SUITE = """
import pytest

@pytest.mark.ortbench(models="builtin:gbdt", batch_sizes=[1, 2])
def test_placement(ortbench):
    assert ortbench.placement().ratio == 1.0
"""
QUICK = (
    *("--ort-workers=1", "--ort-time=0.05", "--ort-yardstick=off"),
    *("-p", "no:benchmark", "-p", "no:cov", "-p", "no:xdist"),
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a suite, in which the tool is called."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    monkeypatch.chdir(folder)
    return folder


def _inventory(project: Path, hosts: dict[str, dict[str, Any]]) -> Path:
    path = project / "hosts.yml"
    path.write_text(json.dumps({"all": {"hosts": hosts}}))
    return path


def _local(folder: Path) -> dict[str, Any]:
    return {
        "ansible_connection": "local",
        "ortbench_folder": str(folder),
        "ortbench_python": sys.executable,
    }


def _outcomes(project: Path) -> dict[str, HostOutcome]:
    (record,) = (project / "results" / "fleet").glob("*/fleet.json")
    return read_record(record.parent, FleetRun).outcomes


def _with_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a machine find an environment that it made before: that of the tests."""
    made: dict[str, Any] = {}
    instructions = parcel.Parcel.instructions

    def keep(sent: parcel.Parcel, of: Host) -> str:
        text = instructions(sent, of)
        place = host.AgreedFolder(str(folder), "")
        environment = host.environment_folder(place, json.loads(text))
        (environment / "bin").mkdir(parents=True, exist_ok=True)
        python = environment / "bin" / "python"
        root = Path(__file__).parents[2]
        python.write_text(f'#!/bin/sh\nPYTHONPATH={root} exec {sys.executable} "$@"\n')
        python.chmod(0o700)
        (environment / "complete").write_text("")
        made[of.name] = environment
        return text

    monkeypatch.setattr(parcel.Parcel, "instructions", keep)


@pytest.mark.needs("sshd")
def test_machines_that_cant_measure_are_rows_with_their_stage(
    tool: Callable[..., Any], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project.parent / f"{project.name}-ssh"
    folder.mkdir()
    with ssh_server(folder) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and nobody listens
        wrong = folder / "wrong"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", wrong], check=True)
        public = wrong.with_suffix(".pub").read_text().split()
        (folder / "other").write_text(f"[localhost]:{server.port} {public[0]} {public[1]}\n")

        def reached(known: Path, **variables: Any) -> dict[str, Any]:
            return {
                "ansible_host": "127.0.0.1",
                "ansible_port": server.port,
                "ansible_ssh_common_args": f"-F none -o UserKnownHostsFile={known}",
                "ortbench_folder": str(folder / "agreed"),
                "ortbench_python": sys.executable,
                **variables,
            }

        configuration = f"[defaults]\nprivate_key_file = {server.key}\n"
        (project / "ansible.cfg").write_text(configuration)
        # Connections to one address are shared, so these three have different ones.
        hosts = {
            "silent": reached(server.known_hosts, ansible_port=closed.getsockname()[1]),
            "stranger": reached(folder / "other", ansible_host="localhost"),
            "unknown": reached(Path("/dev/null"), ansible_host="127.1"),
            "bare": reached(server.known_hosts, ortbench_python="/nonexistent/python3"),
            "full": reached(server.known_hosts),
        }
        monkeypatch.setattr(parcel, "ROOM_BYTES", 1 << 60)
        ended = tool("fleet", "run", "-i", _inventory(project, hosts), "--", "test_suite.py")
    outcomes = _outcomes(project)
    assert {name: (outcome.state, outcome.stage) for name, outcome in outcomes.items()} == {
        "silent": ("failed", "connect"),
        "stranger": ("failed", "connect"),
        "unknown": ("failed", "connect"),
        "bare": ("failed", "look"),
        "full": ("failed", "space"),
    }
    assert "refused" in outcomes["silent"].reason
    assert "/nonexistent/python3" in outcomes["bare"].reason
    assert ended.code == 3


def test_a_machine_measures_by_itself_and_goes_on_where_it_was_killed(
    tool: Callable[..., Any], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project.parent / "agreed"
    _with_environment(folder, monkeypatch)
    home = project.parent / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (project / "conftest.py").write_text(
        f"{CONFTEST}import os, pathlib, signal\n"
        "def pytest_runtest_logreport(report):\n"
        "    mark = pathlib.Path(os.environ['TMPDIR'], 'killed')\n"
        "    if report.when == 'teardown' and not mark.exists():\n"
        "        mark.write_text('')\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    inventory = _inventory(project, {"near": _local(folder)})
    arguments = ("fleet", "run", "-i", inventory, "--poll=0.5")
    ended = tool(*arguments, "--", "test_suite.py", *QUICK)
    outcome = _outcomes(project)["near"]
    assert (ended.code, outcome.state, outcome.stage) == (1, "partial", "measure")
    assert outcome.code == -signal.SIGKILL
    assert outcome.cases < outcome.expected == 2

    ended = tool(*arguments, "--resume")
    assert ended.code == 0, ended.err
    outcome = _outcomes(project)["near"]
    (document,) = (project / "results" / "fleet").glob("*/near/run.json")
    run = load(document)
    assert (outcome.state, outcome.run_id, run.resumed) == ("measured", run.run_id, 1)
    assert len({result.case.case_id for result in run.cases}) == len(run.cases) == 2
    assert outcome.clock_s == pytest.approx(0, abs=600)
    # The home of its user holds nothing of it, and a file crosses once.
    assert [path for path in home.rglob("*") if path.is_file()] == []
    (blob,) = (folder / "blobs").glob(hashlib.sha256(SUITE.encode()).hexdigest())
    assert blob.read_text() == SUITE


HOSTILE = """#!/bin/sh
results="$3/runs/$4/results/R"
case "$*" in
*"host.py missing"*) echo '{missing}' ;;
*"host.py prepare"* | *"host.py run"*) echo '{{"ok": true, "code": 0}}' ;;
*"host.py status"*)
    mkdir -p "$results"
    mkfifo "$results/journal.jsonl"
    echo '{{"ok": true, "state": "ended", "journal": "'"{journal}"'",' \\
        '"cases": "{template}", "expected": 1}}' ;;
*"host.py collect"*)
    {makes}
    cat <<END
{{"ok": true, "document": "{document}", "journal": "", "code": 0, "output": ""}}
END
    ;;
"")
    module=$(mktemp -p {folder})
    cat > "$module"
    if {lies} grep -q run.json "$module" && grep -q '"get_checksum": false' "$module"; then
        touch {folder}/lied
        echo '{{"changed": false, "stat": {{"exists": true, "isreg": true, "size": 1}}}}'
    else
        {python} - < "$module"
    fi ;;
*) exec {python} "$@" ;;
esac
"""
NOTHING_MISSES = '{"ok": true, "pack": false, "large": []}'


def test_hosts_that_answer_what_they_want_start_nothing_and_write_in_their_folder_only(
    tool: Callable[..., Any], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = project.parent / f"{project.name}-machines"
    machines.mkdir()
    mark = machines / "started"
    template = f'{{{{ lookup(\\"pipe\\", \\"touch {mark}\\") }}}}'
    secret = machines / "secret.json"
    secret.write_text("{}")
    monkeypatch.setattr(returned, "MOST_BYTES", 1 << 20)
    # What each answers as its journal, and as its document, and how it makes that.
    own = "$results/run.json"
    journals = {"large": "$results/" + "../" * 10 + "etc/passwd", "script": str(secret)}
    documents = {
        "template": (template, ":"),
        "script": (own, f'echo "touch {mark}" > "{own}"; chmod 700 "{own}"'),
        "large": (own, f'truncate -s 2M "{own}"'),
        "linked": (own, f'ln -s {secret} "{own}"'),
        "lying": (own, f'ulimit -S -f unlimited; truncate -s 64M "{own}"'),
        "asking": ("", ":"),
    }
    hosts = {}
    for name, (document, makes) in documents.items():
        python = machines / f"{name}-python"
        asks = '{"ok": true, "pack": false, "large": ["../../../../etc/passwd"]}'
        python.write_text(
            HOSTILE.format(
                missing=asks if name == "asking" else NOTHING_MISSES,
                document=document,
                makes=makes,
                journal=journals.get(name, "$results/journal.jsonl"),
                template=template,
                folder=machines,
                lies="" if name == "lying" else "false &&",
                python=sys.executable,
            )
        )
        python.chmod(0o700)
        # They are one machine, whose runs don't meet.
        hosts[name] = {**_local(machines / "agreed"), "ortbench_python": str(python)}
    before = set(project.iterdir())
    ended = tool("fleet", "run", "-i", _inventory(project, hosts), "--", "test_suite.py")
    outcomes = _outcomes(project)
    print(ended.out, ended.err)
    assert {name: (outcome.state, outcome.stage) for name, outcome in outcomes.items()} == {
        **dict.fromkeys(documents, ("failed", "fetch")),
        "script": ("failed", "read"),
        # Only so much of it came, which is no document.
        "lying": ("failed", "read"),
        "asking": ("failed", "send"),
    }
    assert ended.code == 3
    assert (mark.exists(), (machines / "lied").exists()) == (False, True)
    assert set(project.iterdir()) - before == {project / "hosts.yml", project / "results"}
    (kept,) = (project / "results" / "fleet").iterdir()
    sizes = {
        path.relative_to(kept).as_posix(): path.stat().st_size
        for path in kept.rglob("*")
        if path.is_file()
    }
    assert sizes.keys() == {"fleet.json", "script/run.json", "lying/run.json"}
    assert sizes["lying/run.json"] < 32 << 20


def test_what_runs_left_on_a_machine_is_removed(tool: Callable[..., Any], project: Path) -> None:
    for name in ("near", "mine"):
        (project / name / "runs" / "T1").mkdir(parents=True)
    (project / "mine" / "thesis.txt").write_text("")
    hosts = {name: _local(project / name) for name in ("near", "mine")}
    ended = tool("fleet", "clean", "-i", _inventory(project, hosts))
    assert ended.code == 1, ended.err
    assert not (project / "near").exists()
    assert [path.name for path in (project / "mine").iterdir()] == ["thesis.txt"]


def test_an_interrupted_run_leaves_no_process_on_its_machines(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project.parent / "agreed"
    (project / "conftest.py").write_text(
        "import time\ndef pytest_collection_finish(session):\n    time.sleep(600)\n"
    )
    inventory = _inventory(project, {"near": _local(folder)})
    starts = (
        "import sys, pytest\n"
        "from pathlib import Path\n"
        "from tests.cli.test_fleet import _with_environment\n"
        "from pytest_ortbench.cli.application import run\n"
        f"_with_environment(Path({str(folder)!r}), pytest.MonkeyPatch())\n"
        f"sys.exit(run(['fleet', 'run', '-i', {str(inventory)!r}, '--poll=0.5', '--', "
        "'test_suite.py']))\n"
    )
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", starts],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        ends = time.monotonic() + 300
        while not (records := list(folder.glob("runs/*/process.json"))):
            assert process.poll() is None
            assert time.monotonic() < ends
            time.sleep(0.1)
        pid = json.loads(records[0].read_text())["pid"]
        # As where a terminal closes; what it does is what SIGTERM and Ctrl-C do.
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=300) == 130
    finally:
        process.kill()
    place = host.AgreedFolder(str(folder), records[0].parent.name)
    assert host._working(place) == []
    assert host._start_of(pid) == ""


def test_a_call_that_can_not_be_is_refused(tool: Callable[..., Any], project: Path) -> None:
    inventory = _inventory(project, {"near": _local(project.parent / "agreed")})
    ended = tool("fleet", "run", "-i", inventory)
    assert (ended.code, ended.error.place, bool(ended.error.hint)) == (2, "fleet run", True)
