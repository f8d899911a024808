"""Headings of panels that show one case each: short, and never the same for two of a figure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.escape import one_line

#: A model's name keeps at least this many characters, however long the rest is.
LEAST = 12


def titles(shown: Sequence[Entry], *, flags: bool = False, limit: int = 60) -> list[str]:
    """Name the case of each panel in at most about ``limit`` characters.

    Flags are the first to be shortened, to their number and then to nothing; then the name of the
    model, around where it differs from those of the other panels; the case stays whole.

    Args:
        shown: The cases of one figure.
        flags: Whether their flags are to be named.
        limit: Characters of one heading.
    """
    models = [one_line(entry.result.case.model.name) for entry in shown]
    return [
        _title(model, one_line(entry.label), entry.flags if flags else (), models, limit)
        for model, entry in zip(models, shown, strict=True)
    ]


def _title(model: str, label: str, flags: Sequence[str], models: Sequence[str], limit: int) -> str:
    named = f"{model}  {label}"
    count = f"{len(flags)} flag{'s' * (len(flags) != 1)}"
    for said in (f"  [{', '.join(flags)}]", f"  [{count}]") if flags else ():
        if len(named) + len(said) <= limit:
            return named + said
    if len(named) <= limit:
        return named
    return f"{_shorter(model, models, max(LEAST, limit - len(label) - 2))}  {label}"


def _shorter(model: str, models: Sequence[str], room: int) -> str:
    """Cut a name to ``room`` characters that hold what tells it from the others."""
    if len(model) <= room:
        return model
    others = [other for other in models if other != model]
    # The last place up to which another name is the same: what comes next must be seen.
    shared = max((_alike(model, other) for other in others), default=0)
    if shared < room - 1:
        return f"{model[: room - 1]}…"
    start = min(max(0, shared - room // 3), len(model) - room + 1)
    if start + room - 1 >= len(model):
        return f"…{model[start:]}"
    return f"…{model[start : start + room - 2]}…"


def _alike(one: str, other: str) -> int:
    """How many characters two names start with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
