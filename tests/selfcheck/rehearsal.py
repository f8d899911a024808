"""``ortbench selfcheck`` in a process of its own, on this machine or on stand-ins for a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
GPU = Path(__file__).parent / "gpu"


@dataclass(frozen=True)
class Checked:
    """What one call did.

    Attributes:
        code: Exit code.
        out: Standard output.
        err: Standard error.
        lines: Verdict and cause of each line, by its name.
        certificates: The certificates as they were written.
    """

    code: int
    out: str
    err: str
    lines: dict[str, tuple[str, str]]
    certificates: list[dict[str, Any]]


def check(folder: Path, *arguments: str, **settings: str) -> Checked:
    """Run the command in ``folder`` with further settings of the environment."""
    path = folder / "certificates.json"
    command = [sys.executable, "-m", "pytest_ortbench.cli", "selfcheck", f"--json={path}"]
    environment = {name: text for name, text in os.environ.items() if not name.startswith("CUDA_")}
    environment |= {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state"), **settings}
    done = subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    certificates = json.loads(path.read_bytes()) if path.exists() else []
    lines = {
        line["check"]: (line["verdict"], line["cause"])
        for certificate in certificates
        for line in certificate["lines"]
    }
    return Checked(done.returncode, done.stdout, done.stderr, lines, certificates)


def check_gpu(
    folder: Path, libraries: Path, *arguments: str, provider: str = "cuda", **settings: str
) -> Checked:
    """Run it for CUDA on the stand-ins for its driver, its runtime and NVML."""
    return check(
        folder,
        f"--providers={provider}",
        *arguments,
        PYTHONPATH=os.pathsep.join((str(GPU), str(ROOT))),
        LD_LIBRARY_PATH=str(libraries),
        # What runs on the GPU must not be remembered for this machine.
        ORTBENCH_CACHE=str(libraries / "cache"),
        STAND_IN_UUIDS="1",
        STAND_IN_PIDS="self",
        **settings,
    )
