"""Options of a soak. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import option
from pytest_ortbench.core.placing import Place


class SoakOptions:
    """What the user asks for of a soak."""

    soak_s: float = option(
        0.0,
        flag="--ort-soak",
        kind="float",
        metavar="MINUTES",
        help="also run each case for this long, and look for memory that keeps growing",
        reader="pytest_ortbench.core.option_text:read_minutes",
        to="sampling.soak_s",
        asks_for="soak",
        place=Place(after="samples", rank=20),
    )
    soak_dims: dict[str, tuple[int, ...]] = option(
        {},
        flag="--ort-soak-dims",
        kind="list",
        metavar="NAME:A-B",
        help="sizes that vary within the soak: seq:1-300, or seq:16:64:300 (default: the case's)",
        reader="pytest_ortbench.plugin.option_readers:read_ranges_of_sizes",
        to="sampling.soak_dims",
        place=Place(after="samples", rank=50),
    )


OPTIONS = SoakOptions
