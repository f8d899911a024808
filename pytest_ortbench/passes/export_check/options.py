"""Options of the check of exports. Every start of pytest loads them."""

from __future__ import annotations

from pytest_ortbench.core.option import option
from pytest_ortbench.core.placing import Place


class ExportOptions:
    """What the user asks for of exports."""

    export_check: str = option(
        "auto",
        flag="--ort-export-check",
        metavar="HOW",
        help="compare the outputs of exported models with those of their source, over inputs of "
        "several sizes: auto, or off (default: auto)",
        reader="pytest_ortbench.passes.export_check.planning:read_export_check",
        to="sampling.export_check",
        place=Place(after="sessions", rank=30),
    )


OPTIONS = ExportOptions
