"""Released versions of a distribution, from the package index that pip is configured for."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from bisect import bisect_left, bisect_right

from packaging.version import InvalidVersion, Version

from pytest_ortbench.core.errors import UsageError, first_line, nearest, says
from pytest_ortbench.core.provider_kinds import KINDS
from pytest_ortbench.core.units import counted

_PIP_S = 120.0
_RANGE = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<first>[^,.+][^+,]*?)\.\.(?P<last>[^+,]+)")


def range_ends(text: str) -> str:
    """Return the two ends of a range as they are written one by one; empty for no range."""
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        return ""
    return ",".join(f"{match['name']}=={match[end].strip()}" for end in ("first", "last"))


def expand_range(text: str, *, place: str) -> list[str] | None:
    """Return the requirements that ``onnxruntime==1.20.1..1.32.0`` stands for, oldest first.

    Both ends are among them, pre-releases are not.

    Returns:
        The requirements; ``None`` if ``text`` is no range.

    Raises:
        UsageError: if a version can't be read, or no release lies in the range.
    """
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        return None
    first, last = (_version(match[end], text, place) for end in ("first", "last"))
    name = match["name"]
    if first > last:
        raise UsageError(
            f"the range {text!r} begins with {first}, which is newer than its end, {last}",
            place=place,
            hint=f"Write {name}=={last}..{first}",
        )
    ends = f"{name}=={first},{name}=={last}"
    every = sorted(released(name, place=place, one_by_one=ends))
    stable = [version for version in every if not version.is_prerelease]
    versions = [version for version in stable if first <= version <= last]
    if len(versions) < 2:
        if len(stable) > 1:
            hint = f"Widen the range, e.g. to {name}=={_widened(stable, first, last)}"
        elif len(every) > 1:
            hint = (
                f"A range leaves out pre-releases. Name two or more, e.g. {name}=={every[-2]},"
                f"{name}=={every[-1]}"
            )
        else:
            hint = (
                f"There is only the release {every[0]}. Compare it with another distribution, e.g. "
                f"{name}=={every[0]},onnxruntime"
            )
        raise UsageError(
            f"the range {text!r} contains {counted(len(versions), 'release')} for this Python, but "
            "at least two are needed",
            place=place,
            hint=hint,
        )
    return [f"{name}=={version}" for version in versions]


def _widened(stable: list[Version], first: Version, last: Version) -> str:
    """The range from the release before ``first`` to the one behind ``last``, where they exist."""
    start = max(bisect_left(stable, first) - 1, 0)
    end = min(bisect_right(stable, last) + 1, len(stable))
    start, end = min(start, len(stable) - 2), max(end, 2)
    return f"{stable[start]}..{stable[end - 1]}"


def _version(written: str, text: str, place: str) -> Version:
    """The version at an end of a range."""
    try:
        return Version(written)
    except InvalidVersion as error:
        raise UsageError(
            f"{written!r} in {text!r} is not a version",
            place=place,
            hint="Write e.g. onnxruntime==1.20.1..1.32.0",
        ) from error


def released(name: str, *, place: str, one_by_one: str) -> list[Version]:
    """Return the versions that the index offers for this Python.

    Args:
        name: The distribution.
        place: What asks for it, for messages.
        one_by_one: How releases are named without a range.

    Raises:
        UsageError: if pip can't be asked or knows none.
    """
    if not has_pip():
        raise UsageError(
            f"pip, which lists the releases of a range, is not installed for {sys.executable}",
            place=place,
            hint=f"Run: {shlex.quote(sys.executable)} -m ensurepip. If you can't, name the "
            f"releases one by one, e.g. {one_by_one}",
        )
    command = [
        sys.executable,
        "-m",
        "pip",
        "index",
        "versions",
        "--disable-pip-version-check",
        name,
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"pip, which lists the releases of a range, did not end within {_PIP_S:.0f} s",
            place=place,
            hint="Check that pip reaches its index: "
            f"{shlex.join(command[:-2])} {shlex.quote(name)}",
        ) from error
    except OSError as error:
        raise UsageError(
            "pip, which lists the releases of a range, can't be run "
            f"({says('Python', first_line(error))})",
            place=place,
            hint=f"Name the releases one by one, e.g. {one_by_one}",
        ) from error
    match = re.search(r"^Available versions: (.+)$", done.stdout, re.MULTILINE)
    if match is None:
        told = done.stderr.strip().splitlines()
        said = f". {says('pip', told[-1])}" if told else ""
        raise UsageError(
            f"pip finds no releases of {name!r}{said}",
            place=place,
            hint=f"{_other_name(name)}. If the name is right, check that pip reaches its index",
        )
    return [Version(text.strip()) for text in match[1].split(",")]


def has_pip() -> bool:
    """Whether pip is installed beside this program; environments of uv are made without it."""
    return importlib.util.find_spec("pip") is not None


def _other_name(name: str) -> str:
    """The next step where pip does not know a package: the name that is nearest to it, if any."""
    known = {each for kind in KINDS.values() for each in kind.distributions}
    near = "" if name in known else nearest(name, sorted(known))
    if not near:
        return "If the name of the package is wrong, correct it"
    return f"If you mean {near}, write {near} in place of {name}"
