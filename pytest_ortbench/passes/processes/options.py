"""Options of several processes. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import option
from pytest_ortbench.core.placing import Place


class ProcessOptions:
    """What the user asks for of several processes."""

    processes: tuple[int, ...] = option(
        (),
        flag="--ort-processes",
        kind="list",
        metavar="N,N",
        help="also measure each case in this many processes at a time: rate and memory of all",
        reader="pytest_ortbench.plugin.option_readers:read_counts",
        to="sampling.processes",
        asks_for="processes",
        place=Place(after="spinning"),
    )


OPTIONS = ProcessOptions
