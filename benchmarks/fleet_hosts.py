"""What ``ortbench fleet run`` costs on the collecting machine, by the number of machines.

    python benchmarks/fleet_hosts.py [--machines 30] [--most-cpu-s 120] [--most-mb 500]

Each machine stands behind a program in the place of ssh that runs the command here. Its Python is a
stub that answers as Ansible's modules and our program would, counts some cases, and has a real
document and journal (results/example) in place of measuring. All else is as it is for users:
Ansible, files by digest, polling, fetching, the comparison. Prints the CPU seconds of our own
process, of Ansible's and of the stubs, and the peak of our own memory; exit status 1 if our own is
above a limit, or the document of a machine is not there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
DOCUMENT = ROOT / "results" / "example" / "run.json"

#: Runs the tool, and notes CPU seconds of this process and of all that it waited for, and memory.
_MEASURED = """
import json, resource, sys
from pytest_ortbench.cli.application import run
code = run(sys.argv[2:])
own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
json.dump(
    {
        "own_s": own.ru_utime + own.ru_stime,
        "others_s": others.ru_utime + others.ru_stime,
        "own_bytes": int(status["VmHWM"].split()[0]) * 1024,
        "largest_other_bytes": others.ru_maxrss * 1024,
    },
    open(sys.argv[1], "w"),
)
sys.exit(code)
"""
#: Runs the last argument, as sshd does, and notes what that took.
_SSH = """#!/bin/bash
sh -c "${{@: -1}}"
code=$?
times > {folder}/$$
exit $code
"""
#: Answers our program's calls, and modules of Ansible: those that copy, look at a file, or start
#: something.
_PYTHON = r"""#!/bin/sh
file() {{ printf '{{"changed": false, "stat": {{"exists": true, "isdir": false, "isreg": true, '
    printf '"islnk": false, "size": %s, "checksum": "%s"}}}}\n' "$1" "$2"; }}
if [ "$1" = -c ]; then
    mkdir -p {folder}/runs/$5/results {folder}/tmp
    mv {folder}/stored {folder}/runs/$5/results/run
    echo '{{"ok": true, "folder": "{folder}", "clock": '$(date +%s)'}}'
    exit
fi
case $1 in
*async_wrapper*) echo '{{"started": 1, "finished": 0, "ansible_job_id": "j1"}}'; exit ;;
esac
results=$(echo {folder}/runs/*/results/run)
case "$*" in
*"host.py missing"*) echo '{{"ok": true, "pack": true, "large": ["{large}"]}}'; exit ;;
*"host.py prepare"*) echo '{{"ok": true, "python": "python"}}'; exit ;;
*"host.py status"*)
    echo >> {folder}/looks
    looks=$(wc -l < {folder}/looks)
    [ $looks -ge {looks} ] && state=ended || {{ state=running; sleep 1; }}
    echo '{{"ok": true, "state": "'$state'", "journal": "'$results/journal.jsonl'", "cases":'$looks\
', "expected": {looks}, "output": ""}}'
    exit ;;
*"host.py collect"*)
    echo '{{"ok": true, "document": "'$results/run.json'", "journal": "", "code": 0}}'
    exit ;;
esac
asked=$(grep -a '^params=' "${{1:--}}")
case $asked in
*get_checksum*journal.jsonl* | *journal.jsonl*get_checksum*) file {journal} ;;
*get_checksum*run.json* | *run.json*get_checksum*) file {document} ;;
*get_checksum*) echo '{{"changed": false, "stat": {{"exists": false}}}}' ;;
*) echo '{{"changed": true}}' ;;
esac
"""
#: Looks at a run until it has ended: one round, and some of the next.
_LOOKS = 8


def _program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o700)
    return path


def _seconds(text: str) -> float:
    """Read what the shell's ``times`` prints of its children: ``0m1.230s 0m0.120s``."""
    total = 0.0
    for field in text.split():
        minutes, _, seconds = field.rstrip("s").partition("m")
        total += int(minutes) * 60 + float(seconds)
    return total


def _size_and_digest(path: Path) -> str:
    content = path.read_bytes()
    return f"{len(content)} {hashlib.sha1(content, usedforsecurity=False).hexdigest()}"


def _machine(folder: Path, name: str, large: str) -> Path:
    """Store a document and a journal of a machine; return the stub of its Python."""
    from pytest_ortbench.schema.document import encode_header, encode_result
    from pytest_ortbench.store.documents import load
    from pytest_ortbench.store.folder import write_document

    run = load(DOCUMENT)
    machine = replace(run.machine, host=name)
    run = replace(run, run_id=run.run_id.replace("example", name), machine=machine)
    document, journal = (folder / "stored" / file for file in ("run.json", "journal.jsonl"))
    write_document(run, document)
    half = run.cases[: len(run.cases) // 2]
    journal.write_bytes(encode_header(run) + b"".join(map(encode_result, half)))
    text = _PYTHON.format(
        folder=folder,
        large=large,
        looks=_LOOKS,
        journal=_size_and_digest(journal),
        document=_size_and_digest(document),
    )
    return _program(folder / "python", text)


def measure(count: int, folder: Path) -> dict[str, float]:
    """Send a suite to machines behind the stub, and return what that cost."""
    from pytest_ortbench.fleet.hosts.parcel import own_wheel, sent_file

    project = folder / "project"
    for path in (project, folder / "times"):
        path.mkdir(parents=True)
    wheel = own_wheel(folder)
    ssh = _program(folder / "ssh", _SSH.format(folder=folder / "times"))
    (project / "test_suite.py").write_text("def test_nothing(): pass\n")
    hosts = {}
    for name in (f"host-{number}" for number in range(count)):
        place = folder / "machines" / name
        hosts[name] = {
            "ansible_ssh_executable": str(ssh),
            "ansible_ssh_transfer_method": "piped",
            "ortbench_folder": str(place),
            "ortbench_python": str(_machine(place, name, sent_file(wheel, "").digest)),
        }
    (project / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))
    told = folder / "told.json"
    began = time.monotonic()
    done = subprocess.run(
        [
            *(sys.executable, "-c", _MEASURED, str(told)),
            *("fleet", "run", "-i", "hosts.yml", "--poll=1", f"--wheel={wheel}"),
            *("--", "test_suite.py"),
        ],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    facts: dict[str, float] = json.loads(told.read_text())
    facts["wall_s"] = time.monotonic() - began
    facts["machines_s"] = sum(
        _seconds(path.read_text().splitlines()[-1]) for path in (folder / "times").iterdir()
    )
    facts["ansible_s"] = facts.pop("others_s") - facts["machines_s"]
    facts["code"] = done.returncode
    facts["documents"] = len(list(project.glob("results/fleet/*/*/run.json")))
    facts["compared"] = f"of {count} machines" in done.stdout
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:])
    return facts


def main() -> int:
    """Measure, print, and hold the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=30)
    parser.add_argument("--most-cpu-s", type=float, default=120.0)
    parser.add_argument("--most-mb", type=float, default=500.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        facts = measure(asked.machines, Path(folder))
    print(f"machines            {asked.machines}, documents {facts['documents']:.0f}")
    print(f"wall                {facts['wall_s']:.1f} s")
    print(f"own process         {facts['own_s']:.1f} s CPU, {facts['own_bytes'] / 1e6:.0f} MB")
    print(
        f"Ansible             {facts['ansible_s']:.1f} s CPU, largest process "
        f"{facts['largest_other_bytes'] / 1e6:.0f} MB"
    )
    print(f"stubs of machines   {facts['machines_s']:.1f} s CPU")
    sound = facts["code"] == 0 and facts["documents"] == asked.machines and facts["compared"]
    within = facts["own_s"] <= asked.most_cpu_s and facts["own_bytes"] <= asked.most_mb * 1e6
    return 0 if sound and within else 1


if __name__ == "__main__":
    sys.exit(main())
