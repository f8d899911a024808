"""Extras that a run needs and that are not installed, told before it measures anything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_ortbench.core.extras import install_command, is_installed, refuse_without

if TYPE_CHECKING:
    from pytest_ortbench.planning.matrix import Planned

#: What makes files of a precision, by the base of its recipe: module and extra.
_OF_BASES = {"int4": ("onnx_ir", "int4"), "simplified": ("onnxslim", "simplify")}


def refuse_without_prometheus(*, value: object, place: str) -> None:
    """Refuse a file in Prometheus' format that nothing could write."""
    if value:
        refuse_without("prometheus_client", "prometheus", place=place)


def missing_extras(planned: Iterable[Planned]) -> list[str]:
    """Return a note for each precision whose files can't be made here, unless they are kept.

    Args:
        planned: The cases of a run.
    """
    bases = {
        base
        for entry in planned
        if entry.conversion is not None and entry.refusal is None
        for base in (
            entry.conversion.recipe.base,
            *(("simplified",) if entry.conversion.recipe.simplify else ()),
        )
    }
    return [
        f"{base}: the package {module}, which makes files of this precision, is not installed. "
        f"{install_command(extra)}"
        for base, (module, extra) in _OF_BASES.items()
        if base in bases and not is_installed(module)
    ]
