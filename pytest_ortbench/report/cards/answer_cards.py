"""The answer for each model as a card: one sentence, its variants as bars, and the rest folded."""

from __future__ import annotations

from collections.abc import Collection

from pytest_ortbench.analysis.answers import ModelAnswer
from pytest_ortbench.analysis.certainty import Certainty, certainty_of
from pytest_ortbench.analysis.engine_sentences import engine_sentences
from pytest_ortbench.analysis.headline import headline
from pytest_ortbench.analysis.sentences import sentences, with_interval
from pytest_ortbench.analysis.variant_bars import IN_ONE_WORKER, Rank, VariantBar
from pytest_ortbench.report.cards.bars import BarText, draw_bars
from pytest_ortbench.report.cards.card import AnswerCard
from pytest_ortbench.report.cards.sentence import sentence_of
from pytest_ortbench.report.escape import one_line

#: How a bar looks, and what stands beside its number.
_LOOKS = {
    Rank.RECOMMENDED: ("best", "recommended"),
    Rank.RANKED: ("plain", ""),
    Rank.UNPROVEN: ("doubt", ""),
    Rank.UNRANKED: ("faint", ""),
}
#: How a card looks, by how sure its answer is.
_KINDS = {
    Certainty.CLEAR: "sure",
    Certainty.NONE: "open",
    Certainty.SINGLE: "open",
    Certainty.NOISY: "open",
    Certainty.ONE_WORKER: "open",
}
_ALONE = (Certainty.ALONE, Certainty.SINGLE)


def answer_card(answer: ModelAnswer, flags: Collection[str]) -> AnswerCard:
    """Lay out the answer for one model.

    Args:
        answer: Any answer.
        flags: Names of the flags that the page explains: they become links.
    """
    certainty = certainty_of(answer)
    return AnswerCard(
        kind=_KINDS.get(certainty, "doubt"),
        lead=sentence_of(headline(answer), flags),
        certainty=certainty.value,
        groups=tuple(
            draw_bars(
                f"batch {group.batch}",
                [_text(bar, alone=certainty in _ALONE) for bar in group.bars],
                left_out=group.left_out,
            )
            for group in answer.bars
        ),
        beside=tuple(sentence_of(told, flags) for told in engine_sentences(answer)),
        folded=tuple(sentence_of(told, flags) for told in sentences(answer)),
    )


def _text(bar: VariantBar, *, alone: bool) -> BarText:
    kind, mark = _LOOKS[bar.rank]
    mark = mark or (IN_ONE_WORKER if bar.one_worker else "")
    mark = mark if bar.needs is None else bar.needs.value
    return BarText(
        label=one_line(bar.label),
        kind=kind,
        quantity=bar.quantity,
        value="" if bar.quantity is None else with_interval(bar.quantity),
        mark="only one ranked" if alone and bar.rank is Rank.RECOMMENDED else mark,
        note=bar.reason,
        is_flag=bar.is_flag,
    )
