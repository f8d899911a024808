"""The acceptances of a project: where their file lies, and what day it is.

pytest and the console tool read the same file: that of pytest's root directory, or one that is
named.
"""

from __future__ import annotations

import configparser
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.acceptance import FILE_NAME

if TYPE_CHECKING:
    from pytest_ortbench.gate.numbers.acceptance import Acceptances

#: Files that make their folder pytest's root directory, even if they are empty.
_ALWAYS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")


def today() -> date:
    """Return the day, by the clock of this machine: the only place that asks it."""
    return date.today()


def load_acceptances(named: Path | None, root: Path) -> Acceptances:
    """Read what a project accepts.

    Args:
        named: A file that somebody named, which has to be there.
        root: pytest's root directory, whose file counts otherwise.

    Raises:
        UsageError: if the file has a fault.
    """
    from pytest_ortbench.gate.numbers.acceptance import Acceptances
    from pytest_ortbench.store.accepted import read_accepted

    path = root / FILE_NAME if named is None else named
    entries = read_accepted(path, must_exist=named is not None)
    return Acceptances(entries=entries, today=today(), path=str(path))


def root_directory(start: Path) -> Path:
    """Return pytest's root directory for a call without arguments in ``start``."""
    above = (start, *start.parents)
    for folder in above:
        if _configures_pytest(folder):
            return folder
    for name in ("pyproject.toml", "setup.py"):
        for folder in above:
            if (folder / name).is_file():
                return folder
    return start


def _configures_pytest(folder: Path) -> bool:
    if any((folder / name).is_file() for name in _ALWAYS):
        return True
    tool = _toml(folder / "pyproject.toml").get("tool", {})
    if isinstance(tool, dict) and "pytest" in tool:
        return True
    return _has_section(folder / "tox.ini", "pytest") or _has_section(
        folder / "setup.cfg", "tool:pytest"
    )


def _toml(path: Path) -> dict[str, object]:
    import msgspec.toml

    try:
        return msgspec.toml.decode(path.read_bytes(), type=dict[str, object])
    except (OSError, ValueError, msgspec.MsgspecError):  # pytest itself says what is wrong with it
        return {}


def _has_section(path: Path, name: str) -> bool:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error):
        return False
    return parser.has_section(name)
