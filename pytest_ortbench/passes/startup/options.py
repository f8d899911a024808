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
        help="start each case again in fresh processes, with the model's files in and out of the "
        "page cache and the provider's engines cached and not",
        reader="pytest_ortbench.core.option_text:read_flag",
        asks_for="startup",
        place=Place(after="samples", rank=30),
    )


OPTIONS = StartUpOptions
