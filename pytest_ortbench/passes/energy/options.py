"""Options of the energy pass. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import option, switch
from pytest_ortbench.core.placing import Place


class EnergyOptions:
    """What the user asks for of the energy pass."""

    energy: bool = switch(
        flag="--ort-energy",
        help="also measure energy and power of each case, which takes about 45 s per case",
        asks_for="energy",
        place=Place(after="samples", rank=59),
    )
    energy_window_s: float = option(
        5.0,
        flag="--ort-energy-window",
        kind="float",
        metavar="SECONDS",
        help="shortest window of an energy measurement; use 60 to decide about a purchase "
        "(default: 5)",
        reader="pytest_ortbench.passes.energy.planning:read_energy_window",
        to="sampling.energy_window_s",
        place=Place(after="samples", rank=60),
    )


OPTIONS = EnergyOptions
