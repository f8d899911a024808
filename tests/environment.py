"""Which variables the tests, and the runs of pytest inside them, must not see."""

from __future__ import annotations

import os

#: How a process learns its options, that it is one of several, and how a terminal or a CI service
#: wants its output.
FORGOTTEN = (
    "BUILD_NUMBER",
    "CI",
    "CI_PROJECT_DIR",
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_WORKSPACE",
    "NO_COLOR",
    "PYTEST_ADDOPTS",
    "PYTEST_XDIST_TESTRUNUID",
    "PYTEST_XDIST_WORKER",
    "PYTEST_XDIST_WORKER_COUNT",
    "PY_COLORS",
)


def forget() -> None:
    """Take the variables out of this process's environment."""
    for name in FORGOTTEN:
        os.environ.pop(name, None)
