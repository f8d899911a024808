"""Pytest's root directory, for the console tool: it reads the same files of a project as pytest."""

from __future__ import annotations

import configparser
from pathlib import Path

#: Files that make their folder pytest's root directory, even if they are empty.
_ALWAYS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")


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
    tool = _tables_of(folder / "pyproject.toml").get("tool", {})
    if isinstance(tool, dict) and "pytest" in tool:
        return True
    return _has_section(folder / "tox.ini", "pytest") or _has_section(
        folder / "setup.cfg", "tool:pytest"
    )


def _tables_of(path: Path) -> dict[str, object]:
    import msgspec.toml

    try:
        return msgspec.toml.decode(path.read_bytes(), type=dict[str, object])
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        # Pytest itself says what is wrong with it.
        return {}


def _has_section(path: Path, name: str) -> bool:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error):
        return False
    return parser.has_section(name)
