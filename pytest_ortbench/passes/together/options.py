"""Options of several models together. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import Keyword, option
from pytest_ortbench.core.placing import Place


class TogetherOptions:
    """What the user asks for of several models together."""

    together: tuple[str, ...] = option(
        (),
        flag="--ort-together",
        kind="list",
        metavar="MODEL,MODEL",
        help="also measure each of these models while the others run beside it, in one process "
        "and in several",
        reader="pytest_ortbench.plugin.option_readers:read_several_models",
        to="case.together",
        keyword=Keyword(help="models that run beside each other", takes="models"),
        names_models=True,
        place=Place(after="samples", rank=65),
    )


OPTIONS = TogetherOptions
