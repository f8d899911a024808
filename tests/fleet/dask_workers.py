"""A scheduler of Dask and workers beside it, started by hand as on machines of a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Started:
    """A cluster.

    Attributes:
        address: Of its scheduler.
        workers: Process of each worker, by name.
    """

    address: str
    workers: dict[str, subprocess.Popen[bytes]]


@contextmanager
def dask_workers(folder: Path, names: Sequence[str], *options: str) -> Iterator[Started]:
    """Run a scheduler and a worker of each name until the block ends.

    Args:
        folder: Where they keep their files and logs.
        names: Of the workers.
        options: Further ones of all of them, such as certificates.
    """
    told = folder / "scheduler.json"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "false",
    }
    with ExitStack() as stack:

        def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments, *options],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=log,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        scheduler = start(
            "scheduler",
            *("scheduler", "--host=127.0.0.1", "--port=0", "--no-dashboard"),
            f"--scheduler-file={told}",
        )
        address = _address(told, scheduler)
        workers = {
            name: start(
                name,
                *("worker", address, "--no-nanny", "--nthreads=1", "--no-dashboard"),
                *(f"--name={name}", "--resources=ORTBENCH=1", f"--local-directory={folder}"),
            )
            for name in names
        }
        yield Started(address=address, workers=workers)


def _address(told: Path, scheduler: subprocess.Popen[bytes]) -> str:
    """Return what a scheduler writes of itself, once it is whole."""
    ends = time.monotonic() + 120
    while time.monotonic() < ends and scheduler.poll() is None:
        with suppress(FileNotFoundError, ValueError):
            return str(json.loads(told.read_text())["address"])
        time.sleep(0.05)
    raise AssertionError(told.with_name("scheduler.log").read_text())
