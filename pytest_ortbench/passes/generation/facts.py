"""The generation pass: whether what a decoder writes is right, and what its cache takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationCheck:
    """What a language model was seen to write, or why it was not looked at.

    Attributes:
        cache_bytes: Bytes of the cache at the end of a request, as it is bound.
        reason: Why nothing was looked at; empty otherwise.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    cache_bytes: int | None = None
    reason: str = ""
    interrupted: bool = False
