"""What a large matrix costs to collect, and what the pytest process does while a worker measures.

    python benchmarks/collection.py

Collects 10,000 cases of one small model (batch sizes 1 to 10,000) in a process of its own and
prints time and peak resident size beside a collection of one case; then measures one case and
prints which share of a core the pytest process used meanwhile. Exit status 1 if a limit is missed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASES = 10_000
LIMIT_S = 5.0
LIMIT_BYTES = 300e6
LIMIT_SHARE = 0.02
MEASURED_S = 6.0
_COLLECT = ("--collect-only", "-q", "--ort-models=builtin:gbdt")

#: Runs pytest in this process and reports what it used; CPU time without that of its children.
_REPORT = """
import json, resource, sys, time
import pytest
started, cpu = time.monotonic(), time.process_time()
status = pytest.main(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_SELF)
facts = {
    "status": int(status),
    "wall_s": time.monotonic() - started,
    "cpu_s": time.process_time() - cpu,
    "peak_bytes": used.ru_maxrss * 1024,
}
open(sys.argv[1], "w").write(json.dumps(facts))
"""

_SHARE = """
import time

def test_it(ortbench):
    cpu, wall = time.process_time(), time.monotonic()
    ortbench.result
    share = (time.process_time() - cpu) / (time.monotonic() - wall)
    open("share.txt", "w").write(str(share))
"""


def main() -> int:
    """Run the benchmark; return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "test_it.py").write_text("def test_it(ortbench): ortbench.result\n")
        one = _run(project, *_COLLECT)
        sizes = ",".join(str(size) for size in range(1, CASES + 1))
        many = _run(project, *_COLLECT, f"--ort-batch-sizes={sizes}")
        added = many["wall_s"] - one["wall_s"]
        print(f"collecting 1 case        {one['wall_s']:.2f} s, {one['peak_bytes'] / 1e6:.0f} MB")
        peak = many["peak_bytes"] / 1e6
        print(f"collecting {CASES:,} cases   {many['wall_s']:.2f} s, {peak:.0f} MB")
        print(f"a case                   {added / CASES * 1e6:.0f} µs")
        share = _host_share(project, "builtin:bert_tiny")
        print(f"the pytest process while bert_tiny is measured   {share:.1%} of a core")
        # The hardest case counts too: half a million samples have to be read and sorted here.
        tiny = _host_share(project, "builtin:gbdt")
        print(f"likewise gbdt, with 12 µs an inference           {tiny:.1%} of a core")
    kept = (
        many["wall_s"] < LIMIT_S
        and many["peak_bytes"] < LIMIT_BYTES
        and max(share, tiny) < LIMIT_SHARE
    )
    print(
        "kept" if kept else "MISSED",
        f"(limits: {LIMIT_S:g} s, {LIMIT_BYTES / 1e6:g} MB, {LIMIT_SHARE:.0%})",
    )
    return 0 if kept else 1


def _host_share(project: Path, model: str) -> float:
    """CPU time of the pytest process per wall time, over the measuring of one case.

    The second of two equal cases counts: by then everything that is needed is imported.
    """
    (project / "test_it.py").write_text(_SHARE)
    _run(
        project,
        "-q",
        f"--ort-models={model}",
        "--ort-batch-sizes=1,2",
        "--ort-workers=1",
        f"--ort-time={MEASURED_S}",
        "--ort-target=0.000001",
        # Its turns have a benchmark of their own.
        "--ort-yardstick=off",
        "--ort-no-results",
    )
    return float((project / "share.txt").read_text())


def _run(project: Path, *arguments: str) -> dict[str, float]:
    facts = project / "facts.json"
    command = [sys.executable, "-c", _REPORT, str(facts), *arguments]
    subprocess.run(
        [*command, "-p", "no:cacheprovider"], cwd=project, check=True, stdout=subprocess.DEVNULL
    )
    found: dict[str, float] = json.loads(facts.read_text())
    if found["status"] != 0:
        raise SystemExit(f"pytest {' '.join(arguments)[:80]} ended with {found['status']}")
    return found


if __name__ == "__main__":
    started = time.monotonic()
    status = main()
    print(f"took {time.monotonic() - started:.0f} s")
    sys.exit(status)
