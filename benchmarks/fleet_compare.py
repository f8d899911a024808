"""What a comparison of many machines costs, by the number of their documents.

    python benchmarks/fleet_compare.py [--documents 30,100,300]

Stores copies of a real document (results/example) under names of their own, and
runs ``ortbench compare --by=machine`` over them, and again with prices, each
in a process of its own whose limit of documents is lifted. Prints the bytes of a document, CPU
seconds, and the peak of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
DOCUMENT = ROOT / "results" / "example" / "run.json"
_PRICES = ("--machines=machines.toml", "--rate=500/s", "--p99=1s")

#: Runs the tool without a limit of documents, and tells what that took.
_MEASURED = """
import json, resource, sys
from pytest_ortbench.cli import compare
from pytest_ortbench.cli.application import run
compare.MOST_RUNS = 10**6
code = run(sys.argv[2:])
took = resource.getrusage(resource.RUSAGE_SELF)
json.dump([code, took.ru_utime + took.ru_stime, took.ru_maxrss * 1024], open(sys.argv[1], "w"))
"""


def store_documents(folder: Path, count: int) -> list[str]:
    """Store documents of several machines, and their prices; return what compare calls them."""
    from pytest_ortbench.store.documents import load
    from pytest_ortbench.store.folder import write_document

    run = load(DOCUMENT)
    sides = []
    for name in (f"host-{number}" for number in range(count)):
        machine = replace(run.machine, host=name)
        own = replace(run, run_id=run.run_id.replace("example", name), machine=machine)
        path = folder / name / "run.json"
        write_document(own, path)
        sides.append(f"{name}={path}")
    prices = [f"[machines.host-{number}]\nprice = {1000 + number}\n" for number in range(count)]
    (folder / "machines.toml").write_text("".join(prices))
    return sides


def measure(folder: Path, *arguments: str) -> tuple[int, float, int]:
    """Return exit status, CPU seconds and bytes of one call of the tool."""
    told = folder / "told.json"
    subprocess.run(
        [sys.executable, "-c", _MEASURED, str(told), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    code, seconds, memory = json.loads(told.read_text())
    return code, seconds, memory


def main() -> int:
    """Measure and print; exit status 1 if a comparison failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", default="30,100,300")
    asked = parser.parse_args()
    print("documents  MB a document  command                   CPU     memory")
    failed = False
    for count in map(int, asked.documents.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            sides = store_documents(folder, count)
            size = (folder / "host-0" / "run.json").stat().st_size / 1e6
            for title, options in (("compare", ()), ("compare, with prices", _PRICES)):
                code, seconds, memory = measure(folder, "compare", "--by=machine", *options, *sides)
                failed |= code != 0
                took = f"{seconds:7.1f} s  {memory / 1e6:5.0f} MB"
                print(f"{count:9}  {size:13.2f}  {title:20}  {took}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
