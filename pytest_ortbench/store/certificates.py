"""Certificates of self-checks, kept by machine in the user's state folder.

A file there is data from anybody: it is read up to a limit, checked for sense like a run document,
and left out if it is of no use. Nothing in it names what is opened or run.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import replace
from heapq import nlargest
from pathlib import Path

import msgspec
import platformdirs

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Certificate
from pytest_ortbench.core.errors import DocumentError, why_unwritable
from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.core.provider_kinds import NVIDIA
from pytest_ortbench.core.run import Machine, Run
from pytest_ortbench.core.secrets import masked
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.schema.layout import to_utf8
from pytest_ortbench.schema.meaning import faults_of

FOLDER = "self-check"

#: A certificate takes some kilobytes; a machine has one for each provider of each runtime.
LARGEST_BYTES = 1 << 18
MOST_FILES = 200


def certificates_folder() -> Path:
    """Return where certificates are kept; whoever writes makes it."""
    return Path(platformdirs.user_state_dir("ortbench")) / FOLDER


def keep_certificate(certificate: Certificate, folder: Path | None = None) -> Path:
    """Store a certificate, in place of an earlier one of the same provider and versions.

    Args:
        certificate: What a self-check found out.
        folder: Where; ``None`` takes :func:`certificates_folder`.

    Returns:
        Path of the file, which appears whole or not at all.

    Raises:
        DocumentError: if it can't be written.
    """
    path = (folder or certificates_folder()) / f"{_identity(certificate)}.json"
    content = msgspec.json.format(msgspec.json.encode(masked(certificate)), indent=2)
    try:
        replace_file(path, content + b"\n")
    except OSError as error:
        hint = f"Give your user the right to write to the folder {str(path.parent)!r}"
        if isinstance(error, NotADirectoryError | FileExistsError):
            hint = "Move that file away"
        state = os.environ.get("XDG_STATE_HOME")
        if state and folder is None and path.is_relative_to(state):
            hint = "Name a folder to which your user may write in XDG_STATE_HOME, or unset it"
        raise DocumentError(
            f"the file {why_unwritable(error, path)}", place=str(path), hint=hint
        ) from error
    return path


def stored_certificates(folder: Path | None = None) -> list[Certificate]:
    """Return the certificates that are kept and can be read, the newest files first."""
    return [
        certificate
        for path in _files(folder or certificates_folder())
        if (certificate := _read(path)) is not None
    ]


def certified(run: Run, folder: Path | None = None) -> Run:
    """Return a run with the certificates that speak for what it measured.

    Args:
        run: A run whose cases have been measured.
        folder: Where certificates are kept; ``None`` takes :func:`certificates_folder`.
    """
    measured = _measured(run)
    if not measured:
        return run
    stored = stored_certificates(folder)
    fitting = (
        next((entry for entry in stored if fits(entry, run, *observed)), None)
        for observed in measured
    )
    found = tuple(
        replace(certificate, runtime=label)
        for certificate, (_, label, _) in zip(fitting, measured, strict=True)
        if certificate is not None
    )
    return replace(run, certificates=found)


def fits(
    certificate: Certificate, run: Run, provider: Provider, _label: str, info: RuntimeInfo
) -> bool:
    """Return whether a certificate speaks for what a run measured on a provider in a runtime.

    Machine, driver and all versions must be the same. A label of a runtime may be another one.
    """
    return (
        certificate.provider == provider.label
        and certificate.provider_name == provider.name
        and certificate.ortbench_version == run.ortbench_version
        and certificate.runtime_version == info.version
        and certificate.distributions == info.distributions
        and certificate.machine == run.machine.stable
        and certificate.host == elsewhere(info, run.machine)
        and (provider.name not in NVIDIA or certificate.devices == info.devices)
    )


def elsewhere(info: RuntimeInfo, machine: Machine) -> str:
    """Return the host that a runtime lies on, if it is not the machine that measures."""
    return "" if info.host in ("", machine.host) else info.host


def _measured(run: Run) -> list[tuple[Provider, str, RuntimeInfo]]:
    """Each provider that gave numbers, with the label and the facts of its runtime."""
    measured: dict[tuple[str, str], tuple[Provider, str, RuntimeInfo]] = {}
    for result in run.cases:
        case = result.case
        if case.provider.is_execution_provider and result.measurements:
            key = (case.provider.label, case.runtime.label)
            info = result.measurements[0].runtime
            measured.setdefault(key, (case.provider, case.runtime.label, info))
    return list(measured.values())


def _identity(certificate: Certificate) -> str:
    """What tells certificates apart: all but what was found out, and when."""
    facts = {
        "provider": certificate.provider,
        "name": certificate.provider_name,
        "version": certificate.runtime_version,
        "distributions": certificate.distributions,
        "ortbench": certificate.ortbench_version,
        "machine": certificate.machine,
        "host": certificate.host,
        "devices": certificate.devices,
    }
    text = json.dumps(facts, sort_keys=True)
    return hashlib.sha256(to_utf8(text)).hexdigest()[:24]


def _files(folder: Path) -> list[Path]:
    """The newest files there, so many at most."""
    try:
        return [path for _, path in nlargest(MOST_FILES, _dated(folder.glob("*.json")))]
    except OSError:
        return []


def _dated(paths: Iterable[Path]) -> Iterator[tuple[float, Path]]:
    for path in paths:
        try:
            yield path.lstat().st_mtime, path
        except OSError:
            continue


def _read(path: Path) -> Certificate | None:
    """What a file holds; ``None`` for one that is of no use."""
    try:
        # A link may lead anywhere, and a pipe would never end.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(path, flags), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return None
            content = stream.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            return None
        certificate = msgspec.json.decode(content, type=Certificate)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if any(faults_of(certificate)) else certificate
