"""Which distributions of ONNX Runtime are installed in this interpreter, and whether that is sound.

All of them bring the same package ``onnxruntime``. Two in one environment overwrite each other's
files, and removing one of them takes the other's files along; neither pip nor ONNX Runtime says so.
Nothing is imported here: what is wrong is read from the records of the installer.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

PACKAGE = "onnxruntime"

#: How the names of its distributions begin.
_NAMES = (PACKAGE, "ort-nightly")

#: Endings of native libraries; ``.so.1.32.0`` counts too.
_LIBRARIES = (".so", ".dll", ".dylib", ".pyd")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledDistribution:
    """One distribution that brings the package ``onnxruntime``, or a provider for it.

    Attributes:
        name: As on the package index.
        version: Its version.
        brings_package: Whether it brings the package ``onnxruntime`` itself.
        missing: Number of its files that are not there.
        replaced: Number of its libraries that are there with another size: another distribution
            was installed over it.
    """

    name: str
    version: str
    brings_package: bool
    missing: int = 0
    replaced: int = 0

    @property
    def requirement(self) -> str:
        """What installs exactly this one."""
        return f"{self.name}=={self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What an environment holds of ONNX Runtime.

    Attributes:
        distributions: Those installed, by name.
        leftovers: Libraries in the package's folder that no installed distribution knows of,
            relative to the environment.
        folder: The package's folder; empty if there is none.
    """

    distributions: tuple[InstalledDistribution, ...] = ()
    leftovers: tuple[str, ...] = ()
    folder: str = ""

    @property
    def runtimes(self) -> tuple[InstalledDistribution, ...]:
        """The distributions that bring the package itself; more than one is one too many."""
        return tuple(
            distribution for distribution in self.distributions if distribution.brings_package
        )

    def problems(self) -> list[str]:
        """Say what is wrong, one sentence each; empty if nothing is."""
        sentences = []
        if len(self.runtimes) > 1:
            names = " and ".join(runtime.requirement for runtime in self.runtimes)
            sentences.append(
                f"{names} are installed together: they overwrite each other's files, "
                "and which providers work is chance"
            )
        for distribution in self.runtimes:
            if distribution.missing:
                sentences.append(
                    f"{distribution.missing} files of {distribution.requirement} are not there: "
                    "another distribution was removed, and these went with it"
                )
            elif distribution.replaced:
                sentences.append(
                    f"{distribution.replaced} libraries of {distribution.requirement} were replaced"
                )
        if self.leftovers:
            shown = ", ".join(self.leftovers[:5])
            more = f" and {len(self.leftovers) - 5} more" if len(self.leftovers) > 5 else ""
            sentences.append(f"libraries that no installed distribution knows of: {shown}{more}")
        return sentences

    def repair(self) -> list[str]:
        """Return the commands that make it sound again; empty if it is."""
        if not self.problems():
            return []
        pip = f"{sys.executable} -m pip"
        commands = []
        if self.runtimes:
            commands.append(f"{pip} uninstall -y {' '.join(e.name for e in self.runtimes)}")
        if self.leftovers:
            commands.append(f"remove the folder {self.folder}")
        keep = self.runtimes[-1].requirement if self.runtimes else "onnxruntime"
        others = [runtime.requirement for runtime in self.runtimes[:-1]]
        choice = f"   (or {' or '.join(others)}; one environment for each)" if others else ""
        commands.append(f"{pip} install {keep}{choice}")
        return commands


def installed(path: Sequence[str] | None = None) -> Installed:
    """Look at the distributions of ONNX Runtime that this interpreter sees.

    Args:
        path: Folders to look in; this interpreter's own where not given.
    """
    folders = list(sys.path if path is None else path)
    records = [(runtime, _files_in_package(runtime)) for runtime in _distributions(folders)]
    known = {file for _, record in records for file in record or ()}
    package = _package_folder(folders)
    # Without a record (conda, Debian) nothing can be called left over.
    recorded = package is not None and all(record is not None for _, record in records)
    return Installed(
        distributions=tuple(
            sorted(
                (_describe(runtime, record or {}) for runtime, record in records),
                key=lambda runtime: runtime.name.lower(),
            )
        ),
        leftovers=_leftovers(package, known) if package is not None and recorded else (),
        folder=str(package) if package is not None else "",
    )


def _distributions(folders: Sequence[str]) -> list[Distribution]:
    """Each distribution of ONNX Runtime once, as the first folder on the path has it.

    Chosen by the names of their folders: to read the metadata of everything that is installed
    takes longer than the rest of what a run does before its first case.
    """
    distributions: dict[str, Distribution] = {}
    for folder in folders:
        for path in Path(folder or ".").glob("[oO]*.*-info"):
            if _spelt(path.name).startswith(_NAMES):
                distribution = Distribution.at(path)
                name = _spelt(distribution.metadata["Name"] or "")
                if name.startswith(_NAMES):
                    distributions.setdefault(name, distribution)
    return list(distributions.values())


def _spelt(name: str) -> str:
    """A name as package indexes compare it."""
    return name.lower().replace("_", "-")


def _package_folder(folders: list[str]) -> Path | None:
    """Where ``import onnxruntime`` finds it, or a folder of that name that is no package any more.

    A folder without ``__init__.py`` counts for Python only where no whole package is found.
    """
    named = [folder for text in folders if (folder := Path(text or ".", PACKAGE)).is_dir()]
    whole = [folder for folder in named if (folder / "__init__.py").is_file()]
    return next(iter(whole or named), None)


def _files_in_package(distribution: Distribution) -> dict[Path, int | None] | None:
    """The recorded files within the package ``onnxruntime``, with their sizes if recorded.

    The record is read as it is, and not through ``Distribution.files``: where the backport
    ``importlib_metadata`` has been imported by anybody, that leaves out the files that are missing.

    Returns:
        ``None`` where the installer keeps no record (conda, Debian).
    """
    record = distribution.read_text("RECORD")
    if record is None:
        return None
    files: dict[Path, int | None] = {}
    for row in csv.reader(record.splitlines()):
        name = row[0] if row else ""
        if name.startswith(f"{PACKAGE}/") and not name.endswith(".pyc"):
            size = int(row[2]) if len(row) > 2 and row[2].isdigit() else None
            files[Path(str(distribution.locate_file(name)))] = size
    return files


def _describe(
    distribution: Distribution, files: Mapping[Path, int | None]
) -> InstalledDistribution:
    brings = any(file.name == "__init__.py" and file.parent.name == PACKAGE for file in files)
    sizes = {file: _size(file) for file in files} if brings else {}
    return InstalledDistribution(
        name=distribution.metadata["Name"],
        version=distribution.version,
        brings_package=brings,
        missing=sum(size is None for size in sizes.values()),
        replaced=sum(
            _is_library(file) and size is not None and files[file] not in (None, size)
            for file, size in sizes.items()
        ),
    )


def _leftovers(package: Path, known: set[Path]) -> tuple[str, ...]:
    return tuple(
        str(file.relative_to(package.parent))
        for file in sorted(package.rglob("*"))
        if _is_library(file) and file not in known
    )


def _is_library(file: Path) -> bool:
    return file.suffix in _LIBRARIES or ".so." in file.name


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:
        return None
