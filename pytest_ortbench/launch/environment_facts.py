"""What an environment that was just made holds, and whether ONNX Runtime works in it."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ortbench.launch.installed import Installed, installed
from pytest_ortbench.launch.installer import python_of
from pytest_ortbench.launch.runtime_specs import needs_numpy_1

#: Importing for the first time, on a slow disk.
_IMPORT_S = 300.0
_TAIL = 400

_PACKAGES = """\
import importlib.metadata, json, platform, sysconfig
paths = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
packages = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions(path=paths)}
print(json.dumps({
    "python": platform.python_version(), "platform": sysconfig.get_platform(),
    "packages": packages, "paths": sorted(set(paths)),
}))
"""
_IMPORT = """\
import json, onnxruntime, numpy
onnxruntime.InferenceSession, onnxruntime.get_available_providers()
print(json.dumps([onnxruntime.__version__, numpy.__version__]))
"""


class Unsound(Exception):
    """What was installed is no runtime; the text says why, ``hint`` what to do."""

    def __init__(self, text: str, hint: str = "") -> None:
        self.hint = hint
        super().__init__(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is in an environment, found without importing any of it.

    Attributes:
        python: Version of its Python.
        platform: As :func:`sysconfig.get_platform` says there.
        packages: Versions of all distributions by normalised name.
        onnxruntime: What of ONNX Runtime is installed.
    """

    python: str
    platform: str
    packages: dict[str, str] = field(default_factory=dict)
    onnxruntime: Installed

    @property
    def version(self) -> str:
        """Version of the one distribution that brings ONNX Runtime.

        Raises:
            Unsound: if there is none, or more than one.
        """
        names = [each.requirement for each in self.onnxruntime.runtimes]
        if not names:
            raise Unsound(
                "none of these packages brings ONNX Runtime itself",
                "Add onnxruntime, or the distribution that the others extend",
            )
        if len(names) > 1:
            raise Unsound(
                f"{' and '.join(names)} overwrite each other's files",
                "Write one runtime for each, separated by a comma",
            )
        return self.onnxruntime.runtimes[0].version


def look(folder: Path) -> Facts:
    """Say what is installed in the environment in ``folder``.

    Raises:
        Unsound: if its Python does not run.
    """
    found = json.loads(_run(folder, _PACKAGES))
    return Facts(
        python=found["python"],
        platform=found["platform"],
        packages=_normalised(found["packages"]),
        onnxruntime=installed(found["paths"]),
    )


def check_import(folder: Path, facts: Facts) -> tuple[str, str]:
    """Import ONNX Runtime in the environment.

    Returns:
        Its version and numpy's.

    Raises:
        Unsound: if it can't be imported, with both versions and the end of what it said.
    """
    try:
        version, numpy = json.loads(_run(folder, _IMPORT))
    except Unsound as error:
        numpy = facts.packages.get("numpy", "")
        beside = f"with numpy {numpy}" if numpy else "without numpy"
        hint = ""
        if needs_numpy_1(facts.version) and not is_numpy_1(numpy):
            hint = (
                f"ONNX Runtime {facts.version} is built for numpy 1: write numpy<2, or leave it out"
            )
        raise Unsound(
            f"ONNX Runtime {facts.version} can't be imported {beside}: {error}", hint
        ) from error
    return str(version), str(numpy)


def is_numpy_1(version: str) -> bool:
    """Whether a version of numpy is older than 2."""
    return version.partition(".")[0] in ("0", "1")


def size_of(folder: Path) -> int:
    """Return the bytes of all files."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def this_platform() -> str:
    """Return what environments that are made here say of their platform."""
    return sysconfig.get_platform()


def _run(folder: Path, code: str) -> str:
    """Run code in the environment, without anything of the user's around it."""
    try:
        done = subprocess.run(
            [str(python_of(folder)), "-I", "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_IMPORT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unsound(f"its Python does not run: {error}") from error
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise Unsound(said[-_TAIL:] or f"exit code {done.returncode}, and no reason given")
    # The last line: what is imported may print before it.
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "null"


def _normalised(packages: Mapping[str, str]) -> dict[str, str]:
    from packaging.utils import canonicalize_name

    return {str(canonicalize_name(name)): version for name, version in sorted(packages.items())}
