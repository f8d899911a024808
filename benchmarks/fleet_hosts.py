"""What ``ortbench fleet run`` costs on the collecting machine, by the number of machines.

    python benchmarks/fleet_hosts.py [--machines 30] [--most-cpu-s 120] [--most-mb 500]

Each machine stands behind a program in the place of ssh that runs the command here; its uv makes an
environment whose Python stores a real document (results/example) in place of measuring. All else is
as it is for users: Ansible, files by digest, polling, fetching, the comparison. Prints the CPU
seconds of our own process, of Ansible's, and of what the machines would have run themselves, and
the peak of our own memory; exit status 1 if our own is above a limit or a machine did not end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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
times | tail -1 >> {folder}/times.$$
exit $code
"""
#: Makes an environment whose Python stores a document under a name of its own.
_UV = """#!/bin/sh
[ "$1" = venv ] || exit 0
for folder; do :; done
mkdir -p "$folder/bin"
cat > "$folder/bin/python" <<'END'
#!/bin/sh
for argument; do case $argument in --ort-results=*) results=${{argument#*=}} ;; esac; done
name=$(echo "$results" | sed 's:.*/machines/\\([^/]*\\)/.*:\\1:')
mkdir -p "$results/run"
sed "s/\\"run_id\\": \\"/&$name-/" {document} > "$results/run/run.json"
END
chmod 700 "$folder/bin/python"
"""


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


def measure(count: int, folder: Path) -> dict[str, float]:
    """Send a suite to machines behind the stub, and return what that cost."""
    tools, project = folder / "tools", folder / "project"
    for path in (tools, project, folder / "times"):
        path.mkdir(parents=True)
    ssh = _program(tools / "ssh", _SSH.format(folder=folder / "times"))
    _program(tools / "uv", _UV.format(document=DOCUMENT))
    (project / "test_suite.py").write_text("def test_nothing(): pass\n")
    hosts = {
        f"host-{number}": {
            "ansible_ssh_executable": str(ssh),
            "ansible_ssh_transfer_method": "piped",
            "ortbench_folder": str(folder / "machines" / f"host-{number}"),
            "ortbench_python": sys.executable,
        }
        for number in range(count)
    }
    (project / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))
    told = folder / "told.json"
    began = time.monotonic()
    done = subprocess.run(
        [
            *(sys.executable, "-c", _MEASURED, str(told)),
            *("fleet", "run", "-i", "hosts.yml", "--poll=1", "--", "test_suite.py"),
        ],
        cwd=project,
        env={
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    facts: dict[str, float] = json.loads(told.read_text())
    facts["wall_s"] = time.monotonic() - began
    facts["machines_s"] = sum(
        _seconds(line)
        for path in (folder / "times").iterdir()
        for line in path.read_text().splitlines()
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
    print(f"machines' own work  {facts['machines_s']:.1f} s CPU")
    sound = facts["code"] == 0 and facts["documents"] == asked.machines and facts["compared"]
    within = facts["own_s"] <= asked.most_cpu_s and facts["own_bytes"] <= asked.most_mb * 1e6
    return 0 if sound and within else 1


if __name__ == "__main__":
    sys.exit(main())
