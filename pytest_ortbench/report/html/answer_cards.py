"""The answer for each model as a card: one sentence, its variants as bars, and the rest folded."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from pytest_ortbench.analysis.answers import ModelAnswer
from pytest_ortbench.analysis.engine_sentences import engine_sentences
from pytest_ortbench.analysis.headline import Certainty, certainty_of, headline
from pytest_ortbench.analysis.sentences import sentences, with_interval
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.analysis.variant_bars import Bar, BatchBars, Rank
from pytest_ortbench.report.escape import one_line

#: Upper end of an interval that is drawn whole, as a multiple of the longest bar.
_LONGEST_WHISKER = 1.25
#: What stands beside the number of a bar.
_MARKS = {
    Rank.RECOMMENDED: "recommended",
    Rank.RANKED: "",
    Rank.UNPROVEN: "real inputs needed",
    Rank.UNRANKED: "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some words of a sentence; ``kind``: ``plain``, ``winner``, or ``flag``, which is a link."""

    text: str
    kind: str = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence of the answer: whom it is about, and the rest cut around words to stress."""

    about: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBar:
    """One variant as a bar; lengths are per cent of the width.

    Attributes:
        label: ``fp16/openvino:GPU``.
        rank: ``recommended``, ``ranked``, ``unproven`` or ``unranked``.
        value: ``3.21 ms [3.18, 3.25]``; empty where nothing was measured.
        mark: What stands beside the number: ``recommended``; empty for most.
        reason: One word, why it is not ranked.
        is_flag: Whether that word is a flag, which the page explains.
        length: Of the bar; ``None`` where nothing was measured.
        low: Lower end of the interval; ``None`` without one.
        high: Upper end, likewise.
        is_cut: Whether the interval goes on behind the edge.
    """

    label: str
    rank: str
    value: str
    mark: str
    reason: str
    is_flag: bool
    length: float | None
    low: float | None
    high: float | None
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBars:
    """The bars of one batch size; ``left_out`` variants are in the table alone."""

    batch: int
    bars: tuple[DrawnBar, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCard:
    """What is known of one model.

    Attributes:
        lead: Which variant to use, in fifteen words.
        certainty: How sure that is: ``clear lead``.
        certainty_kind: The same as a name for styles: ``clear``.
        groups: Its variants, one group a batch size.
        engines: ONNX Runtime beside each other engine and framework, one sentence each.
        sentences: The rest of the answer.
    """

    lead: Sentence
    certainty: str
    certainty_kind: str
    groups: tuple[DrawnBars, ...]
    engines: tuple[Sentence, ...]
    sentences: tuple[Sentence, ...]


def answer_card(answer: ModelAnswer, flags: Collection[str]) -> AnswerCard:
    """Lay out the answer for one model.

    Args:
        answer: Any answer.
        flags: Names of the flags that the page explains: they become links.
    """
    certainty = certainty_of(answer)
    return AnswerCard(
        lead=_sentence(headline(answer), flags),
        certainty=certainty.value,
        certainty_kind=certainty.name.lower(),
        groups=tuple(_drawn(group, alone=certainty is Certainty.ALONE) for group in answer.bars),
        engines=tuple(_sentence(told, flags) for told in engine_sentences(answer)),
        sentences=tuple(_sentence(told, flags) for told in sentences(answer)),
    )


def _sentence(told: Told, flags: Collection[str]) -> Sentence:
    clean = told.cleaned(one_line)
    cut = (Part(text=clean.before), Part(text=clean.winner, kind="winner"), Part(text=clean.after))
    parts = (part for piece in cut for part in _linked(piece, flags))
    return Sentence(about=clean.about, parts=tuple(part for part in parts if part.text))


def _linked(part: Part, flags: Collection[str]) -> list[Part]:
    """Cut out the flags, each of which is explained further below."""
    if part.kind != "plain" or not flags:
        return [part]
    names = "|".join(re.escape(name) for name in sorted(flags, key=len, reverse=True))
    pieces = re.split(rf"(?<![\w/-])({names})(?![\w/-])", part.text)
    return [Part(text=text, kind="flag" if i % 2 else "plain") for i, text in enumerate(pieces)]


def _drawn(group: BatchBars, *, alone: bool) -> DrawnBars:
    quantities = [bar.quantity for bar in group.bars if bar.quantity is not None]
    longest = max((quantity.value for quantity in quantities), default=0.0)
    ends = (quantity.value if quantity.high is None else quantity.high for quantity in quantities)
    whole = min(max(ends, default=0.0), longest * _LONGEST_WHISKER)
    return DrawnBars(
        batch=group.batch,
        bars=tuple(_bar(bar, max(whole, longest), alone=alone) for bar in group.bars),
        left_out=group.left_out,
    )


def _bar(bar: Bar, whole: float, *, alone: bool) -> DrawnBar:
    quantity = bar.quantity

    def share(value: float | None) -> float | None:
        if value is None or not whole:
            return None
        return round(100 * min(1.0, max(0.0, value) / whole), 2)

    high = None if quantity is None else quantity.high
    return DrawnBar(
        label=one_line(bar.label),
        rank=bar.rank.value,
        value="" if quantity is None else with_interval(quantity),
        mark="only one ranked" if alone and bar.rank is Rank.RECOMMENDED else _MARKS[bar.rank],
        reason=bar.reason,
        is_flag=bar.is_flag,
        length=None if quantity is None else share(quantity.value),
        low=None if quantity is None else share(quantity.low),
        high=share(high),
        is_cut=high is not None and high > whole,
    )
