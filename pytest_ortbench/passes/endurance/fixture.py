"""What tests read of the endurance of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ortbench.passes.endurance.declaration import PASS

if TYPE_CHECKING:
    from pytest_ortbench.plugin.measured import Measured, View


def endurance(ortbench: Measured) -> View:
    """``lost`` (share), ``away`` (s), ``growth`` per thousand requests, and ``leaks``: 1 or 0.

    Of the service that ``--ort-endurance`` kept under load.
    """
    ortbench.need(PASS.name)
    return ortbench.view(
        "endurance", *(name.removeprefix("endurance_") for name in PASS.metric_names)
    )
