"""Options of the user's stages. Every start of pytest loads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ortbench.core.option import option
from pytest_ortbench.core.placing import Place

if TYPE_CHECKING:
    from pytest_ortbench.passes.stages.planning import StageFile


class StageOptions:
    """What the user asks for of the user's stages."""

    stages: tuple[StageFile, ...] = option(
        (),
        flag="--ort-stages",
        kind="list",
        metavar="[PATTERN@]FILE.py",
        help="time a frame with the preprocess and postprocess of this file around inference; "
        "with several files, each names its cases: detector*@stages/detector.py",
        reader="pytest_ortbench.passes.stages.planning:read_stage_files",
        to="case.stages",
        asks_for="stages",
        place=Place(after="samples", rank=40),
    )
    python_profile: tuple[str, ...] = option(
        (),
        flag="--ort-profile-python",
        kind="list",
        metavar="PROFILER",
        help="also look at the code of --ort-stages, and at an application of --ort-serve, with "
        "Python's cprofile or tracemalloc; nothing is timed meanwhile",
        reader="pytest_ortbench.passes.stages.planning:read_profilers",
        rule="pytest_ortbench.passes.stages.planning:refuse_profile_of_nothing",
        to="sampling.python_profile",
        place=Place(after="samples", rank=41),
    )


OPTIONS = StageOptions
