"""Where the time goes, by operator."""

from __future__ import annotations

from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.pass_object import Pass, PassCommand, PassFigure

PASS = Pass(
    name="profile",
    result_field="profile",
    measure=".run:measure",
    lacking=".facts:OperatorProfile",
    figures=(
        PassFigure(
            name="operators",
            description="Share of the run in each operator type, by case",
            draw=".figures.operators:operators",
            place=Place(rank=10),
        ),
        PassFigure(
            name="roofline",
            description="Rate of each operator against its arithmetic intensity, below the "
            "measured peaks",
            draw=".figures.roofline:roofline",
            place=Place(rank=20),
        ),
    ),
    questions=((".questions:ProfileOperators", ".worker.operators:profile_open_case"),),
    details=".report:run_profile_lines",
    section=".report:profile_section",
    share=".numbers.peaks:with_shared_peaks",
    command=PassCommand(
        help="Where the time of an inference goes, and what limits it.",
        place=Place(after="accuracy"),
    ),
    explain_change=".bisect:explain_change",
)
