"""Stand-ins for ``libnvidia-ml.so.1`` and ``libcuda.so.1``, compiled once a test run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "nvml.c"
ROOT = Path(__file__).parents[3]


def compile_library(folder: Path) -> Path:
    """Compile it into ``folder``, and return the folder."""
    compiled(SOURCE, folder / "libnvidia-ml.so.1")
    return folder


def compile_driver(folder: Path) -> Path:
    """Compile the stand-in for CUDA's driver into ``folder``, and return the folder."""
    compiled(SOURCE.with_name("cuda.c"), folder / "libcuda.so.1")
    return folder


def compiled(source: Path, library: Path) -> Path:
    """Compile a library with the first compiler that is there."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), "")
    command = [compiler] if compiler else [sys.executable, "-m", "ziglang", "cc"]
    built = [
        "-shared",
        "-fPIC",
        "-pthread",
        "-O1",
        "-Wall",
        "-Werror",
        "-o",
        str(library),
        str(source),
        "-ldl",
    ]
    subprocess.run([*command, *built], check=True, capture_output=True, timeout=600)
    return library


def run_with(library: Path, code: str, **settings: str) -> Any:
    """Run code in a Python whose pynvml finds the stand-in; returns what it prints, as JSON."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("CUDA_")},
        "LD_LIBRARY_PATH": str(library),
        "PYTHONPATH": str(ROOT),
        **settings,
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
