"""What an environment that was just made holds, and whether ONNX Runtime works in it."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.runtimes.installed import Installed, installed
from pytest_ortbench.runtimes.installer import python_of
from pytest_ortbench.runtimes.package_sources import sources

#: Reading the records of all packages, on a slow disk.
_LOOK_S = 60.0
_TAIL = 400

_PACKAGES = """\
import importlib.metadata, json, platform, sysconfig
paths = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
found = list(importlib.metadata.distributions(path=paths))
packages = {d.metadata["Name"]: d.version for d in found}
urls = {d.metadata["Name"]: d.read_text("direct_url.json") for d in found}
print(json.dumps({
    "python": platform.python_version(), "platform": sysconfig.get_platform(),
    "packages": packages, "paths": sorted(set(paths)),
    "urls": {name: text for name, text in urls.items() if text},
}))
"""
_CPU = Provider(alias="cpu", name=CPU)


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
        sources: Where those came from that came from no index, by normalised name.
        onnxruntime: What of ONNX Runtime is installed.
    """

    python: str
    platform: str
    packages: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    onnxruntime: Installed

    @property
    def version(self) -> str:
        """Version of the one distribution that brings ONNX Runtime.

        Raises:
            Unsound: if there is none, or more than one.
        """
        names = [runtime.requirement for runtime in self.onnxruntime.runtimes]
        if not names:
            raise Unsound(
                "none of these packages contains ONNX Runtime itself",
                "Add onnxruntime to them with +, or the package of it that they extend",
            )
        if len(names) > 1:
            raise Unsound(
                f"{' and '.join(names)} overwrite each other's files",
                "Write a separate runtime for each, separated by commas",
            )
        return self.onnxruntime.runtimes[0].version


def look(folder: Path) -> Facts:
    """Say what is installed in the environment in ``folder``.

    Raises:
        Unsound: if its Python does not run.
    """
    facts = json.loads(_run(folder, _PACKAGES))
    return Facts(
        python=facts["python"],
        platform=facts["platform"],
        packages=_normalised(facts["packages"]),
        sources=sources(_normalised(facts["urls"])),
        onnxruntime=installed(facts["paths"]),
    )


def check_works(folder: Path) -> RuntimeInfo:
    """Run two tiny models in the environment, as a worker does.

    Importing alone proves little: *seen*, a wheel built for numpy 1 is imported beside numpy 2,
    and its first session ends the process.

    Raises:
        Unsound: if that fails, with the reason.
    """
    runtime = Runtime(label=folder.name, command=(str(python_of(folder)),), isolated=True)
    launcher = ProcessLauncher()
    try:
        info = launcher.inspect(runtime)
        [outcome] = launcher.probe(runtime, [_CPU])
    except WorkerError as error:
        raise Unsound(error.failure.message, error.failure.hint) from error
    finally:
        launcher.close()
    if not outcome.usable:
        raise Unsound(outcome.reason, outcome.failure.hint if outcome.failure else "")
    return info


def folder_bytes(folder: Path) -> int:
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
            timeout=_LOOK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unsound(f"the Python of the environment does not run: {error}") from error
    if done.returncode:
        message = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise Unsound(
            f"the Python of the environment fails: {message[-_TAIL:] or 'no reason given'}"
        )
    return done.stdout.decode("utf-8")


def _normalised(packages: Mapping[str, str]) -> dict[str, str]:
    from packaging.utils import canonicalize_name

    return {str(canonicalize_name(name)): version for name, version in sorted(packages.items())}
