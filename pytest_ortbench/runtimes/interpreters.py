"""Which Pythons this machine has, for runtimes that we make.

They are looked for on PATH, among the versions of pyenv (of which PATH has the active ones only)
and those that uv installed. None is downloaded.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: The oldest Python that a worker runs on.
OLDEST = (3, 10)

_NAME = re.compile(r"python3?(\.\d+)?(\.exe)?")
_ASK_S = 20.0
_QUESTION = """\
import json, sys
base = getattr(sys, "_base_executable", None) or sys.executable
# Packages are built neither for 32 bits nor for Pythons without the global lock.
fits = sys.maxsize > 2**32 and "t" not in getattr(sys, "abiflags", "")
print(json.dumps([base, list(sys.version_info[:3]), fits and sys.implementation.name == "cpython"]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """One Python.

    Attributes:
        path: Its executable; not that of a virtual environment.
        version: Major, minor and micro.
    """

    path: str
    version: tuple[int, int, int]

    @property
    def minor(self) -> tuple[int, int]:
        """Major and minor version: what packages are built for."""
        return self.version[:2]

    @property
    def text(self) -> str:
        """``3.11.7``."""
        return ".".join(map(str, self.version))


def find_interpreters() -> tuple[Interpreter, ...]:
    """Return one CPython a minor version, that of the running interpreter first, then newer first.

    Those that are older than :data:`OLDEST` are left out.
    """
    return newest_of_each_minor([_running(), *filter(None, map(identify, _candidates()))])


def newest_of_each_minor(interpreters: Iterable[Interpreter]) -> tuple[Interpreter, ...]:
    """Keep the first interpreter of each usable minor version, in the order of preference.

    Args:
        interpreters: The running one first.
    """
    kept: dict[tuple[int, int], Interpreter] = {}
    for interpreter in interpreters:
        if interpreter.minor >= OLDEST:
            kept.setdefault(interpreter.minor, interpreter)
    first = next(iter(kept), None)
    return tuple(kept[minor] for minor in sorted(kept, key=lambda m: (m != first, -m[0], -m[1])))


@cache
def identify(path: Path) -> Interpreter | None:
    """Start a Python and ask what it is; ``None`` if it is none that packages are built for."""
    try:
        done = subprocess.run(
            [str(path), "-I", "-c", _QUESTION],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_ASK_S,
            check=True,
        )
        base, version, fits = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if not fits:
        return None
    return Interpreter(path=str(base), version=(version[0], version[1], version[2]))


def _running() -> Interpreter:
    base = getattr(sys, "_base_executable", None) or sys.executable
    return Interpreter(path=base, version=sys.version_info[:3])


def _candidates() -> Iterator[Path]:
    """Executables that may be Pythons, each file once."""
    seen: set[Path] = set()
    for path in (*_on_path(), *_of_pyenv(), *_of_uv()):
        real = path.resolve()
        if real not in seen:
            seen.add(real)
            yield path


def _on_path() -> Iterator[Path]:
    for text in os.environ.get("PATH", "").split(os.pathsep):
        folder = Path(text)
        # Shims run whatever version is active, and fail for the others; pyenv's own come below.
        if not text or "shims" in folder.parts:
            continue
        try:
            names = sorted(entry.name for entry in folder.iterdir() if _NAME.fullmatch(entry.name))
        except OSError:
            continue
        yield from (folder / name for name in names)


def _of_pyenv() -> Iterator[Path]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from _executables(root / "versions")
    yield from _executables(root / "pyenv-win" / "versions")


def _of_uv() -> Iterator[Path]:
    chosen = os.environ.get("UV_PYTHON_INSTALL_DIR")
    yield from _executables(Path(chosen) if chosen else _data_of_uv() / "python")


def _data_of_uv() -> Path:
    """Where uv keeps what it installs: by XDG everywhere but on Windows, on macOS, too."""
    roaming = os.environ.get("APPDATA", "")
    if sys.platform == "win32" and roaming:
        return Path(roaming) / "uv" / "data"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "uv"


def _executables(versions: Path) -> Iterator[Path]:
    """The interpreter in each folder of versions, the newest micro version first."""
    try:
        folders = [folder for folder in versions.iterdir() if folder.is_dir()]
    except OSError:
        return
    for folder in sorted(folders, key=lambda interpreter: _numbers(interpreter.name), reverse=True):
        for path in (folder / "bin" / "python3", folder / "python.exe"):
            if path.is_file():
                yield path


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]
