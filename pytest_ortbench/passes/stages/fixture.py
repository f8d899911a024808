"""What tests read of the stages of a case, and what fails them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.stages.declaration import PASS

if TYPE_CHECKING:
    from pytest_ortbench.plugin.measured import Measured, View


def frames(ortbench: Measured) -> View:
    """Stages of a frame (``frame_p90``, ``preprocess_p50``, ``pipeline_rate``, …).

    Measured in a pass of its own, where ``--ort-stages`` names a file for the case.
    """
    return ortbench.with_passes(PASS.view)


def fault(result: CaseResult) -> str:
    """Return what is wrong with the user's code, empty if nothing is."""
    stages = result.stages
    return stages.reason if stages is not None and stages.faulty else ""
