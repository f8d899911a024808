"""The answer for one model in at most fifteen words; how sure it is stands beside it."""

from __future__ import annotations

from pytest_ortbench.analysis.answers import ModelAnswer
from pytest_ortbench.analysis.proof import NOUNS
from pytest_ortbench.analysis.ranked import Factor
from pytest_ortbench.analysis.recommendation import Advice, Tie
from pytest_ortbench.analysis.sentences import (
    as_asked,
    batch_list,
    factor_text,
    first_names,
    name_of,
    next_words,
    noise_words,
    with_interval,
)
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.analysis.variant_bars import Rank
from pytest_ortbench.core.quantity import Quantity


def headline(answer: ModelAnswer) -> Told:
    """Say which variant to use, how long it takes, and by how much it is ahead.

    Sizes and intervals count as words; there are at most fifteen of them behind the name.
    """
    return _headline(answer).said_of(f"{name_of(answer)}: ")


def _headline(answer: ModelAnswer) -> Told:
    advice, withheld = answer.advice, answer.withheld
    if answer.ranked == 0:
        return Told("no variant can be ranked; the reasons are below")
    if advice is None:
        faster = "" if withheld is None else withheld.variant
        needs = "" if withheld is None else NOUNS[withheld.needs]
        return Told("none is recommended yet: ", faster, f" needs {needs} first")
    time = _time(answer, advice)
    time += f" ({batch_list(advice.idle)} idle)" if advice.idle else ""
    if advice.rivals == 1 and withheld is None:
        return _without_rival(answer, advice, time)
    if advice.one_worker:
        names = first_names(advice.one_worker, 2)
        were = "was" if len(advice.one_worker) == 1 else "were"
        return Told(f"no recommendation: {names} {were} measured in one worker")
    if withheld is not None:
        lead = "faster" if withheld.factor is None else f"{_times(withheld.factor)} faster"
        return Told("use ", advice.variant, f": {time}; {withheld.variant} is {lead}, unproven")
    others = len(advice.ties) - 1
    more = f" and {others} more" if others > 0 else ""
    if advice.tie is Tie.UNKNOWN:
        names = f", {advice.ties[0]}{more}" if more else f" and {advice.ties[0]}"
        lacked = answer.lacked
        why = noise_words(answer) if lacked is None else f"one had {lacked.time.words}"
        return Told(f"{advice.variant}{names} can't be told apart: {why}")
    if advice.ties:
        return Told("use ", advice.variant, f": {time}, as fast as {advice.ties[0]}{more}")
    factor = answer.runner_up
    ahead = f", {_times(factor)} faster than {factor.reference}" if factor else ""
    return Told("use ", advice.variant, f": {time}{ahead}")


def _without_rival(answer: ModelAnswer, advice: Advice, time: str) -> Told:
    """Say what one row alone shows: its time, and what to add, or why it has no rival."""
    if answer.asked == 1 and answer.lacked is not None:
        return Told(f"{time} {as_asked(answer)}, with {answer.lacked.time.words}")
    if answer.asked == 1:
        return Told(f"{time} {as_asked(answer)}{next_words(answer)}")
    barred = next((bar for group in answer.bars for bar in group.bars if bar.reason), None)
    why = "" if barred is None else f" ({barred.label}: {barred.reason})"
    return Told("only ", advice.variant, f" could be ranked: {time}{why}")


def _time(answer: ModelAnswer, advice: Advice) -> str:
    quantity = _recommended(answer, advice)
    return "" if quantity is None else with_interval(quantity)


def _recommended(answer: ModelAnswer, advice: Advice) -> Quantity | None:
    """Return the time of the recommended variant at the smallest batch size where it leads."""
    return next(
        (
            bar.quantity
            for group in answer.bars
            for bar in group.bars
            if bar.rank is Rank.RECOMMENDED and bar.label == advice.variant
        ),
        None,
    )


def _times(factor: Factor) -> str:
    return factor_text(factor.value, factor.low, factor.high)
