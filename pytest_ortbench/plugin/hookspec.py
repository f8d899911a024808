"""Hooks for others. Write one into a ``conftest.py`` or a plugin; arguments may be left out.

With ``optionalhook`` the rest of the suite runs where this plugin is not installed, too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case
    from pytest_ortbench.core.outcome import CaseResult


@pytest.hookspec
def pytest_ortbench_models(config: pytest.Config) -> Sequence[str | os.PathLike[str]] | None:
    """Return model specifications to measure when neither option, ini key nor marker names any.

    They are written as behind ``--ort-models``, or are paths; relative ones start at pytest's root
    directory. All plugins are asked and their models are added up; without any, the shipped
    suites measure the default set, and any other test fails. Example::

        @pytest.hookimpl(optionalhook=True)
        def pytest_ortbench_models(config):
            return ["exports/detector.onnx", "builtin:mobilenet_v2"]
    """


@pytest.hookspec(firstresult=True)
def pytest_ortbench_inputs(case: Case, config: pytest.Config) -> Path | str | None:
    """Return where the real inputs of a case are, as behind ``--ort-inputs``; ``None``: not mine.

    It is asked once a case, while the plan is made and before anything runs, so it may write the
    file that it names; a relative path starts at pytest's root directory. The first plugin that
    answers wins over ``--ort-inputs``. Example::

        @pytest.hookimpl(optionalhook=True)
        def pytest_ortbench_inputs(case):
            if case.model.name == "detector":
                return f"photos/batch_{case.batch}.npz"
    """


@pytest.hookspec
def pytest_ortbench_machine_info(config: pytest.Config) -> dict[str, str] | None:
    """Return facts about this machine that belong into every run document.

    They inform, and do not decide whether two runs compare. Numbers are kept as text; anything else
    is refused before a case is measured. Example::

        @pytest.hookimpl(optionalhook=True)
        def pytest_ortbench_machine_info():
            return {"asset": "lab-07", "cooling": "passive"}
    """


@pytest.hookspec
def pytest_ortbench_case_measured(result: CaseResult, config: pytest.Config) -> None:
    """Hear of each case as soon as its result is on disk, whatever became of it.

    No worker runs meanwhile, so that nothing done here disturbs a measurement. Example::

        @pytest.hookimpl(optionalhook=True)
        def pytest_ortbench_case_measured(result):
            if result.failure is not None:
                print(result.case.case_id, result.status, result.failure.message)
    """
