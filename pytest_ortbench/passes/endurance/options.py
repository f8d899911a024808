"""Options of the endurance of a service. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import option
from pytest_ortbench.core.placing import Place


class EnduranceOptions:
    """What the user asks for of it."""

    endurance_s: float = option(
        0.0,
        flag="--ort-endurance",
        kind="float",
        metavar="MINUTES",
        help="also keep a steady load on the service of --ort-serve or --ort-endpoint for this "
        "long, and tell what was lost and whether its memory keeps growing",
        reader="pytest_ortbench.core.option_text:read_minutes",
        rule="pytest_ortbench.passes.endurance.planning:refuse_without_service",
        to="sampling.endurance_s",
        place=Place(after="samples", rank=25),
    )
    endurance_per_s: float = option(
        0.0,
        flag="--ort-endurance-rate",
        kind="float",
        metavar="RATE",
        help="requests a second of that load (default: 80 % of what one caller gets)",
        reader="pytest_ortbench.passes.endurance.planning:read_rate",
        rule="pytest_ortbench.passes.endurance.planning:refuse_rate_alone",
        to="sampling.endurance_per_s",
        place=Place(after="samples", rank=26),
    )
    endurance_faults: tuple[str, ...] = option(
        (),
        flag="--ort-endurance-faults",
        kind="list",
        metavar="FAULT",
        help="what is done to the service meanwhile: restart, kill, malformed, oversized, slow, or "
        "all",
        reader="pytest_ortbench.passes.endurance.planning:read_faults",
        rule="pytest_ortbench.passes.endurance.planning:refuse_idle_faults",
        to="sampling.endurance_faults",
        place=Place(after="samples", rank=27),
    )


OPTIONS = EnduranceOptions
