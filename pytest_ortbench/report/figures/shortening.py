"""Names that are too long for their place, cut where the reader loses least."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

#: What parts of an id or of a sentence end with.
_AFTER_PART = re.compile(r"(?<=[/ ])")
#: The part of an id that is its batch size.
_BATCH = re.compile(r"b\d+[/ ]?")


def between_parts(text: str, room: int) -> str:
    """Cut ``text`` to ``room`` characters, between its parts where there are such places.

    Kept are the first and the last part and the batch size, then of the others as many as fit, the
    first ones first: ``net/fp32/cpu/b8/…/threads:4``. Text of one or two parts, and parts that are
    too long by themselves, are cut in their middle.
    """
    if len(text) <= room:
        return text
    parts = _AFTER_PART.split(text)
    kept = {0, len(parts) - 1}
    if len(kept) == len(parts) or len(_without(parts, kept)) > room:
        half = room - 1
        return f"{text[: (half + 1) // 2]}…{text[len(text) - half // 2 :]}"
    for index in sorted(range(len(parts)), key=lambda index: not _BATCH.fullmatch(parts[index])):
        if len(_without(parts, kept | {index})) <= room:
            kept.add(index)
    return _without(parts, kept)


def told_apart(labels: Sequence[str], room: int) -> list[str]:
    """Return labels without the settings that all of them have, where one has no room.

    ``cpu/b1/engine:genai/new:64`` and ``cpu/b1/engine:session/new:64`` become
    ``cpu/b1/engine:genai`` and ``cpu/b1/engine:session``.
    """
    if len(labels) < 2 or all(len(label) <= room for label in labels):
        return list(labels)
    parts = [label.split("/") for label in labels]
    shared = {part for part in set(parts[0]).intersection(*parts[1:]) if ":" in part}
    return ["/".join(part for part in own if part not in shared) or "/".join(own) for own in parts]


def _without(parts: Sequence[str], kept: Set[int]) -> str:
    """Join what is kept; the rest is told by a mark, and by what it was separated with."""
    joined = ""
    for index, part in enumerate(parts):
        if index in kept:
            joined += part
        elif index + 1 in kept:
            joined += f"…{part[-1:]}"
    return joined


def around_difference(name: str, names: Sequence[str], room: int) -> str:
    """Cut a name to ``room`` characters that hold what tells it from the others of ``names``."""
    if len(name) <= room:
        return name
    others = [other for other in names if other != name]
    # The last place up to which another name is the same: what comes next must be seen.
    shared = max((_alike(name, other) for other in others), default=0)
    if shared < room - 1:
        return f"{name[: room - 1]}…"
    start = min(max(0, shared - room // 3), len(name) - room + 1)
    if start + room - 1 >= len(name):
        return f"…{name[start:]}"
    return f"…{name[start : start + room - 2]}…"


def _alike(name: str, other: str) -> int:
    """How many characters two names start with in common."""
    pairs = enumerate(zip(name, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(name), len(other)))
