"""What tests read of the energy of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ortbench.passes.energy.declaration import PASS

if TYPE_CHECKING:
    from pytest_ortbench.plugin.measured import Measured, View


def energy(ortbench: Measured) -> View:
    """``power`` (W), ``energy_per_inference`` (J), ``idle_power``, and energy net of idling.

    Measured in a pass of its own, which takes about 45 s a case.
    """
    ortbench.need(PASS.name)
    return ortbench.with_passes(PASS.view)
