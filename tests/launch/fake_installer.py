"""An installer that needs no network: real environments, in which this one's packages appear."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import Requirement

from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.runtimes.installer import InstallError, python_of
from pytest_ortbench.runtimes.interpreters import Interpreter

HERE = Interpreter(path=sys.executable, version=sys.version_info[:3])


@dataclass
class FakeInstaller:
    """Installs by linking to what runs these tests, under whatever version was asked for.

    Attributes:
        newest: Version by package of what an index would give for a requirement without ``==``.
        refuse: Raised for an interpreter of that minor version.
        interrupt: Raised in the middle of every installation.
        made: Minor versions of the Pythons that it was called with.
        installed: Requirements of each call.
    """

    newest: dict[str, str] = field(default_factory=lambda: {"onnxruntime": "1.20.1"})
    refuse: dict[int, InstallError] = field(default_factory=dict)
    interrupt: BaseException | None = None
    made: list[int] = field(default_factory=list)
    installed: list[list[str]] = field(default_factory=list)
    name: str = "a stand-in"
    _minor: int = 0

    def make(self, folder: Path, interpreter: Interpreter) -> None:
        self._minor = interpreter.minor[1]
        self.made.append(self._minor)
        command = [sys.executable, "-I", "-m", "venv", "--without-pip", str(folder)]
        subprocess.run(command, check=True, timeout=600)

    def install(self, folder: Path, requirements: Sequence[str]) -> None:
        self.installed.append(list(requirements))
        if self._minor in self.refuse:
            raise self.refuse[self._minor]
        site = _site(folder)
        for requirement in map(Requirement, requirements):
            pins = [each.version for each in requirement.specifier if each.operator == "=="]
            if requirement.url is not None:
                pins = [requirement.url.rsplit("/", 1)[-1].split("-")[1]]
            version = pins[0] if pins else self.newest.get(requirement.name, "1.0")
            if requirement.name == "numpy":
                version = "1.26.4" if str(requirement.specifier) == "<2" else pins[0]
            _record(site, requirement.name, version, requirement.url)
            if self.interrupt is not None:
                raise self.interrupt
        if not list(site.glob("numpy-*")):
            _record(site, "numpy", "2.4.6")
        for package in ("onnxruntime", "numpy", "numpy.libs"):
            link = site / package
            if not link.exists():
                link.symlink_to(_package(package))


def stand_in_check(folder: Path) -> RuntimeInfo:
    """Believe that it works; trying it takes seconds."""
    return RuntimeInfo(
        distributions={}, version="1.2.3", python="3", numpy="2.4.6", executable=str(folder)
    )


def _site(folder: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    command = [str(python_of(folder)), "-I", "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return Path(done.stdout.strip())


def _record(site: Path, name: str, version: str, url: str | None = None) -> None:
    """Write the metadata of a distribution; those of ONNX Runtime bring its package."""
    for old in site.glob(f"{name}-*.dist-info"):
        for file in old.iterdir():
            file.unlink()
        old.rmdir()
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    brings = name.startswith("onnxruntime") and "plugin" not in name
    (folder / "RECORD").write_text("onnxruntime/__init__.py,,\n" if brings else "")
    if url is not None:
        (folder / "direct_url.json").write_text(json.dumps({"archive_info": {}, "url": url}))


def _package(name: str) -> Path:
    found = importlib.util.find_spec("numpy" if name == "numpy.libs" else name)
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent
    return folder.parent / name
