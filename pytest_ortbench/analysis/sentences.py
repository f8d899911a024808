"""An answer in plain sentences: the one source for terminal, HTML and job summary."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pytest_ortbench.analysis.answers import ModelAnswer, Winner, Withheld
from pytest_ortbench.analysis.certainty import doubts_of
from pytest_ortbench.analysis.proof import lack_words
from pytest_ortbench.analysis.recommendation import Advice, Tie
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.core.interval import with_interval_text
from pytest_ortbench.core.judgement import DRAWN_INPUTS
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.units import common_scale, significant

#: How many of a list of cases are named; the table has the rest.
_NAMED = 3

#: Share of its time below which a case is called several times faster.
_FEW = 0.4

#: Where a reason is cut, for the same cause.
_REASON_LENGTH = 90

#: How much better the best in one respect is than another, in words.
_SPEEDS = {"fastest": "faster", "soonest": "sooner"}

#: Flags that alone say too little where they are the reason why a case is not ranked.
_SPELT_OUT = {"EMULATED": "EMULATED: computed in float32"}


def sentences(answer: ModelAnswer) -> list[Told]:
    """Say what to ship and why, then what is fastest, gives the most per second, and is smallest;
    or why nothing is ranked.

    Each sentence starts with the model, so that it can be read alone.
    """
    name = name_of(answer)
    told = verdicts(answer)
    if answer.ranked == 0 or answer.throughput is None:
        return told
    if answer.ranked > 1:
        told += [
            _best("fastest", winner, answer.speed, several=len(answer.fastest) > 1)
            for winner in answer.fastest
            if winner.ranked > 1
        ]
        told += [
            _best("soonest", winner, answer.first, several=len(answer.soonest) > 1)
            for winner in answer.soonest
            if winner.ranked > 1
        ]
        told.append(_throughput(answer.throughput))
        if answer.smallest is not None and answer.smallest.ranked > 1:
            told.append(_smallest(answer.smallest))
    if answer.left_out:
        told.append(Told(f"not ranked: {_left_out(answer.left_out)}"))
    return [sentence.said_of(f"{name}: ") for sentence in told]


def verdicts(answer: ModelAnswer) -> list[Told]:
    """Say what to ship, what may not be shipped yet, or why nothing can be said.

    Wherever one run is answered for, its recommendation is these sentences.
    """
    name = name_of(answer)
    if answer.ranked == 0 or answer.throughput is None:
        told = [Told(f"no case can be ranked: {_left_out(answer.left_out)}")]
    elif answer.ranked == 1:
        told = [_the_only_one(answer, answer.throughput)]
    else:
        told = [] if answer.advice is None else [_first(answer, answer.advice)]
    if answer.withheld is not None:
        told.append(_not_yet(answer.withheld, alone=answer.ranked == 1))
    return [sentence.said_of(f"{name}: ") for sentence in told]


def agreement_words(agreement: Quantity) -> str:
    """Say a share of rows as a count, with what it proves: ``3/3 (≥29 %)``.

    The bound is the lower end of the exact (Clopper–Pearson) interval.
    """
    count = f"{round(agreement.value * agreement.samples)}/{agreement.samples}"
    return count if agreement.low is None else f"{count} (≥{100 * agreement.low:.0f} %)"


def name_of(answer: ModelAnswer) -> str:
    """Return what every sentence of an answer starts with: ``bert (seq 128, decode)``."""
    details = [f"{name} {size}" for name, size in answer.dims.items()]
    details += [
        value if name in ("workload", "where") else f"{name} {value}"
        for name, value in answer.workload.items()
        if name != "io"
    ]
    if answer.io != "end-to-end":
        details.append(f"{answer.io} I/O")
    return f"{answer.model} ({', '.join(details)})" if details else answer.model


def _the_only_one(answer: ModelAnswer, winner: Winner) -> Told:
    parts = [f"{answer.speed} {with_interval(fastest.quantity)}" for fastest in answer.fastest]
    parts += [f"{answer.first} {with_interval(soonest.quantity)}" for soonest in answer.soonest]
    parts.append(f"{_rate(winner)}{_blur(winner)}")
    return _alone(answer, winner.label, ", ".join(parts))


def _alone(answer: ModelAnswer, name: str, numbers: str) -> Told:
    """Say the numbers of one variant, which are a comparison with nothing."""
    lacked = lacked_words(answer)
    if answer.asked == 1:
        return Told(f"{as_asked(answer)}: {numbers}{lacked}{next_words(answer)}")
    return Told("only ", name, f" could be ranked: {numbers}{lacked}; no comparison")


def as_asked(answer: ModelAnswer) -> str:
    """Say what the one variant of an answer is: ``on cpu as it is``, ``on cuda in fp16``."""
    precision, where = answer.precision, answer.provider
    return f"on {where} as it is" if precision == "native" else f"on {where} in {precision}"


def next_words(answer: ModelAnswer) -> str:
    """Say what makes a comparison of one row; nothing where nothing is left to try."""
    return f"; add {' '.join(answer.untried)} to compare" if answer.untried else ""


def noise_words(answer: ModelAnswer) -> str:
    """Say what keeps the fastest variants from being told apart: ``too noisy (CPU-SHARE)``."""
    fastest = answer.fastest[0]
    if fastest.quantity.low is None:
        return "too few samples"
    return f"too noisy ({', '.join(fastest.noisy[:2])})" if fastest.noisy else "too noisy"


def lacked_words(answer: ModelAnswer) -> str:
    """Say how few of its CPUs a ranked case got, and what that leaves open; else nothing."""
    if answer.lacked is None:
        return ""
    who = "the process" if answer.ranked == 1 else answer.lacked.label
    times = "several times faster" if answer.lacked.share < _FEW else "faster"
    return f"; {who} had {answer.lacked.time.words}, so on an idle machine it may be {times}"


def _first(answer: ModelAnswer, advice: Advice) -> Told:
    """Say what to ship, or that nothing can be told of it."""
    if advice.rivals == 1 and answer.withheld is None:
        medians = ", ".join(
            f"{answer.speed} {with_interval(winner.quantity)} at batch {winner.batch}"
            for winner in answer.fastest
        )
        return _alone(answer, advice.variant, medians)
    if advice.one_worker:
        return Told(f"no recommendation: {one_worker_words(advice.one_worker)}")
    if advice.tie is Tie.UNKNOWN and answer.withheld is None:
        names = batch_list([advice.variant, *advice.ties])
        why = f"{noise_words(answer)}{lacked_words(answer)}"
        return Told(f"no recommendation: {names} can't be told apart, {why}")
    return _advice(answer, advice)


def one_worker_words(names: Sequence[str]) -> str:
    """Say of what a single process measured why it recommends nothing, and what would."""
    were = "was" if len(names) == 1 else "were"
    return (
        f"{first_names(names)} {were} measured in one worker process, which does not show how far "
        "processes differ; measure each in three or more (--ort-workers=3)"
    )


def _advice(answer: ModelAnswer, advice: Advice) -> Told:
    """``recommended: int8-static/cpu, fastest, ×2.02 [×2.00, ×2.05] faster than fp32/cpu; …``."""
    several = len(answer.fastest) > 1
    proven = " in the original's precision" if answer.withheld is not None else ""
    sole = [batch for batch in advice.batches if batch not in advice.tied_at]
    why: list[str] = []
    if advice.ties:
        why.append(f"as fast as any{proven}{_at(advice.tied_at, several)}")
        why[0] += ", and closest to the original" if advice.nearest else ""
        why += [f"fastest{_at(sole, several)}"] if sole else []
    elif proven:
        why.append(f"fastest{proven}{_at(sole, several)}")
    else:
        factor = answer.fastest[0].factor or answer.runner_up
        why.append(f"fastest{_at(sole, several)}")
        why += (
            [f"{factor_text(factor.value, factor.low, factor.high)} faster than {factor.reference}"]
            if factor
            else []
        )
        why += [f"as fast as any{_at(advice.tied_at, several)}"] if advice.tied_at else []
    if advice.smaller is not None:
        why.append(f"×{significant(advice.smaller, 3)} smaller")
    if advice.error is not None:
        why.append(f"output error {significant(100 * advice.error, 2)} %{_drawn(advice)}")
    if advice.top1 is not None:
        why.append(f"same top-1 for {agreement_words(advice.top1)}{_drawn(advice)}")
    text = f", {', '.join(why)}"
    for batch, variant in advice.elsewhere:
        text += f"; for batch {batch} {variant} is faster"
    if advice.needs is not None and answer.withheld is None:
        text += f"; {lack_words(advice.needs, on_calibration=advice.on_calibration)}"
    text += without_idle(advice)
    doubts = advice.blurred_by if answer.withheld is not None else doubts_of(answer)
    text += f" (not certain: {', '.join(doubts)})" if doubts else ""
    text += lacked_words(answer)
    return Told("recommended: ", advice.variant, text)


def without_idle(advice: Advice) -> str:
    """Say which links of a recommended chain can be left out, and what then remains."""
    if not advice.idle:
        return ""
    return f"; leave out {batch_list(advice.idle)}, which ran nothing: use {advice.working}"


def _not_yet(withheld: Withheld, *, alone: bool) -> Told:
    """Say what is faster and why it is not recommended: what judged its answers, what must."""
    factor, error = withheld.factor, withheld.error
    faster = "" if alone else ", fastest"
    if factor is not None:
        times = factor_text(factor.value, factor.low, factor.high)
        faster = f", {times} faster than {factor.reference}"
    near = "" if error is None else f", output error {significant(100 * error, 2)} %"
    basis = lack_words(withheld.needs, on_calibration=withheld.on_calibration)
    return Told("not recommended yet: ", withheld.variant, f"{faster}{near}, {basis}")


def _drawn(advice: Advice) -> str:
    return f" on {DRAWN_INPUTS}" if advice.drawn_inputs else ""


def _at(batches: Sequence[int], several: bool) -> str:
    return f" at batch {batch_list(batches)}" if several else ""


def batch_list(batches: Sequence[int | str]) -> str:
    """Return ``1``, ``1 and 8``, ``1, 8 and 32``."""
    names = [str(batch) for batch in batches]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _best(word: str, winner: Winner, metric: str, *, several: bool) -> Told:
    at = f" at batch {winner.batch}" if several else ""
    text = f", {metric} {with_interval(winner.quantity)}{_against(winner, f'{_SPEEDS[word]} than')}"
    return Told(f"{word}{at} ", winner.label, text + tie_text(winner.ties) + _blur(winner))


def _rate(winner: Winner) -> str:
    """``281 /s [180, 494]``; of anything but items, what is counted: ``141 tokens/s [83, 271]``."""
    counted = METRICS[winner.metric].counted
    return with_interval(winner.quantity, "" if counted == "items" else f"{counted}/s")


def _throughput(winner: Winner) -> Told:
    text = f", {_rate(winner)}{_against(winner, 'that of')}"
    return Told("highest throughput ", winner.label, text + tie_text(winner.ties) + _blur(winner))


def _smallest(winner: Winner) -> Told:
    text = f", {with_interval(winner.quantity)}{_against(winner, 'smaller than')}"
    return Told("smallest ", winner.label, text + tie_text(winner.ties))


def _against(winner: Winner, relation: str) -> str:
    """How far ahead it is; nothing where it can't be told from others, which the line says."""
    factor = winner.factor
    if factor is None or winner.ties:
        return ""
    text = factor_text(factor.value, factor.low, factor.high)
    return f", {text} {relation} {factor.reference}"


def factor_text(value: float, low: float | None, high: float | None) -> str:
    """Return a factor with its interval: ``×1.78 [×1.71, ×1.86]``."""
    digits = digits_for(value, low, high)

    def write(factor: float) -> str:
        return f"×{significant(factor, digits)}"

    return with_interval_text(value, low, high, write, write(value))


def with_interval(
    quantity: Quantity, unscaled: str = "", *, beside: Sequence[Quantity] = ()
) -> str:
    """Return ``3.21 ms [3.18, 3.25]``: value and interval in one unit, named once.

    Args:
        quantity: What is said.
        unscaled: Its unit in other words, which takes no prefix: ``tokens/s``.
        beside: What it is compared with at a glance, and shares its unit with; by default nothing.
    """
    scale, unit = common_scale([other.value for other in beside or (quantity,)], quantity.unit)
    if unscaled:
        scale, unit = 1.0, unscaled
    digits = digits_for(quantity.value, quantity.low, quantity.high)

    def write(value: float) -> str:
        return significant(value / scale, digits)

    text = f"{write(quantity.value)} {unit}".rstrip()
    return with_interval_text(quantity.value, quantity.low, quantity.high, write, text)


def digits_for(value: float, low: float | None, high: float | None) -> int:
    """Return how many digits to show: three, or four where three would hide the interval."""
    narrow = low is not None and high is not None and high - low < 0.01 * abs(value)
    return 4 if narrow else 3


def _blur(winner: Winner) -> str:
    return f" ({', '.join(winner.blurred_by)})" if winner.blurred_by else ""


def _left_out(cases: Sequence[tuple[str, str]]) -> str:
    if not cases:
        return "no case was measured"
    reasons: dict[str, list[str]] = {}
    for label, reason in cases:
        reasons.setdefault(reason, []).append(label)
    named = "; ".join(
        f"{first_names(labels)}: {_short(reason)}"
        for reason, labels in list(reasons.items())[:_NAMED]
    )
    more = sum(len(labels) for labels in list(reasons.values())[_NAMED:])
    return named + (f"; and {more} more" if more > 0 else "")


def first_names(names: Sequence[str], limit: int = _NAMED) -> str:
    """Spell out some names and count the rest."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")


def tie_text(ties: Sequence[str]) -> str:
    """Return what is said of those that can't be told from the best; empty without any."""
    return f"; no clear difference from {first_names(ties)}" if ties else ""


def _short(reason: str) -> str:
    """The reason on one line, cut at a blank."""
    if reason in _SPELT_OUT:
        reason = _SPELT_OUT[reason]
    return textwrap.shorten(reason, _REASON_LENGTH, placeholder=" …")
