"""The warning of a gate that could not decide."""

from __future__ import annotations

import warnings

import pytest


class InconclusiveGate(pytest.PytestWarning):
    """A gate could not decide; with ``--ort-gate-strict`` it fails instead."""


def warn(item: pytest.Item, text: str) -> None:
    """Show a warning in pytest's summary, past all filters.

    A project that turns warnings into errors would otherwise have its merges blocked by noise,
    which is what --ort-gate-strict is there to ask for.
    """
    path, line, _ = item.location
    message = warnings.WarningMessage(
        message=InconclusiveGate(text),
        category=InconclusiveGate,
        filename=path,
        lineno=(line or 0) + 1,
    )
    item.ihook.pytest_warning_recorded.call_historic(
        kwargs={
            "warning_message": message,
            "nodeid": item.nodeid,
            "when": "runtest",
            "location": None,
        }
    )
