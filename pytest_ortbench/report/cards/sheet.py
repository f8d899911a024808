"""What stands on the one printed page of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.answers import answers
from pytest_ortbench.report import legend
from pytest_ortbench.report.cards.answer_cards import answer_card
from pytest_ortbench.report.cards.card import AnswerCard
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.flag_notes import flag_notes

#: How bars are read.
READING = (
    "Bars: median latency (p50); whiskers and brackets: its 95 % interval. Each group has a scale "
    "of its own. Grey: not ranked, with the reason."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraphs:
    """Sentences under one heading."""

    heading: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One printed page.

    Attributes:
        title: Its heading.
        facts: One line below it: when, where, with what.
        cards: Answers, the most important first; what does not fit is counted.
        note: How to read it.
        rest: What stands below the cards for as long as there is room.
    """

    title: str
    facts: str
    cards: tuple[AnswerCard, ...]
    note: str
    rest: tuple[Paragraphs, ...] = ()


def run_sheet(shown: ShownRun) -> Sheet:
    """Gather the page of a run: which variant to use for each model, and how sure that is."""
    run = shown.run
    runtimes = (
        legend.runtime_line(label, info, run.machine.host) for label, info in run.runtimes.items()
    )
    measured = sum(entry.measured for entry in shown.entries)
    cards = tuple(answer_card(answer, ()) for answer in answers(run, shown.summaries))
    flags = [f"{note.kind.name}: {note.sentence}" for note in flag_notes(shown.entries)]
    return Sheet(
        title=one_line(f"Which provider and precision: {run.machine.host}"),
        facts=one_line(
            " · ".join(
                (
                    re.sub(r"(?<=\d)T.*", "", run.started_at),
                    f"{measured} of {len(shown.entries)} cases measured",
                    *runtimes,
                )
            )
        ),
        cards=cards,
        note=READING,
        rest=(
            whole_answer(cards),
            Paragraphs(heading="Why a number is less sure", texts=tuple(flags)),
            Paragraphs(
                heading="How it was measured",
                texts=(*legend.includes(shown.entries), f"Machine {legend.machine_line(run)}."),
            ),
        ),
    )


def whole_answer(cards: Sequence[AnswerCard]) -> Paragraphs:
    """Return the sentences that a page to look at folds."""
    texts = dict.fromkeys(
        told.text for card in cards for told in (*card.beside, *card.folded) if told.text
    )
    return Paragraphs(heading="The whole answer", texts=tuple(texts))
