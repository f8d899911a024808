"""Options of transfers. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import switch
from pytest_ortbench.core.placing import Place


class TransferOptions:
    """What the user asks for of transfers."""

    transfers: bool = switch(
        flag="--ort-transfers",
        help="also time each case with its values on the host and on the device in turns: the "
        "ratio is what copies cost",
        asks_for="transfers",
        place=Place(after="samples", rank=66),
    )


OPTIONS = TransferOptions
