"""Cold start of a service: from the start of the process to its first answer, in a small container.

    python benchmarks/cold_start.py MODEL [--memory 512] [--cpus 0.5] [--starts 5]

The process of ``ortbench serve`` is put into a control group of its own with this memory (MiB) and
this share of the CPUs before it runs its first instruction, as a serverless platform does it; this
needs root, and control groups of version 1 or 2. Files are in the page cache after the first start,
which is named apart. Prints when the port was listened on, and when the first answer was whole.
"""

from __future__ import annotations

import argparse
import http.client
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from served import NAME, PATH, sessions_of

ROOT = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000
_MIB = 2**20


def settings(memory_mib: float, cpus: float) -> Mapping[Path, Mapping[str, str]]:
    """Return the control groups to be made, each with its files, for the version that is here."""
    memory, quota = str(int(memory_mib * _MIB)), str(int(cpus * _PERIOD_US))
    name = f"ortbench-cold-{os.getpid()}"
    if (ROOT / "cgroup.controllers").exists():
        files = {"memory.max": memory, "memory.swap.max": "0", "cpu.max": f"{quota} {_PERIOD_US}"}
        return {ROOT / name: files}
    return {
        ROOT / "memory" / name: {"memory.limit_in_bytes": memory},
        ROOT / "cpu" / name: {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": quota},
    }


@contextmanager
def small_container(memory_mib: float, cpus: float) -> Iterator[tuple[Path, ...]]:
    """Make the control groups, and remove them when they are empty."""
    wanted = settings(memory_mib, cpus)
    try:
        for folder, files in wanted.items():
            folder.mkdir()
            for name, value in files.items():
                (folder / name).write_text(value, encoding="ascii")
        yield tuple(wanted)
    finally:
        for folder in wanted:
            if folder.exists():
                folder.rmdir()


def start_once(
    model: str, message: tuple[bytes, dict[str, str]], groups: tuple[Path, ...]
) -> tuple[float, float, int]:
    """Return seconds to the open port and to the first answer, and the peak of memory in bytes."""

    def enter() -> None:
        for folder in groups:
            (folder / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

    command = [sys.executable, "-m", "pytest_ortbench.cli", "serve", model, "--port=0"]
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, f"--name={NAME}", "--threads=1"],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=enter,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        listening = time.perf_counter()
        if not line:
            raise SystemExit("the service ended before it listened: too little memory?")
        port = int(
            next(word for word in line.split() if "http" in word).split(":")[2].split("/")[0]
        )
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            connection.request("POST", PATH, *message)
            answer = connection.getresponse()
            answer.read()
        answered = time.perf_counter()
        if answer.status != 200:
            raise SystemExit(f"{PATH} gave {answer.status}")
        peaks = [
            int((folder / name).read_text())
            for folder in groups
            for name in ("memory.peak", "memory.max_usage_in_bytes")
            if (folder / name).exists()
        ]
        return listening - began, answered - began, max(peaks, default=0)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--memory", type=float, default=512, help="MiB")
    parser.add_argument("--cpus", type=float, default=0.5)
    parser.add_argument("--starts", type=int, default=5)
    args = parser.parse_args()
    _, message = sessions_of(args.model)
    listened, answered, peaks = [], [], []
    for _ in range(args.starts):
        with small_container(args.memory, args.cpus) as groups:
            for seconds, numbers in zip(
                start_once(args.model, message, groups), (listened, answered, peaks), strict=True
            ):
                numbers.append(seconds)
    print(f"{args.model}, {args.memory:g} MiB, {args.cpus:g} CPU, {args.starts} starts")
    for name, numbers in (("listening", listened), ("first answer", answered)):
        first, *rest = numbers
        others = rest or numbers
        print(
            f"{name:13} first {first:.2f} s, median of others {statistics.median(others):.2f} s "
            f"[{min(others):.2f}, {max(others):.2f}]"
        )
    if any(peaks):
        print(f"memory of the container, page cache included: at most {max(peaks) / _MIB:.0f} MiB")


if __name__ == "__main__":
    main()
