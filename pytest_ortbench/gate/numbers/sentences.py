"""What a gate tells people, one line each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pytest_ortbench.core.gate import (
    CAUSES,
    MODEL_RELATIONS,
    MODEL_SAME,
    UNREACHED,
    ContrastVerdict,
    DefaultSizes,
    GateFinding,
    GateResult,
    MetricVerdict,
    UnnamedModel,
    short_side,
)
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.units import counted, format_amount
from pytest_ortbench.gate.numbers.answers import (
    AGREEMENT,
    SQNR,
    AnswersJudged,
    is_contender_wrong,
)
from pytest_ortbench.gate.numbers.undecided import gated_metrics

#: A floor that every answer keeps.
_ANYTHING_DB = -200

#: What each statistic compares, in words.
_COMPARED = {
    "floor": "the shortest inferences take",
    "typical": "the typical inference takes",
    "median": "the median inference takes",
    "relative": "beside the yardstick of both runs, an inference takes",
}


def interval_text(contrast: ContrastVerdict) -> str:
    """Return ``×1.052 [1.031, –]`` with what is known of the interval; without one, the ratio."""
    if contrast.low is None and contrast.high is None:
        return f"×{1 + contrast.effect:.3f}"
    low = "–" if contrast.low is None else f"{1 + contrast.low:.3f}"
    high = "–" if contrast.high is None else f"{1 + contrast.high:.3f}"
    return f"×{1 + contrast.effect:.3f} [{low}, {high}]"


def latency_finding(result: GateResult) -> GateFinding:
    """Return what a gate objects to in the latency of a case that is slower, or undecided."""
    contrast = result.contrasts[0] if result.contrasts else None
    slower = result.latency_verdict == "slower"
    return GateFinding(
        about="latency",
        text=latency_failure(result) if slower else latency_warning(result),
        fails=slower,
        worse_by=None if contrast is None else max(0.0, contrast.effect),
        slack=0.0 if contrast is None else _slack(contrast, result.confirmed),
    )


def _slack(contrast: ContrastVerdict, confirmed: ContrastVerdict | None) -> float:
    """What repeated measuring may add to an effect.

    Another run has an error of its own, as large as that of this one: so the ratio may be further
    away by twice the distance to its upper bound, and by the margin.
    """
    ratio = 1 + max(0.0, contrast.effect)
    highest = ratio
    for seen in (contrast, confirmed):
        if seen is not None and seen.high is not None and math.isfinite(seen.high):
            highest = max(highest, 1 + seen.high)
    return ratio * (highest / ratio) ** 2 * (1 + contrast.margin) - ratio


def answers_finding(result: GateResult, judged: AnswersJudged) -> GateFinding:
    """Return what a gate objects to in the answers of a case."""
    return GateFinding(about="answers", text=_answers_failure(result, judged))


def _answers_failure(result: GateResult, judged: AnswersJudged) -> str:
    """How far the answers are apart, what was allowed, and the next step."""
    reason = judged.judgement.reason
    if judged.judgement.is_unjudged:
        return (
            f"the outputs could not be compared with {result.against}: {reason}. If they are "
            f"allowed to differ, set {_allowing(result, _ANYTHING_DB)}, which lets everything pass "
            "but NaN"
        )
    worse = f"less accurate than {result.against}"
    lead = worse if judged.side_is_known else f"the answers differ from those of {result.against}"
    drawn = result.answers is not None and result.answers.drawn
    text = f"{lead}: on the same {'random ' if drawn else ''}inputs, {reason}"
    if not judged.side_is_known:
        text += ". Without labelled data (--ort-dataset) nobody can tell which of the two is right"
    floor_db = _floor_below(result)
    if floor_db > 0:
        text += f". To allow as much of every later model, set {_allowing(result, floor_db)}"
    return text


def _allowing(result: GateResult, floor_db: int) -> str:
    return f'"--ort-gate={result.case_id}@sides_sqnr >= {floor_db} dB"'


def _floor_below(result: GateResult) -> int:
    """A whole number of decibels that the present answers keep."""
    ratio_db = _sides_db(result)
    return _ANYTHING_DB if ratio_db is None else math.floor(ratio_db)


def _sides_db(result: GateResult) -> float | None:
    """The signal to noise ratio between the outputs of the two sides; ``None`` where unknown."""
    ratios = [verdict.contender for verdict in result.metrics if verdict.metric == SQNR]
    return ratios[0] if ratios else None


def latency_failure(result: GateResult) -> str:
    """Return the ratio, interval, margin and launches of a regression."""
    contrast = result.contrasts[0]
    text = f"slower than {result.against}: {_estimate(contrast)}"
    if result.confirmed is not None:
        text += (
            f", confirmed by {result.confirmed.launches} more ({interval_text(result.confirmed)})"
        )
    return text


def latency_warning(result: GateResult) -> str:
    """Say why there is no verdict, and which effect would have been seen at least."""
    text = f"inconclusive against {result.against}: {result.reason}"
    if not result.contrasts:
        return text
    contrast = result.contrasts[0]
    text += f"; {_estimate(contrast)}"
    if contrast.detectable is not None and contrast.detectable > contrast.margin:
        seen = format_amount(contrast.detectable, "ratio", 2)
        text += f"; {counted(contrast.launches, 'launch', 'es')} would detect a slowdown of {seen}"
    return text


def _estimate(contrast: ContrastVerdict) -> str:
    """What was compared, the ratio with its interval, and on how many launches it rests."""
    compared = _COMPARED.get(contrast.statistic, f"the {contrast.statistic} is")
    # Stored runs are no launches.
    count = (
        ""
        if contrast.statistic in ("median", "relative")
        else f", {counted(contrast.launches, 'launch', 'es')} of both sides"
    )
    return (
        f"{compared} {interval_text(contrast)} of the baseline's time, margin "
        f"{format_amount(contrast.margin, 'ratio')}{count}"
    )


def verdict_word(result: GateResult) -> str:
    """Return the verdict in few words; that of the latency is called so beside others.

    Two runs of a shared machine have latencies that do not compare, and sizes that do.
    """
    if result.removed:
        return "removed"
    if result.identical:
        return f"{result.verdict} (identical files)"
    if result.cause == UNREACHED:
        return "not judged"
    if result.verdict == "incomparable" and gated_metrics(result):
        return "latency incomparable"
    if result.verdict == "less accurate" and not _is_contender_wrong(result):
        return "answers differ"
    return result.verdict


def _is_contender_wrong(result: GateResult) -> bool:
    """Whether it is known that the contender's answers are the wrong ones."""
    return result.answers is not None and is_contender_wrong(result.answers)


def failing_words(result: GateResult) -> list[str]:
    """Return the verdict in few words, and beside that on the answers a slowdown, too."""
    also = result.latency == "slower" and result.verdict != "slower"
    return [verdict_word(result), *(["slower"] if also else [])]


def brief_failures(result: GateResult) -> list[str]:
    """Say in a few words each why a case fails: what there is no room for elsewhere in a row."""
    if result.cause == UNREACHED:
        return [CAUSES[UNREACHED]]
    found = [finding for finding in result.findings if finding.fails and not finding.is_accepted]
    briefs = [_brief(result, finding) for finding in found]
    return briefs or list(result.failures)


def _brief(result: GateResult, finding: GateFinding) -> str:
    if finding.about == "latency" and result.contrasts:
        contrast = result.contrasts[0]
        return f"time ×{1 + contrast.effect:.3f}, margin {format_amount(contrast.margin, 'ratio')}"
    if finding.about == "answers":
        unknown = [one.reason for one in result.metrics if (one.metric, one.verdict) == _UNJUDGED]
        return _answers(result).strip() if not unknown else f"answers not judged: {unknown[0]}"
    for verdict in result.metrics:
        if verdict.metric == finding.about and verdict.verdict == "worse" and not verdict.reason:
            return f"{verdict.metric} {_change(verdict)}, may be {verdict.allowed}"
    return finding.text


#: Answers of two sides that could not be compared.
_UNJUDGED = (SQNR, "unjudged")


def _change(verdict: MetricVerdict) -> str:
    """By which share a number changed; where it has none, the number."""
    before, after = verdict.baseline, verdict.contender
    unit = METRICS[verdict.metric].unit
    if after is None:
        return "unknown"
    if not before or unit == "dB" or verdict.bound is not None:
        return format_amount(after, unit)
    return f"{100 * (after / before - 1):+.1f} %"


def alike_text(result: GateResult) -> str:
    """Say what got no worse where the latency has no verdict: ``no worse: peak_rss``."""
    if result.latency_verdict != "incomparable":
        return ""
    names = [verdict.metric for verdict in gated_metrics(result) if verdict.verdict != "worse"]
    return f"no worse: {', '.join(names)}" if names else ""


def verdict_line(result: GateResult) -> str:
    """Return one line on a case, for tables and logs."""
    if result.identical:
        return f"{verdict_word(result)}{_worse(result)}"
    answers = _answers(result)
    alike = alike_text(result)
    text = (f"{alike}; " if alike else "") + verdict_word(result)
    if result.latency:
        text += f"{answers}  latency {result.latency}"
    if result.contrasts:
        text += f"  {interval_text(result.contrasts[0])}"
        text += f"  {counted(result.contrasts[0].launches, 'launch', 'es')}"
    elif result.reason and not result.removed:
        text += f"  {result.reason}"
    return text + ("" if result.latency else answers) + _worse(result)


def worse_metrics(result: GateResult) -> list[str]:
    """Return the metrics that got worse by more than is allowed."""
    return [verdict.metric for verdict in result.metrics if verdict.verdict == "worse"]


def _worse(result: GateResult) -> str:
    names = worse_metrics(result)
    return f"  worse: {', '.join(names)}" if names else ""


def _answers(result: GateResult) -> str:
    """How far the answers are apart, with what was allowed or why nobody knows."""
    text = answers_text(result)
    for number in result.metrics:
        if number.metric == SQNR and number.verdict == "less accurate":
            return f"  answers {text}, allowed {number.allowed}"
        if number.metric == SQNR and number.verdict == "unjudged" and not result.latency:
            return f"  answers {text}: {number.reason}"
    return f"  answers {text}" if text else ""


def answers_text(result: GateResult) -> str:
    """Say how far the answers of two sides are apart: ``-39.9 dB``, ``exact``, ``not judged``."""
    if result.identical:
        return "identical files"
    numbers = {number.metric: number for number in result.metrics}
    ratio, share = numbers.get(SQNR), numbers.get(AGREEMENT)
    if ratio is None:
        return ""
    if ratio.verdict == "unjudged":
        return "not judged"
    if ratio.contender is not None:
        drawn = " on random inputs" if result.answers is not None and result.answers.drawn else ""
        return f"{ratio.contender:.1f} dB{drawn}"
    if share is not None and share.contender is not None and share.contender < 1:
        return f"{100 * share.contender:.4g} % agree"
    return "exact"


def model_note(result: GateResult) -> str:
    """Say how the model files of the sides are related, where they are not the same; or nothing.

    Of a removed case: where its file is now, if it is there.
    """
    if result.moved_to:
        return f"model: the same file is now {result.moved_to}"
    if result.model_relation in ("", MODEL_SAME):
        return ""
    text = f"model: {MODEL_RELATIONS[result.model_relation]}"
    if result.baseline_digest:
        text += f" (SHA-256 of the baseline's file: {result.baseline_digest[:12]}…)"
    return text


def sizes_note(result: GateResult) -> str:
    """Say what is fed of which the two models have other default sizes; or nothing."""
    return "; ".join(map(_size_note, result.default_sizes))


def _size_note(size: DefaultSizes) -> str:
    fed = f"input {size.input!r} is fed {list(size.fed)}"
    if size.fed == size.baseline:
        return (
            f"{fed}, the default sizes of the baseline's model; those of the new model would be "
            f"{list(size.contender)}"
        )
    return (
        f"{fed}, since the new model takes no other sizes; the default sizes of the baseline's "
        f"model would be {list(size.baseline)}"
    )


def unconfirmed(again: ContrastVerdict) -> str:
    """Say why a slowdown that was measured again does not count."""
    excluded = again.verdict in ("same", "faster")
    return "measured again with another seed, " + (
        "it was not slower by the margin or more"
        if excluded
        else "the slowdown was neither shown nor excluded"
    )


def listed(ids: Sequence[str]) -> str:
    """Spell out five and count the rest."""
    shown = ", ".join(ids[:5])
    return shown + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def unnamed_notes(models: Iterable[UnnamedModel]) -> list[str]:
    """Say which models of a baseline a run does not name: those that are gone first."""
    by_kind: dict[tuple[bool, str], list[str]] = {}
    for model in models:
        by_kind.setdefault((model.is_there, model.baseline), []).append(model.place)
    return [
        f"gate: {short_side(baseline)} has {counted(len(places), 'model')} that this run does not "
        f"name{'' if is_there else ' (deleted from the working tree)'}: {listed(places)}"
        for (is_there, baseline), places in sorted(by_kind.items())
    ]
