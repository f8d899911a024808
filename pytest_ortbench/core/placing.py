"""Lists whose order is fixed, to which passes add entries: each says which entry it follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

Entry = TypeVar("Entry")


class Place(NamedTuple):
    """Where in a list further entries go.

    Attributes:
        after: Name of the entry that they follow; empty for the end of the list.
        rank: Order among those that follow the same entry; the default comes last.
    """

    after: str = ""
    rank: int = 1000


def placed(
    entries: Iterable[Entry],
    additions: Iterable[tuple[Place, Entry]],
    name_of: Callable[[Entry], str],
) -> tuple[Entry, ...]:
    """Return a list with further entries at their places.

    Args:
        entries: The list.
        additions: Further entries; those of one place and rank keep their order.
        name_of: Name of an entry, as places have it.

    Raises:
        ValueError: for a place after an entry that is not in the list.
    """
    following: dict[str, list[Entry]] = {}
    for place, entry in sorted(additions, key=lambda addition: addition[0].rank):
        following.setdefault(place.after, []).append(entry)
    whole: list[Entry] = []
    for entry in entries:
        whole += [entry, *following.pop(name_of(entry), ())]
    whole += following.pop("", ())
    if following:
        raise ValueError(f"nothing in the list is called {', '.join(following)}")
    return tuple(whole)
