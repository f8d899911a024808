"""What ``ortbench fleet shard`` adds to a suite: seconds a model, and a case.

    python benchmarks/shard_cost.py [--models 8] [--batches 5] [--workers 1]

Runs the same suite of small builtin models once by pytest and once over workers of Dask on this
machine, which take turns here as every run does. Prints both times, the difference by model and by
case, and what Dask alone takes for a task that does nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SUITE = """
import pytest

@pytest.mark.ortbench(models={models!r}, batch_sizes={batches!r})
def test_latency(ortbench):
    assert ortbench.case
"""
QUICK = ("--ort-workers=1", "--ort-time=0.05", "--ort-yardstick=off")
TASKS = 200


def write_suite(folder: Path, models: int, batches: int) -> None:
    """Write a suite of several models, each at several batch sizes."""
    from tests.fleet.product_models import save_product

    names = [f"m{number}.onnx" for number in range(models)]
    for seed, name in enumerate(names):
        save_product(folder / name, seed=seed)
    text = SUITE.format(models=names, batches=list(range(1, batches + 1)))
    (folder / "test_suite.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")


def timed(*command: str, folder: Path) -> float:
    """Run a command to its end and return its seconds.

    Raises:
        SystemExit: if it fails.
    """
    began = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment["ORTBENCH_MACHINE_LOCK"] = str(folder / "turns.lock")
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])
    return time.monotonic() - began


def task_s(address: str) -> float:
    """Return what Dask takes for a task that does nothing."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.submit(abs, -1).result()
        began = time.monotonic()
        one_each = {"ORTBENCH": 1}
        futures = [client.submit(abs, -number, resources=one_each) for number in range(TASKS)]
        client.gather(futures)
        return (time.monotonic() - began) / TASKS


def main() -> int:
    """Measure and print."""
    from tests.fleet.dask_workers import dask_workers

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    cases = asked.models * asked.batches
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder, asked.models, asked.batches)
        pytest = (sys.executable, "-m", "pytest", "-q", "test_suite.py", *QUICK)
        alone_s = timed(*pytest, folder=folder)
        os.environ["ORTBENCH_MACHINE_LOCK"] = str(folder / "turns.lock")
        workers = [f"w{number}" for number in range(asked.workers)]
        (folder / "dask").mkdir()
        with dask_workers(folder / "dask", workers) as cluster:
            nothing_s = task_s(cluster.address)
            sharded_s = timed(
                *(sys.executable, "-m", "pytest_ortbench.cli", "fleet", "shard"),
                *(f"--scheduler={cluster.address}", f"--folder={folder / 'agreed'}"),
                *("--", "test_suite.py", *QUICK),
                folder=folder,
            )
    print(f"{cases} cases of {asked.models} models, {asked.workers} workers")
    print(f"pytest alone     {alone_s:.1f} s, {alone_s / cases:.2f} s a case")
    print(f"fleet shard      {sharded_s:.1f} s, {sharded_s / cases:.2f} s a case")
    print(
        f"added            {(sharded_s - alone_s) / asked.models:.2f} s a model, "
        f"{(sharded_s - alone_s) / cases:.2f} s a case"
    )
    print(f"Dask's own task  {nothing_s * 1e3:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
