"""Every pass, one line each, in the order in which they are carried out; this is the only list."""

from __future__ import annotations

from importlib import import_module

from pytest_ortbench.passes.pass_object import Pass

#: Names of the folders, each of which has its :class:`Pass` as ``PASS``.
_NAMES = (
    "energy",
    "profile",
    "soak",
    "load",
    "stages",
    "startup",
    "processes",
    "task",
)

PASSES: tuple[Pass, ...] = tuple(import_module(f"{__package__}.{name}").PASS for name in _NAMES)


def pass_named(name: str) -> Pass:
    """Return the pass of a name, or of a name with an argument: ``load:offline``."""
    return next(entry for entry in PASSES if entry.name == name.partition(":")[0])
