"""What is sent to a machine: the files of the project by digest, our wheel, and what to run.

A machine keeps files under their digests, so that a model crosses the network once.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import io
import json
import os
import re
import shlex
import subprocess
import tarfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest_ortbench
from pytest_ortbench.core.errors import UsageError, says
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.model_spec import is_onnx_file
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.fleet.hosts.facts import Host
from pytest_ortbench.models.revisions import external_locations

#: A smaller file travels with the others in one archive.
LARGE_BYTES = 256 << 10
#: What an environment with ONNX Runtime takes, roughly; a machine with less space is refused.
ROOM_BYTES = 400_000_000

_DISTRIBUTION = "pytest-ortbench"
_OWN_WHEEL = re.compile(r"pytest_ortbench-[^/]*[.]whl\Z")
#: Of an installed distribution, what says how it was installed here.
_NOT_OF_A_WHEEL = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
#: Folders that are of no project: environments, caches, results.
_LEFT_OUT = ("__pycache__", "node_modules", "results")
#: The first date that a zip archive knows, so that the same files make the same wheel.
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFile:
    """One file of the project.

    Attributes:
        path: Relative to the project, with slashes; empty for one of the environment alone.
        source: The file here.
        digest: SHA-256, hexadecimal.
        size: In bytes.
        executable: Whether its user may run it.
    """

    path: str
    source: Path
    digest: str
    size: int
    executable: bool = False

    @property
    def large(self) -> bool:
        """Whether it travels by itself."""
        return self.size >= LARGE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """What every machine of a fleet gets.

    Attributes:
        files: Of the project.
        wheels: Files of the environment, by name: our wheel, and those of a wheelhouse.
        offline: Whether an environment is made of these wheels alone.
        arguments: Of pytest.
    """

    files: tuple[SentFile, ...]
    wheels: Mapping[str, SentFile]
    offline: bool
    arguments: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self._every())

    def _every(self) -> tuple[SentFile, ...]:
        return (*self.files, *self.wheels.values())

    def large(self) -> dict[str, Path]:
        """Return the files that travel by themselves, by digest."""
        return {entry.digest: entry.source for entry in self._every() if entry.large}

    def pack(self) -> bytes:
        """Return an archive of all other files, named by their digests.

        Raises:
            UsageError: if one of them is not any more what was listed.
        """
        small = {entry.digest: entry.source for entry in self._every() if not entry.large}
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for digest, source in sorted(small.items()):
                content = _unchanged(source, digest)
                member = tarfile.TarInfo(digest)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return packed.getvalue()

    def project(self) -> list[dict[str, Any]]:
        """Return the files of the project as plain values."""
        return [
            {
                "path": entry.path,
                "digest": entry.digest,
                "size": entry.size,
                "large": entry.large,
                "executable": entry.executable,
            }
            for entry in self.files
        ]

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each file, by digest."""
        return {entry.digest: entry.size for entry in self._every()}

    def instructions(self, host: Host) -> str:
        """Return what one machine is told, as JSON."""
        extra = f"[{host.extra}]" if host.extra and not host.runtime else ""
        own = next(name for name in self.wheels if _OWN_WHEEL.match(name))
        requirements = [
            f"{_DISTRIBUTION}{extra} @ file://{{wheels}}/{own}",
            *([host.runtime] if host.runtime else []),
            *host.packages,
        ]
        wheels = [
            {"path": "", "digest": entry.digest, "size": entry.size, "large": entry.large}
            for entry in self.wheels.values()
        ]
        return json.dumps(
            {
                "files": self.project(),
                "wheel_files": wheels,
                "wheels": {name: entry.digest for name, entry in self.wheels.items()},
                "requirements": requirements,
                "offline": self.offline,
                "arguments": list(self.arguments),
                "room": ROOM_BYTES,
            }
        )


def _unchanged(path: Path, digest: str) -> bytes:
    """Read a file that was listed before.

    Raises:
        UsageError: if it is gone, or another one.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        change = f"became unreadable ({says('the system', error.strerror or str(error))})"
    else:
        if hashlib.sha256(content).hexdigest() == digest:
            return content
        change = "was changed"
    raise UsageError(
        f"the file {change} while the project was packed for the machines",
        place=str(path),
        hint="Run the command again once nothing else writes into the current folder",
    )


def project_files(root: Path, arguments: Iterable[str], further: Iterable[Path]) -> list[SentFile]:
    """Return the files of a project: what git knows or could add, and what is named.

    Args:
        root: The project's folder. Without git, all of it but hidden folders, environments and
            results.
        arguments: Of pytest; what they name below the project goes along, ignored by git or not:
            files and folders, files that are values of options, and the weights of a model.
        further: Files and folders below the project that go along, too.

    Raises:
        UsageError: if one lies outside of the project, or can't be read.
    """
    named = [root / name for argument in arguments for name in _named(argument)]
    asked = [root / path for path in further]
    absent = [path for path in asked if not path.exists()]
    if absent:
        raise UsageError(
            f"{str(absent[0])!r} does not exist", place="--send", hint="Correct the path"
        )
    paths = set(_of_git(root) or _below(root))
    for path in (*asked, *(path for path in named if path.exists())):
        target, shown = path.resolve(), os.path.normpath(path)
        if not target.is_relative_to(root.resolve()):
            is_link = Path(shown).is_relative_to(os.path.normpath(root))
            raise UsageError(
                f"{shown!r} {f'is a link to {str(target)!r}, which ' if is_link else ''}is outside "
                f"the current folder {str(root)!r}, and only files of that folder are sent to the "
                "machines",
                place="--send" if path in asked else "fleet",
                hint="Put a copy in place of the link"
                if is_link
                else "Copy it into this folder, and name the copy",
            )
        paths.update(_below(path) if path.is_dir() else [path, *_weights(path)])
    values = [root / value for argument in arguments for value in _values(argument)]
    for path in (path for path in values if path.is_file()):
        if path.resolve().is_relative_to(root.resolve()):
            paths.update([path, *_weights(path)])
    return [sent_file(path, path.relative_to(root).as_posix()) for path in sorted(paths)]


def _named(argument: str) -> list[str]:
    """Return what an argument of pytest names, without the test in it; nothing for an option."""
    return [] if argument[:1] == "-" else [argument.partition("::")[0]]


def _values(argument: str) -> list[str]:
    """Return the values of an option that may be files."""
    text = argument.partition("=")[2] if argument[:1] == "-" else ""
    return [value for value in text.split(",") if value]


def _weights(path: Path) -> list[Path]:
    """Return the files beside a model that hold its weights."""
    if not is_onnx_file(path):
        return []
    files = [path.parent / name for name in external_locations(path)]
    return [file for file in files if file.is_file()]


def _wheel_name() -> str:
    return f"pytest_ortbench-{VERSION}-py3-none-any.whl"


def wheels_of(wheel: Path | None, wheelhouse: Path | None, folder: Path) -> dict[str, SentFile]:
    """Return the wheels that are sent, by name: ours, and those of a wheelhouse.

    Args:
        wheel: A wheel of this package; ``None``: what is installed is packed into one.
        wheelhouse: A folder of wheels for machines without network.
        folder: Where a wheel may be made.

    Raises:
        UsageError: if a wheelhouse holds none, or the wheel is of another package.
    """
    if wheel is not None and not _OWN_WHEEL.match(wheel.name):
        raise UsageError(
            f"{str(wheel)!r} is not a wheel of {_DISTRIBUTION}",
            place="--wheel",
            hint="To send the installed version, leave --wheel out. To send another one, name its "
            f"wheel, e.g. --wheel=dist/{_wheel_name()}",
        )
    paths = [wheel or own_wheel(folder)]
    if wheelhouse is not None:
        housed = sorted(wheelhouse.glob("*.whl"))
        if not housed:
            raise UsageError(
                f"{str(wheelhouse)!r} contains no wheel",
                place="--wheelhouse",
                hint=_how_to_house(wheelhouse),
            )
        paths += [path for path in housed if not _OWN_WHEEL.match(path.name)]
    return {path.name: sent_file(path, "") for path in paths}


def _how_to_house(wheelhouse: Path) -> str:
    """How wheels come into a folder that holds none: those in its folders are not seen."""
    if next(wheelhouse.rglob("*.whl"), None) is not None:
        return "The folders in it are not searched. Move the wheels up, into this folder"
    return (
        "On a machine like those of the fleet, run: pip download -d "
        f"{shlex.quote(str(wheelhouse))} 'pytest-ortbench[cpu]'. For NVIDIA GPUs, write gpu in "
        "place of cpu"
    )


def own_wheel(folder: Path) -> Path:
    """Pack this package, as it is installed or checked out, into a wheel; return its file."""
    package = Path(pytest_ortbench.__file__).parent
    members = {
        path.relative_to(package.parent).as_posix(): path.read_bytes()
        for path in _below(package)
        if path.suffix != ".pyc"
    }
    facts = f"pytest_ortbench-{VERSION}.dist-info"
    for entry in importlib.metadata.distribution(_DISTRIBUTION).files or ():
        if entry.parts[0].endswith(".dist-info") and entry.name not in _NOT_OF_A_WHEEL:
            name = "/".join((facts, *entry.parts[1:]))
            members[name] = Path(str(entry.locate())).read_bytes()
    lines = [
        f"{name},sha256={_base64(content)},{len(content)}"
        for name, content in sorted(members.items())
    ]
    members[f"{facts}/RECORD"] = "\n".join([*lines, f"{facts}/RECORD,,", ""]).encode()
    path = folder / _wheel_name()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    return path


def _base64(content: bytes) -> str:
    """Return a digest as records of wheels have it."""
    digest = hashlib.sha256(content).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def sent_file(path: Path, name: str) -> SentFile:
    """Return a file as it is sent.

    Raises:
        UsageError: if it can't be read.
    """
    try:
        status = path.stat()
        return SentFile(
            path=name,
            source=path,
            digest=file_digest(path),
            size=status.st_size,
            executable=bool(status.st_mode & 0o100),
        )
    except OSError as error:
        raise UsageError(
            "the file would be sent to the machines, but it can't be read. "
            f"{says('The system', error.strerror or str(error))}",
            place=str(path),
            hint="Give your user the right to read it. If the machines do not need the file, move "
            "it out of the current folder",
        ) from error


def _of_git(root: Path) -> list[Path]:
    """Return what git tracks or could add below a folder; nothing where it is no repository.

    What is hidden and not tracked stays here: it often holds secrets.
    """
    tracked = _listed(root, "--cached")
    others = [
        name
        for name in _listed(root, "--others", "--exclude-standard")
        if not any(part.startswith(".") for part in name.split("/"))
    ]
    return [path for name in (*tracked, *others) if (path := root / name).is_file()]


def _listed(root: Path, *options: str) -> list[str]:
    try:
        done = subprocess.run(
            ["git", "ls-files", "-z", *options], cwd=root, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return []
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _below(root: Path) -> Sequence[Path]:
    """Return the files below a folder but those of hidden folders, environments and results."""
    paths: list[Path] = []
    for folder, folders, files in os.walk(root):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name not in _LEFT_OUT
            and not Path(folder, name, "pyvenv.cfg").exists()
        ]
        paths += [Path(folder, name) for name in files if not name.startswith(".")]
    return [path for path in paths if path.is_file()]
