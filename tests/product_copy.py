"""A copy of the product with lines more, and what a script says that runs against it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest_ortbench


def copy_product(folder: Path, added: Mapping[str, Iterable[tuple[str, str]]]) -> Path:
    """Copy the package into a folder, put lines into its files, and return where it lies.

    Args:
        folder: Where to.
        added: For each file, lines that stand there once, and what goes in front of them.
    """
    package = folder / "pytest_ortbench"
    source = Path(pytest_ortbench.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, additions in added.items():
        text = (package / name).read_text(encoding="utf-8")
        for line, more in additions:
            assert text.count(line) == 1, line
            text = text.replace(line, more + line)
        (package / name).write_text(text, encoding="utf-8")
    return package


def told_beside(folder: Path, script: str) -> dict[str, Any]:
    """Return the facts that a script prints as its last line, in a folder with such a copy."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts
