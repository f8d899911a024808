"""Environments that hold the product beside packages of others, made for heavy tests and kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.environment import FORGOTTEN
from tests.providers.conftest import tests_cache

ROOT = Path(__file__).parents[1]
#: PyTorch; the build for CPUs where the index has one under this version.
PYTORCH = "torch==2.13.0"
#: PyTorch with its exporter.
TORCH = (PYTORCH, "onnxscript")


def interpreter_beside(packages: Sequence[str], *, extras: str = "cpu") -> str:
    """Return the interpreter of an environment with the product and some packages.

    It is made where there is none of these packages yet. What it runs is the product as it is here,
    see :func:`run_beside`.

    Args:
        packages: As pip takes them.
        extras: Of the product.
    """
    place = tests_cache() / "-".join(["environment", extras, *packages])
    python = place / "bin" / "python"
    if not (place / "bin" / "pytest").is_file():
        place.parent.mkdir(parents=True, exist_ok=True)
        run_beside(sys.executable, "-m", "venv", str(place), folder=place.parent)
        install = ("-m", "pip", "install", "-q", f"{ROOT}[{extras}]", *packages)
        run_beside(str(python), *install, folder=place.parent)
    return str(python)


def run_beside(
    *arguments: str, folder: Path, may_fail: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command with the product as it is here, a cache and a lock of its own.

    Args:
        arguments: The command.
        folder: Where it runs; cache and lock lie there.
        may_fail: Whether another exit status than 0 is no failure of the test.
    """
    environment = {name: value for name, value in os.environ.items() if name not in FORGOTTEN}
    environment |= {"ORTBENCH_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    environment["ORTBENCH_MACHINE_LOCK"] = str(folder / "lock")
    done = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert may_fail or done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done
