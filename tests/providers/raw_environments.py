"""Environments that no sound installation leads to, made step by step and kept."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.runtimes.installer import InstallError, find_installer, find_uv, python_of
from pytest_ortbench.runtimes.interpreters import find_interpreters


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEnvironment:
    """One environment.

    Attributes:
        runtime: How it is started.
        packages: Its folder of packages.
    """

    runtime: Runtime
    packages: Path


def raw_environment(
    name: str,
    *installs: Sequence[str],
    remove: Sequence[str] = (),
    newest_python: tuple[int, int] = (3, 13),
) -> RawEnvironment:
    """Return the environment, made if it is not there yet.

    Args:
        name: Short name.
        installs: What to install, one step after the other.
        remove: What to uninstall at the end.
        newest_python: The newest Python that has all of these packages.
    """
    from tests.providers.conftest import tests_cache  # it imports this module's users

    usable = [each for each in find_interpreters() if each.minor <= newest_python]
    if not usable:
        pytest.skip(f"needs Python {newest_python[0]}.{newest_python[1]} or older")
    interpreter = usable[0]
    asked = repr((name, installs, remove, interpreter.text))
    folder = tests_cache() / "raw" / f"{name}-{hashlib.sha256(asked.encode()).hexdigest()[:8]}"
    complete = folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        installer = find_installer()
        try:
            installer.make(folder, interpreter)
            for requirements in installs:
                installer.install(folder, requirements)
        except InstallError as error:
            pytest.fail(f"{name}: {error.text}. {error.hint}", pytrace=False)
        if remove:
            _remove(folder, remove)
        complete.touch()
    [packages] = folder.glob("lib/python3.*/site-packages")
    runtime = Runtime(label=name, command=(str(python_of(folder)),), isolated=True)
    return RawEnvironment(runtime=runtime, packages=packages)


def _remove(folder: Path, names: Sequence[str]) -> None:
    python = str(python_of(folder))
    uv = find_uv()
    if uv:
        command = [uv, "pip", "uninstall", "--quiet", "--python", python, *names]
    else:
        command = [python, "-m", "pip", "uninstall", "--quiet", "--yes", *names]
    subprocess.run(command, check=True, capture_output=True)
