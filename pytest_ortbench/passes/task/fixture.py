"""What tests read of the scores of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ortbench.passes.task.declaration import PASS
from pytest_ortbench.passes.task.facts import TaskAccuracy

if TYPE_CHECKING:
    from pytest_ortbench.plugin.measured import Measured, View


def task(ortbench: Measured) -> View:
    """``metric``, ``ratio`` and ``kept`` on labelled data (``--ort-dataset``).

    The mean score, its share of the fp32 reference's, and the lower end of that share's
    95 % interval. For boxes also ``map`` and ``map50``.
    """
    return ortbench.view(PASS.name, "metric", "ratio", "kept", "map", "map50")


def task_facts(ortbench: Measured) -> TaskAccuracy | None:
    """What was scored, or why nothing could be; ``None`` without labelled data."""
    return ortbench.result.task
