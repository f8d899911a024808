"""The variants of one model as bars: how long each takes, which one to use, which is not ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pytest_ortbench.analysis.candidates import speed_metric
from pytest_ortbench.analysis.judgements import flag_names
from pytest_ortbench.analysis.proof import Proof
from pytest_ortbench.analysis.ranked import label_of, why_not_ranked
from pytest_ortbench.analysis.recommendation import Advice
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.flags import ONE_WORKER
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.quantity import Quantity

#: Bars of one batch size that are shown; the table has the rest.
MOST_BARS = 8
#: Of them, those that are not ranked.
MOST_UNRANKED = 3


#: What stands beside the time of a single process.
IN_ONE_WORKER = "one worker"


class Rank(Enum):
    """What a bar stands for."""

    RECOMMENDED = "recommended"
    RANKED = "ranked"
    UNPROVEN = "unproven"
    UNRANKED = "unranked"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantBar:
    """One variant at one batch size.

    Attributes:
        label: ``fp16/openvino:GPU``.
        rank: Whether it is the recommended one, one that real inputs or labels must judge first, or
            one that is not ranked at all.
        needs: What it needs first; ``None`` unless it is one of these.
        quantity: Time in seconds with its interval; ``None`` where nothing was measured.
        reason: One word, why it is not ranked: a flag (``EMULATED``), a status (``unsupported``),
            or ``unjudged``; empty if it is ranked.
        is_flag: Whether that word is a flag.
        one_worker: Whether a single process measured it, so that its time has no interval to be
            compared by.
    """

    label: str
    rank: Rank
    quantity: Quantity | None
    reason: str = ""
    is_flag: bool = False
    needs: Proof | None = None
    one_worker: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchBars:
    """The bars of one batch size, which alone may be compared by their lengths.

    Attributes:
        batch: The batch size.
        bars: The fastest first, then what is not ranked.
        left_out: Number of further variants, which the table has.
    """

    batch: int
    bars: tuple[VariantBar, ...]
    left_out: int = 0


def batch_bars(
    members: Sequence[tuple[CaseResult, Summary]],
    advice: Advice | None,
    *,
    unproven: tuple[str, Proof] | None,
    runtimes: bool,
) -> tuple[BatchBars, ...]:
    """Return the bars of one answer, smallest batch size first.

    Args:
        members: The cases of one model and set of sizes.
        advice: Which variant is recommended; ``None`` if none is.
        unproven: The variant that is faster and needs real inputs or labels first, and which of
            them; ``None`` without one.
        runtimes: Whether cases are told apart by their runtimes as well.
    """
    recommended = set() if advice is None else set(_recommended(advice))
    by_batch: dict[int, list[VariantBar]] = {}
    for result, summary in members:
        variant = label_of(result, runtimes=runtimes, batch=False)
        is_unproven = unproven is not None and variant == unproven[0]
        rank = Rank.UNPROVEN if is_unproven else Rank.RANKED
        if (result.case.batch, variant) in recommended:
            rank = Rank.RECOMMENDED
        bar = _bar(variant, summary, rank)
        if unproven is not None and bar.rank is Rank.UNPROVEN:
            bar = replace(bar, needs=unproven[1])
        by_batch.setdefault(result.case.batch, []).append(bar)
    return tuple(_cut(batch, by_batch[batch]) for batch in sorted(by_batch))


def _recommended(advice: Advice) -> list[tuple[int, str]]:
    """Return the batch sizes, each with the variant to use there."""
    return [*((batch, advice.variant) for batch in advice.batches), *advice.elsewhere]


def _bar(variant: str, summary: Summary, rank: Rank) -> VariantBar:
    is_ranked = not why_not_ranked(summary)
    measured = summary.status == "measured"
    flags = flag_names(summary.flags, "bars") if measured else ()
    reason = flags[0] if flags else "unjudged" if measured else summary.status
    quantity = summary.quantities.get(speed_metric(summary.case))
    # What stands alone is compared with nothing, and keeps the interval that it has.
    single = rank is not Rank.RECOMMENDED and ONE_WORKER in flag_names(summary.flags, "notes")
    if single and quantity is not None:
        quantity = replace(quantity, low=None, high=None)
    return VariantBar(
        label=variant,
        rank=rank if is_ranked else Rank.UNRANKED,
        quantity=quantity,
        reason="" if is_ranked else reason,
        is_flag=not is_ranked and bool(flags),
        one_worker=single,
    )


def _cut(batch: int, bars: Sequence[VariantBar]) -> BatchBars:
    ranked = _marked(sorted((bar for bar in bars if not bar.reason), key=_order))
    unranked = sorted((bar for bar in bars if bar.reason), key=_order)
    shown_unranked = unranked[: max(MOST_UNRANKED, MOST_BARS - len(ranked))]
    shown = ranked[: MOST_BARS - len(shown_unranked)]
    # What is recommended may be no faster than what ties with it, and must be seen.
    hidden = [bar for bar in ranked[len(shown) :] if bar.rank is Rank.RECOMMENDED]
    kept = (*shown[: len(shown) - len(hidden)], *hidden, *shown_unranked)
    return BatchBars(batch=batch, bars=kept, left_out=len(bars) - len(kept))


def _marked(ranked: Sequence[VariantBar]) -> list[VariantBar]:
    """Take the mark of a lack of proof from what is no faster than the recommended one anyway."""
    first = next((i for i, bar in enumerate(ranked) if bar.rank is Rank.RECOMMENDED), len(ranked))
    return [
        replace(bar, rank=Rank.RANKED, needs=None)
        if bar.rank is Rank.UNPROVEN and i > first
        else bar
        for i, bar in enumerate(ranked)
    ]


def _order(bar: VariantBar) -> float:
    return float("inf") if bar.quantity is None else bar.quantity.value
