"""What the plugin costs a project that has it installed but no ONNX test.

    python benchmarks/plugin_start.py [--pairs 20]

Starts pytest on one trivial test, with the plugin and with ``-p no:ortbench``, in turn, and the
order within a pair swapped each time, so that drift of the machine falls on both alike. Prints the
median of the paired differences with its 95 % interval by order statistics; exit status 1 if the
median is above the limit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

LIMIT_S = 0.050
ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20, help="interleaved pairs (default: 20)")
    pairs = parser.parse_args().pairs
    installed = any(e.name == "ortbench" for e in metadata.entry_points(group="pytest11"))
    with_it = [] if installed else ["-p", "pytest_ortbench.plugin"]
    without_it = ["-p", "no:ortbench"] if installed else []
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "test_trivial.py").write_text("def test_it(): pass\n", encoding="utf-8")
        for arguments in (with_it, without_it):
            _start(project, arguments)  # writes the byte code, and is not counted
        differences: list[float] = []
        plain: list[float] = []
        for pair in range(pairs):
            order = (with_it, without_it) if pair % 2 else (without_it, with_it)
            took = [_start(project, arguments) for arguments in order]
            with_s, without_s = took if pair % 2 else reversed(took)
            differences.append(with_s - without_s)
            plain.append(without_s)
    median = statistics.median(differences)
    low, high = _interval(differences)
    print(
        f"pytest start {statistics.median(plain) * 1e3:.0f} ms; the plugin adds "
        f"{median * 1e3:.1f} ms [{low * 1e3:.1f}, {high * 1e3:.1f}], median of {pairs} "
        f"interleaved pairs; limit {LIMIT_S * 1e3:.0f} ms"
    )
    return 0 if median < LIMIT_S else 1


def _start(project: Path, arguments: list[str]) -> float:
    """Seconds of one whole pytest process."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    # An installed package has its byte code; here it goes where the project goes afterwards.
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": str(project / "bytecode"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    subprocess.run(command, cwd=project, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _interval(values: list[float]) -> tuple[float, float]:
    """Interval of the median by order statistics, at least 95 % (the extremes for few values)."""
    from math import comb

    ordered, count = sorted(values), len(values)
    rank, below = 0, 0.0
    # The rank-th smallest and largest bound the median unless `rank` or fewer lie on one side.
    while rank < count // 2:
        below += comb(count, rank) / 2**count
        if below > 0.025:
            break
        rank += 1
    first = max(rank - 1, 0)
    return ordered[first], ordered[count - 1 - first]


if __name__ == "__main__":
    sys.exit(main())
