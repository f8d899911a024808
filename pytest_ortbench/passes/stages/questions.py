"""What the host asks about the stages of a case."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.python_profile import PythonProfile
from pytest_ortbench.passes.stages.facts import FrameBlock, StagesReady
from pytest_ortbench.schema.question import CaseQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStages(CaseQuestion[StagesReady]):
    """Load the user's file of stages, check it, and warm it up for ``budget_s`` at most."""

    path: str
    budget_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFrames(CaseQuestion[FrameBlock]):
    """Send ``count`` frames through the stages, with a thread for each if ``overlapped``."""

    count: int
    overlapped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileStages(CaseQuestion[PythonProfile]):
    """Send ``count`` frames through the stages while one of Python's profilers looks."""

    profiler: str
    count: int
