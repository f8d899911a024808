"""Making virtual environments and installing into them: with uv, or with venv and pip."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pytest_ortbench.core.errors import says
from pytest_ortbench.engines.registry import engine_kinds
from pytest_ortbench.runtimes.cpu_builds import INDEX, wants_cpu_build
from pytest_ortbench.runtimes.interpreters import Interpreter

#: Lines of a tool's output that go into a message.
_LINES = 6
_ANOTHER_VERSION = "Write a version that the package index has, or leave the version out"


class InstallError(Exception):
    """A tool could not do it.

    Attributes:
        text: What it said, shortened to its point.
        pythons: Minor versions of Python 3 that the packages are built for, where the tool says
            that the one at hand is not among them; empty for any other reason.
        depends_on_python: Whether another Python may have what was not found.
        hint: The next step, empty where none is known.
    """

    def __init__(
        self,
        text: str,
        *,
        pythons: Sequence[int] = (),
        depends_on_python: bool = False,
        hint: str = "",
    ) -> None:
        self.text = text
        self.pythons = tuple(pythons)
        self.depends_on_python = depends_on_python or bool(pythons)
        self.hint = hint
        super().__init__(text)


class Installer(Protocol):
    """Makes environments. Both methods raise :class:`InstallError`."""

    @property
    def name(self) -> str:
        """What it is called, for people."""

    def make(self, folder: Path, interpreter: Interpreter) -> None:
        """Make an empty environment."""

    def install(self, folder: Path, requirements: Sequence[str]) -> None:
        """Install from the user's package index, wheels only."""


def python_of(folder: Path) -> Path:
    """Return the interpreter of the environment in ``folder``."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def find_installer() -> Installer:
    """Return uv where it is there, else venv with pip."""
    uv = find_uv()
    return UvInstaller(uv) if uv else PipInstaller()


def find_uv() -> str:
    """Return uv's executable: that of the package ``uv``, else the one on PATH; empty for none."""
    try:
        from uv import find_uv_bin  # an extra

        return os.fsdecode(find_uv_bin())
    except (ImportError, FileNotFoundError):
        return shutil.which("uv") or ""


class UvInstaller:
    """uv: quick, and its cache makes a second environment of the same packages nearly free.

    Args:
        executable: Its path.
    """

    name = "uv"

    def __init__(self, executable: str) -> None:
        self._executable = executable

    def make(self, folder: Path, interpreter: Interpreter) -> None:
        """Make an empty environment; relocatable, since it is renamed when it is complete."""
        self._run("venv", "--quiet", "--relocatable", "--python", interpreter.path, str(folder))

    def install(self, folder: Path, requirements: Sequence[str]) -> None:
        """Install wheels; what is imported gets its bytecode when the environment is tried."""
        python = str(python_of(folder))
        for options, some in install_calls(requirements):
            options += ["--quiet", "--only-binary", ":all:", "--python", python]
            try:
                self._run("pip", "install", *options, "--", *some)
            except InstallError:
                if not wants_cpu_build(some):
                    raise
                # No index but PyTorch's has it, unless the user's own does.
                self._run("pip", "install", *options, "--torch-backend=cpu", "--", *some)

    def _run(self, *arguments: str) -> None:
        # No Python is downloaded unless the user has said so himself.
        environment = {"UV_PYTHON_DOWNLOADS": "never", **os.environ, "NO_COLOR": "1"}
        code, output = _run([self._executable, *arguments], environment)
        if code:
            hint = ""
            if re.search(r"not found in the package registry|Failed to fetch|[Cc]onnect", output):
                hint = (
                    "uv does not read pip's configuration. If you use an index of your own, set "
                    "UV_INDEX or UV_DEFAULT_INDEX to its address, or write it into uv.toml"
                )
            elif "there is no version of" in output:
                hint = _ANOTHER_VERSION
            reason = says("uv", _uv_reason(output))
            raise InstallError(reason, pythons=pythons_of(output), hint=hint)


class PipInstaller:
    """The standard library's venv, and pip within it."""

    name = "venv and pip"

    def make(self, folder: Path, interpreter: Interpreter) -> None:
        """Make an environment that holds pip."""
        code, output = _run([interpreter.path, "-I", "-m", "venv", str(folder)], os.environ)
        if code:
            raise InstallError(
                f"Python {interpreter.text} could not make a virtual environment "
                f"({says('python -m venv', _last_lines(output))})",
                # Debian's Python comes without it, and its pip refuses to install anything.
                hint="Run: sudo apt-get install python3-venv"
                if "ensurepip is not available" in output
                else "Run: pip install uv",
            )

    def install(self, folder: Path, requirements: Sequence[str]) -> None:
        """Install wheels."""
        for options, some in install_calls(requirements):
            self._install([str(python_of(folder)), "-m", "pip", "install", *options], some)

    def _install(self, command: list[str], requirements: Sequence[str]) -> None:
        command += [
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
            "--no-compile",
            "--only-binary=:all:",
        ]
        code, output = _run([*command, "--", *requirements], os.environ)
        if code and wants_cpu_build(requirements):
            # The user's own index may have it; no index but PyTorch's has it else.
            command += ["--extra-index-url", INDEX]
            code, output = _run([*command, "--", *requirements], os.environ)
        if code:
            # pip lists the versions that fit this Python, and says nothing of the others.
            raise InstallError(
                says("pip", _pip_reason(output)),
                pythons=pythons_of(output),
                depends_on_python="Could not find a version" in output,
                hint=_ANOTHER_VERSION if "Could not find a version" in output else "",
            )


def install_calls(requirements: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """Return the options of each call of an installer, and what it installs.

    Packages of engines that need nothing of what they ask for come last, without it.

    Args:
        requirements: As in :pep:`508`.
    """
    names = {canonicalize_name(name) for kind in engine_kinds().values() for name in kind.alone}
    alone = [text for text in requirements if canonicalize_name(Requirement(text).name) in names]
    whole = [text for text in requirements if text not in alone]
    return [(options, some) for options, some in (([], whole), (["--no-deps"], alone)) if some]


def pythons_of(output: str) -> tuple[int, ...]:
    """Read from what uv or pip say for which minor versions of Python 3 packages are built.

    Empty unless they say that this Python is the trouble.
    """
    tags = re.search(r"following Python \w+ tags?: ([^\n]*)", output)
    if tags is not None:
        return tuple(sorted({int(minor) for minor in re.findall(r"\bcp3(\d+)", tags.group(1))}))
    least = re.search(
        r"(?:does not satisfy Python|Requires-Python ?)\s*>=\s*3\.(\d+)(?:[.\d]*,\s*<\s*3\.(\d+))?",
        output,
    )
    if least is None:
        return ()
    end = int(least.group(2)) if least.group(2) else _NEWEST + 1
    return tuple(range(int(least.group(1)), end))


#: The newest minor version of Python 3 that anybody builds packages for.
_NEWEST = 14


def _run(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a tool, and give back its exit code and all that it said."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            check=False,
        )
    except OSError as error:
        return 1, f"{command[0]} can't be started: {error.strerror or error}"
    return done.returncode, done.stdout.decode("utf-8", "replace").strip()


def _uv_reason(output: str) -> str:
    """The cause in uv's words, in one line without its tree of reasoning."""
    text = " ".join(output.split())
    cause = re.search(
        r"(?:cause: |╰─▶ )(?:Because )?(.*?)( and you require|, we can conclude|\. And because|$)",
        text,
    )
    return cause.group(1).rstrip(". ") if cause else _last_lines(output)


def _pip_reason(output: str) -> str:
    errors = [
        line
        for line in output.splitlines()
        if line.startswith("ERROR: ") and not line.startswith("ERROR: Ignored the following")
    ]
    return _shortened(errors[0].removeprefix("ERROR: ")) if errors else _last_lines(output)


def _shortened(text: str, longest: int = 300) -> str:
    """Without the long middle, such as all versions that exist."""
    return text if len(text) <= longest else f"{text[: longest // 2]} … {text[-longest // 2 :]}"


def _last_lines(output: str) -> str:
    return _shortened(" ".join(" ".join(output.splitlines()[-_LINES:]).split()))
