"""Where the time goes, by operator."""

from __future__ import annotations

from pytest_ortbench.passes.pass_object import Pass

PASS = Pass(
    name="profile",
    result_field="profile",
    measure=".run:measure",
    lacking="...core.profile:OperatorProfile",
    options=".options:ProfileOptions",
)
