"""A case alone and beside other models, in turns. Raw facts only."""

from __future__ import annotations

from dataclasses import dataclass

#: Where the other models run.
WAYS: dict[str, str] = {
    "shared": "in the same process",
    "apart": "in processes of their own",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherLaunch:
    """Rounds of fresh processes, each with a block alone and one beside the other models.

    Attributes:
        alone_ns: Median inference of each block alone.
        beside_ns: Median inference of each block beside the others, in the same order.
        neighbour_runs: Inferences that the least busy neighbour finished meanwhile, likewise.
    """

    alone_ns: tuple[int, ...]
    beside_ns: tuple[int, ...]
    neighbour_runs: tuple[int, ...]

    @property
    def pair(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What is divided in a ratio, and what it is divided by."""
        return self.beside_ns, self.alone_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """A case beside other models in one way.

    Attributes:
        way: A key of :data:`WAYS`.
        neighbours: Ids of the cases that ran beside it.
        launches: One entry a time that fresh processes were started.
        reason: Why there is none; empty otherwise.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    way: str
    neighbours: tuple[str, ...] = ()
    launches: tuple[TogetherLaunch, ...] = ()
    reason: str = ""
    interrupted: bool = False
