"""Every check, in the order of a certificate. Another one is a module and its name here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pytest_ortbench.core.dotted_name import import_named
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.selfcheck.check import Check

#: Modules of ``checks/``, each with an object ``CHECK``.
_MODULES = (
    "loop",
    "events",
    "waiting",
    "placement",
    "accuracy",
    "fp32",
    "fp16",
    "int8",
    "graphs",
    "callers",
    "memory",
    "device",
)


def all_checks() -> tuple[Check[Any], ...]:
    """Return every check, those of passes last."""
    own = [import_module(f"{__package__}.checks.{module}").CHECK for module in _MODULES]
    of_passes = [
        check
        for entry in PASSES
        if entry.self_checks
        for check in import_named(entry.full_name(entry.self_checks))
    ]
    return (*own, *of_passes)
