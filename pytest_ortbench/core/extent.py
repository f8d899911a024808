"""How much there is to a model file, counted and not measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Counts of one file at one set of input shapes.

    Attributes:
        nodes: Nodes of the main graph and all its subgraphs; ``None`` if the file can't be read.
        parameters: Elements of all float and integer weights; likewise.
        macs: Multiply-accumulates of one run; ``None`` if they can't be told.
        uncounted: Nodes whose multiply-accumulates are not known, and not in ``macs``.
        reason: Why something is ``None``; empty otherwise.
    """

    nodes: int | None = None
    parameters: int | None = None
    macs: int | None = None
    uncounted: int = 0
    reason: str = ""
