"""Options of the profile. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import switch
from pytest_ortbench.core.placing import Place


class ProfileOptions:
    """What the user asks for of the profile."""

    profile: bool = switch(
        flag="--ort-profile",
        help="profile each case by operator, in a separate run",
        asks_for="profile",
        place=Place(after="samples", rank=80),
    )


OPTIONS = ProfileOptions
