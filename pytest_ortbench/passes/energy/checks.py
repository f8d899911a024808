"""What single values of a window of energy may be."""

from __future__ import annotations

from pytest_ortbench.passes.energy.facts import EnergyWindow
from pytest_ortbench.schema.bound_kinds import Bound, Numbers

BOUNDS: dict[tuple[type, str], Bound] = {
    (EnergyWindow, "inferences"): Numbers(0, 1e15),
    (EnergyWindow, "duration_ns"): Numbers(1, 2**53),
}
