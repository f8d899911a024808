"""ONNX Runtime beside other engines and frameworks, in plain sentences."""

from __future__ import annotations

import textwrap

from pytest_ortbench.analysis.against_engines import Agreement, EngineAnswer, Gap, SpeedAt, Standing
from pytest_ortbench.analysis.answers import ModelAnswer
from pytest_ortbench.analysis.ranked import Factor
from pytest_ortbench.analysis.sentences import agreement_words, digits_for, name_of, sentences
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.core.judgement import DRAWN_INPUTS
from pytest_ortbench.core.nearness import NEAR_DB
from pytest_ortbench.core.units import format_amount, significant

#: Where a reason is cut, for the same cause.
_REASON_LENGTH = 160
#: From this share on percents have no decimals.
_WHOLE = 0.01


def answer_sentences(answer: ModelAnswer) -> list[Told]:
    """Say everything of an answer: what to ship, how engines compare, and then the rest."""
    first, *further = sentences(answer)
    return [first, *engine_sentences(answer), *further]


def engine_sentences(answer: ModelAnswer) -> list[Told]:
    """Say how ONNX Runtime does beside each engine and framework, one sentence each.

    Each sentence starts with the model, so that it can be read alone.
    """
    return [_sentence(engine).said_of(f"{name_of(answer)}: ") for engine in answer.engines]


def _sentence(engine: EngineAnswer) -> Told:
    if not engine.speeds:
        reason = textwrap.shorten(engine.reason, _REASON_LENGTH, placeholder=" …")
        return Told(f"ONNX Runtime is not compared with the {engine.role} {engine.title}: {reason}")
    first, *further = engine.speeds
    before, after = _speed(first)
    lead = f" ({engine.ours}) {before}the {engine.role} "
    rest = f" ({engine.theirs}){after}, {_memory(engine.memory)}, and {_ready(engine.ready)}"
    for speed in further:
        before, after = _speed(speed)
        rest += f"; at batch {speed.batch} it {before}the other one{after}"
    rest += f"; {_agreement(engine.agreement, engine.role)}"
    if first.finding is Standing.BETTER:
        return Told("", "ONNX Runtime", f"{lead}{engine.title}{rest}")
    if first.finding is Standing.WORSE:
        return Told(f"ONNX Runtime{lead}", engine.title, rest)
    return Told(f"ONNX Runtime{lead}{engine.title}{rest}")


def _speed(speed: SpeedAt) -> tuple[str, str]:
    """What is said of the speed, before and behind the name of the other one."""
    times = _times(speed.factor)
    doubt = f" (not certain: {', '.join(speed.blurred_by)})" if speed.blurred_by else ""
    if speed.finding is Standing.BETTER:
        return f"is {times} as fast as ", doubt
    if speed.finding is Standing.WORSE:
        return f"is slower: it takes {times} as long as ", doubt
    return "shows no clear difference from ", f" in speed ({times} as fast){doubt}"


def _times(factor: Factor) -> str:
    digits = min(3, digits_for(factor.value, factor.low, factor.high))
    text = f"{significant(factor.value, digits)} times"
    if factor.low is None or factor.high is None:
        return text
    return f"{text} [{significant(factor.low, digits)}, {significant(factor.high, digits)}]"


def _memory(gap: Gap) -> str:
    if gap.finding is Standing.MISSING:
        return "the memory of one of the processes was not measured"
    if gap.finding is Standing.OPEN:
        return "neither process is shown to take less memory"
    word = "less" if gap.finding is Standing.BETTER else "more"
    value, low, high = map(_percent, (gap.value, gap.low, gap.high))
    interval = "" if low == high else f" [{low}, {high}]"
    return f"its process takes {value} %{interval} {word} memory"


def _percent(share: float) -> str:
    """A share in whole percents, or in the first digit that it has."""
    return f"{100 * share:.0f}" if share >= _WHOLE else significant(100 * share, 1)


def _ready(gap: Gap) -> str:
    if gap.finding is Standing.MISSING:
        return "the start-up time of one of them was not measured"
    if gap.finding is Standing.OPEN:
        return "neither is shown to be ready earlier"
    word = "earlier" if gap.finding is Standing.BETTER else "later"
    return f"it is ready {format_amount(gap.value, 's', 2)} {word}"


def _agreement(agreement: Agreement | None, role: str) -> str:
    if agreement is None:
        return "the agreement of their outputs was not measured"
    drawn = f" on {DRAWN_INPUTS}" if agreement.on_drawn_inputs else ""
    if agreement.rows is not None:
        rows = f"rows of {agreement.output} that agree with the reference: "
        numbers = "" if agreement.sqnr_db is None else f", and numbers to {_ratio(agreement)}"
        return f"{rows}{agreement_words(agreement.rows)}{numbers}{drawn}"
    if role == "framework":
        if agreement.sqnr_db is None:
            return f"the export is exact{drawn}"
        word = "is exact" if agreement.sqnr_db >= NEAR_DB else "agrees with its source"
        return f"the export {word} to {_ratio(agreement)}{drawn}"
    if agreement.sqnr_db is None:
        return f"all outputs equal those of the reference{drawn}"
    return f"the outputs of both agree with the reference to {_ratio(agreement)}{drawn}"


def _ratio(agreement: Agreement) -> str:
    return f"{significant(agreement.sqnr_db or 0.0, 3)} dB"
