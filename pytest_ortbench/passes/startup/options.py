"""Options of the start-up pass. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import option
from pytest_ortbench.core.placing import Place


class StartUpOptions:
    """What the user asks for of the start-up pass."""

    startup: bool = option(
        False,
        flag="--ort-startup",
        kind="flag",
        help="also start each case in further fresh processes, with and without the model's "
        "files in the page cache and with and without cached engines of the provider",
        reader="pytest_ortbench.core.option_text:read_flag",
        asks_for="startup",
        place=Place(after="samples", rank=30),
    )


OPTIONS = StartUpOptions
