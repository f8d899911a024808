"""Virtual environments that are runtimes: made once from a requirement list, then kept.

Each has a folder in the cache, named after its label and its content: all packages with their
versions and, where they came from no index, with their source, the version of Python, the platform.
So two lists that lead to the same packages share one environment. It is made under a name that
nobody uses, checked, and renamed when it is complete; whatever interrupts that leaves nothing that
could be taken for a runtime.

Environments are kept in the user's cache and their Python is started without looking into it. A
cache that another user made, or may write to, would run that user's code, so it is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pytest_ortbench.core.errors import WorkerError, cache_advice
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.home_folder import in_home
from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.core.ownership import other_writers, others_in
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.runtimes.auto import Hardware, this_hardware
from pytest_ortbench.runtimes.cpu_builds import NoVersion, as_cpu_builds
from pytest_ortbench.runtimes.environment_facts import (
    Unsound,
    check_works,
    folder_bytes,
    look,
    this_platform,
)
from pytest_ortbench.runtimes.installer import Installer, InstallError, find_installer, python_of
from pytest_ortbench.runtimes.interpreters import OLDEST, Interpreter, find_interpreters, identify
from pytest_ortbench.runtimes.package_sources import file_digests, from_urls
from pytest_ortbench.runtimes.specs import RequirementList
from pytest_ortbench.schema.wire import WireError, from_plain, to_plain

_MANIFEST = "ortbench.json"
_UNFINISHED = ".making-"
_REMOVED = ".removed-"
_FORMAT = 1
#: Versions of PyTorch's packages that a message proposes.
_VERSIONS = {"torch": "2.13.0"}
_LONGEST_NAME = 100
_OTHER_PACKAGE = (
    "Correct the name or the version of the package. If both are right, find out whether pip "
    "reaches its package index"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is written into a complete environment.

    Attributes:
        format: Version of this file's form.
        label: Short name, from the request and the versions that came of it.
        requests: Requirement lists that it answers, each with the Python it was asked for.
        python: Version of its Python.
        platform: What it runs on.
        packages: Versions of all distributions by normalised name.
        sources: Where those came from that came from no index, by normalised name.
        onnxruntime: Version of ONNX Runtime, as it says itself.
        numpy: Version of numpy.
        created_at: UTC, ISO 8601.
        size_bytes: Size of all files.
        made_with: The installer.
    """

    format: int = _FORMAT
    label: str
    requests: tuple[str, ...]
    python: str
    platform: str
    packages: dict[str, str]
    onnxruntime: str
    numpy: str
    created_at: str
    size_bytes: int
    made_with: str
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Eight digits that stand for the content."""
        content: list[object] = [sorted(self.packages.items()), self.python, self.platform]
        if self.sources:
            content.append(sorted(self.sources.items()))
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A complete environment."""

    folder: Path
    manifest: Manifest

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return python_of(self.folder)


class Environments:
    """The environments of one cache folder.

    Args:
        folder: Where they are kept; it need not exist.
        notify: Told what is being made, before it starts and when it is done.
        installer: Finds what makes them.
        interpreters: Finds the Pythons of this machine.
        check: Makes sure that ONNX Runtime works in a folder.
        hardware: Looks for the hardware of this machine.
    """

    def __init__(
        self,
        folder: Path,
        *,
        notify: Callable[[str], None],
        installer: Callable[[], Installer] = find_installer,
        interpreters: Callable[[], Sequence[Interpreter]] = find_interpreters,
        check: Callable[[Path], RuntimeInfo] = check_works,
        hardware: Callable[[], Hardware] = this_hardware,
    ) -> None:
        self.folder = folder
        self._notify = notify
        self._installer = installer
        self._interpreters = interpreters
        self._check = check
        self._hardware = hardware

    def all(self) -> list[Environment]:
        """Return the complete environments, by label."""
        try:
            folders = [
                folder for folder in self.folder.iterdir() if not folder.name.startswith(".")
            ]
        except OSError:
            return []
        environments = [
            environment for folder in folders if (environment := _read(folder)) is not None
        ]
        return sorted(
            environments,
            key=lambda environment: (environment.manifest.label, environment.folder.name),
        )

    def ensure(self, requirements: RequirementList, *, python: str = "") -> Environment:
        """Return the environment of a requirement list, making it if it is not there yet.

        Args:
            requirements: What to install.
            python: Version (``3.11``) or path of the Python to make it with; empty: that of the
                running interpreter if packages exist for it, else the newest that fits.

        Raises:
            WorkerError: ``unavailable`` with the reason, if it can't be made.
        """
        others = others_in(self.folder.parent, self.folder)
        if others:
            raise _unavailable(
                requirements,
                f"{others}, so somebody else could put a program there",
                "Name a folder of your own in the environment variable ORTBENCH_CACHE",
            )
        request = _request(requirements, python)
        named = from_urls(requirements.requirements)
        environment = self._find(request, named)
        if environment is not None:
            return environment
        try:
            with self._locked():
                environment = self._find(request, named)
                if environment is not None:  # another process was faster
                    return environment
                self._sweep()
                return self._make(requirements, python, request)
        except OSError as error:
            raise _unavailable(
                requirements,
                f"the folder {self.folder} can't be used: {error.strerror or error}",
                cache_advice(error),
            ) from error

    def remove(self, environment: Environment) -> None:
        """Remove an environment.

        Raises:
            OSError: if it can't be removed.
        """
        with self._locked():
            # Renamed first: what is half removed must not be used.
            doomed = self.folder / f"{_REMOVED}{secrets.token_hex(4)}"
            environment.folder.rename(doomed)
            self._sweep()

    def _find(self, request: str, from_urls: frozenset[str]) -> Environment | None:
        here = this_platform()
        for environment in self.all():
            if (
                request in environment.manifest.requests
                and environment.manifest.platform == here
                and from_urls <= environment.manifest.sources.keys()
            ):
                return environment
        return None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time make or remove environments."""
        from filelock import FileLock, Timeout  # only where something is made

        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            self._notify("waiting for another process that is making a runtime")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _sweep(self) -> None:
        """Remove what an interrupted process left; nobody else is at it while the lock is held."""
        for environment in self.folder.iterdir():
            if environment.name.startswith((_UNFINISHED, _REMOVED)):
                shutil.rmtree(environment, ignore_errors=True)

    def _make(self, requirements: RequirementList, python: str, request: str) -> Environment:
        """Try the Pythons that may fit, the likeliest first."""
        self._to_install(requirements)  # refused before anything is made
        installer = self._installer()
        here = self._interpreters()
        candidates = list(pythons_to_try(here, python))
        refusals: list[InstallError] = []
        while candidates:
            interpreter = candidates.pop(0)
            try:
                return self._make_with(interpreter, requirements, request, installer)
            except InstallError as error:
                if not error.depends_on_python:
                    raise _unavailable(requirements, error.text, error.hint) from error
                refusals.append(error)
                if error.pythons:
                    candidates = [c for c in candidates if c.minor[1] in error.pythons]
        raise _unavailable(requirements, *failure_without(here, python, refusals))

    def _make_with(
        self,
        interpreter: Interpreter,
        requirements: RequirementList,
        request: str,
        installer: Installer,
    ) -> Environment:
        draft = self.folder / f"{_UNFINISHED}{os.getpid()}-{secrets.token_hex(4)}"
        started = time.monotonic()
        self._notify(
            f"making the runtime {requirements.label({})} on Python {interpreter.text} with "
            f"{installer.name}, from the package index; it is kept in {self.folder}"
        )
        try:
            installer.make(draft, interpreter)
            installer.install(draft, self._to_install(requirements))
            manifest = self._checked(draft, requirements, request, installer)
            made = self._settle(draft, manifest)
        except Unsound as error:
            raise _unavailable(requirements, str(error), error.hint) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        size = format_amount(made.manifest.size_bytes, "bytes")
        seconds = time.monotonic() - started
        self._notify(f"made {made.manifest.label}: {size} in {seconds:.0f} s")
        return made

    def _to_install(self, requirements: RequirementList, *, onnxruntime: str = "") -> list[str]:
        """What to install; of PyTorch the builds without CUDA where nothing could run it."""
        wanted = requirements.to_install(onnxruntime=onnxruntime)
        hardware = self._hardware()
        if hardware.nvidia or hardware.amd or hardware.system != "linux":
            return wanted
        try:
            return as_cpu_builds(wanted)
        except NoVersion as error:
            raise _unavailable(
                requirements,
                f"{error.package} without an exact version installs gigabytes of CUDA, but there "
                "is no GPU here that uses it",
                f"Write {error.package}== and a version"
                f"{_with_version(requirements.requirements, error.package)}. Then its build for "
                "CPUs is installed",
            ) from error

    def _checked(
        self, draft: Path, requirements: RequirementList, request: str, installer: Installer
    ) -> Manifest:
        """Make sure that ONNX Runtime works there, with a numpy that fits."""
        facts = look(draft)
        fitting = self._to_install(requirements, onnxruntime=facts.version)
        if fitting != self._to_install(requirements):
            # The version was not pinned, so that only now it is known to be an old one.
            installer.install(draft, fitting)
            facts = look(draft)
        info = self._check(draft)
        return Manifest(
            label=requirements.label(facts.packages),
            requests=(request,),
            python=facts.python,
            platform=facts.platform,
            packages=facts.packages,
            sources=facts.sources,
            onnxruntime=info.version,
            numpy=info.numpy,
            created_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            size_bytes=folder_bytes(draft),
            made_with=installer.name,
        )

    def _settle(self, draft: Path, manifest: Manifest) -> Environment:
        """Give a finished environment its name, or find that the same one is there already."""
        target = self.folder / f"{manifest.label[:_LONGEST_NAME]}-{manifest.digest}"
        existing = _read(target)
        if existing is not None:
            requests = (*existing.manifest.requests, *manifest.requests)
            manifest = replace(existing.manifest, requests=tuple(dict.fromkeys(requests)))
            _write(target, manifest)
        else:
            _write(draft, manifest)
            if target.exists():  # one whose Python is gone
                target.rename(self.folder / f"{_REMOVED}{secrets.token_hex(4)}")
            draft.rename(target)
            self._sweep()
        return Environment(folder=target, manifest=manifest)


def _read(folder: Path) -> Environment | None:
    """The environment in ``folder``; ``None`` if it is not complete or its Python is gone."""
    try:
        plain = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        manifest = from_plain(Manifest, plain)
    except (OSError, ValueError, WireError):
        return None
    # The interpreter is a link to the Python that made it, which may have been removed since.
    usable = manifest.format == _FORMAT and python_of(folder).exists() and not other_writers(folder)
    return Environment(folder=folder, manifest=manifest) if usable else None


def _write(folder: Path, manifest: Manifest) -> None:
    draft = folder / f"{_MANIFEST}.draft"
    draft.write_text(json.dumps(to_plain(manifest), indent=1), encoding="utf-8")
    draft.replace(folder / _MANIFEST)


def _request(requirements: RequirementList, python: str) -> str:
    """What is kept with an environment to find it again without asking any index."""
    wish = python or f"{sys.version_info[0]}.{sys.version_info[1]}"
    files = "".join(f" ({text})" for text in file_digests(requirements.requirements))
    return f"{requirements.request}{files} for Python {wish}"


def _with_version(requirements: Sequence[str], package: str) -> str:
    """An example: requirements with an exact version of a package; empty where none is known."""
    version = _VERSIONS.get(canonicalize_name(package), "")
    if not version:
        return ""
    return ", e.g. " + "+".join(
        f"{package}=={version}" if Requirement(text).name == package else text
        for text in requirements
    )


def _unavailable(requirements: RequirementList, reason: str, hint: str = "") -> WorkerError:
    wanted = "+".join(requirements.requirements)
    return case_error(
        f"the runtime {wanted} can't be made: {reason}", hint, kind="unavailable", phase="start"
    )


def pythons_to_try(here: Sequence[Interpreter], wish: str) -> Sequence[Interpreter]:
    """Return the Pythons to try, in this order.

    Args:
        here: Those of this machine, in the order of preference.
        wish: A version (``3.11``) or the path of one; empty for none.
    """
    if not wish:
        return here
    if re.fullmatch(r"[\d.]+", wish):
        return [python for python in here if f"{python.text}.".startswith(f"{wish}.")]
    python = identify(in_home(wish))
    return [python] if python is not None else []


def failure_without(
    here: Sequence[Interpreter], wish: str, refusals: Sequence[InstallError]
) -> tuple[str, str]:
    """Say why no Python fits, and what to do.

    Args:
        here: The Pythons of this machine.
        wish: The Python that was asked for, empty for none.
        refusals: What the installer said of those that were tried.

    Returns:
        Reason and next step.
    """
    versions = ", ".join(python.text for python in here) or "none"
    if not refusals:
        if re.fullmatch(r"[\d.]+", wish):
            return f"Python {wish} is not installed here (found {versions})", _install(wish)
        return f"{wish!r} is not a Python that can be used", "Write a version, e.g. 3.12"
    built = sorted({minor for refusal in refusals for minor in refusal.pythons})
    if not built:
        return f"{refusals[0].text} (tried with Python {versions})", _OTHER_PACKAGE
    usable = [minor for minor in built if (3, minor) >= OLDEST]
    reason = f"its packages are built for {_spelt(built)}, and "
    if not usable:
        oldest = ".".join(map(str, OLDEST))
        return (
            f"{reason}the oldest that can be measured is {oldest}",
            "Write a newer version of the package",
        )
    if wish:
        return f"{reason}{wish} was asked for", f'Write e.g. python = "3.{usable[-1]}"'
    return f"{reason}none of these is here (found {versions})", _install(f"3.{usable[-1]}")


def _install(version: str) -> str:
    return (
        f"Install Python {version}, e.g. with 'uv python install {version}' or 'pyenv install "
        f"{version}'"
    )


def _spelt(minors: Sequence[int]) -> str:
    if len(minors) > 2 and list(minors) == list(range(minors[0], minors[-1] + 1)):
        return f"Python 3.{minors[0]} to 3.{minors[-1]}"
    return "Python " + " and ".join(f"3.{minor}" for minor in minors)
