"""Options of the profile. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import option
from pytest_ortbench.core.placing import Place


class ProfileOptions:
    """What the user asks for of the profile."""

    profile: bool = option(
        False,
        flag="--ort-profile",
        kind="flag",
        help="profile each case by operator, in a separate run",
        reader="pytest_ortbench.core.option_text:read_flag",
        asks_for="profile",
        place=Place(after="samples", rank=80),
    )


OPTIONS = ProfileOptions
