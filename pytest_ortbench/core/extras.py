"""Packages that only some runs need: whether they are there is known before the measuring."""

from __future__ import annotations

from importlib.util import find_spec

from pytest_ortbench.core.errors import UsageError


def is_installed(module: str) -> bool:
    """Whether a module can be imported here; it is not."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def install_command(extra: str) -> str:
    """Return the step that installs an extra of this package."""
    return f"Run: pip install 'pytest-ortbench[{extra}]'"


def refuse_without(module: str, extra: str, *, place: str) -> None:
    """Refuse what was asked for if its package is not installed.

    Args:
        module: What is imported.
        extra: The extra of this package that brings it.
        place: What asks for it, for the message.

    Raises:
        UsageError: with the command that installs it.
    """
    if not is_installed(module):
        raise UsageError(
            f"the package {module!r} is needed, but is not installed",
            place=place,
            hint=install_command(extra),
        )
