"""A card: one sentence, groups of bars, sentences beside them, and the rest folded."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.report.cards.bars import Bars
from pytest_ortbench.report.cards.sentence import Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCard:
    """What is known of one model, or of all sides of a comparison.

    Attributes:
        kind: How it looks: ``sure``, ``doubt`` or ``open``.
        lead: The answer in fifteen words.
        certainty: How sure that is: ``clear lead``; empty where nothing is said of it.
        groups: Bars, each group with a scale of its own.
        beside: Sentences that stand open below them.
        folded: The rest of the answer.
    """

    kind: str
    lead: Sentence
    certainty: str = ""
    groups: tuple[Bars, ...] = ()
    beside: tuple[Sentence, ...] = ()
    folded: tuple[Sentence, ...] = ()
