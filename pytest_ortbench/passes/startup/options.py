"""Options of the start-up pass. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import switch
from pytest_ortbench.core.placing import Place


class StartUpOptions:
    """What the user asks for of the start-up pass."""

    startup: bool = switch(
        flag="--ort-startup",
        help="also start each case in further fresh processes, with and without the model's "
        "files in the page cache and with and without cached engines of the provider",
        asks_for="startup",
        place=Place(after="samples", rank=30),
    )


OPTIONS = StartUpOptions
