"""The last lines in the terminal, the first of HTML and job summary: one and the same."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.analysis.answers import answers
from pytest_ortbench.analysis.engine_sentences import answer_sentences
from pytest_ortbench.analysis.inaccuracy import ACCURACY
from pytest_ortbench.analysis.pauses import Pauses, pauses
from pytest_ortbench.analysis.sentences import factor_text, with_interval
from pytest_ortbench.analysis.thread_counts import SlowerThreads, slower_threads
from pytest_ortbench.core.units import counted, significant
from pytest_ortbench.report.entries import Entry, ShownRun
from pytest_ortbench.report.escape import encodable, one_line
from pytest_ortbench.report.legend import named
from pytest_ortbench.report.weights import weight_lines


def answer_lines(
    shown: ShownRun,
    *,
    encoding: str = "utf-8",
    models: int | None = None,
) -> list[str]:
    """Answer for each model: fastest, highest throughput, smallest; a tie, or why nothing ranks.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to; what it can't write gets a stand-in.
        models: Most models that are answered for; the rest are counted. All by default.

    Returns:
        Plain lines without line ends; empty for a run without cases.
    """
    model_answers = answers(shown.run, shown.summaries)
    lines = [
        encodable(one_line(sentence), encoding)
        for answer in model_answers[:models]
        for sentence in answer_sentences(answer)
    ]
    if models is not None and len(model_answers) > models:
        lines.append(f"and {len(model_answers) - models} further models: see the page")
    return [
        *lines,
        *thread_lines(shown, encoding=encoding),
        *pause_lines(shown, encoding=encoding),
        *weight_lines(shown, encoding=encoding),
        *inaccurate_lines(shown, encoding=encoding),
        *unjudged_lines(shown, encoding=encoding),
    ]


def inaccurate_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Say of the cases that answer wrongly which value misses which minimum, and what to do.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.

    Returns:
        One line for each thing that is wrong, with the cases of which it is.
    """
    by_reason: dict[str, list[Entry]] = {}
    for entry in shown.entries:
        for judgement in entry.summary.judgements:
            if judgement.of == ACCURACY and judgement.is_bad:
                by_reason.setdefault(judgement.reason, []).append(entry)
    return [
        encodable(one_line(_inaccurate_line(shown, reason, entries)), encoding)
        for reason, entries in by_reason.items()
    ]


def _inaccurate_line(shown: ShownRun, reason: str, entries: Sequence[Entry]) -> str:
    names = named([shown.name_of(entry.summary.case) for entry in entries])
    made = [entry.summary.case for entry in entries if entry.summary.case.variant.recipe]
    how = ""
    if made:
        how = (
            f"; 'ortbench accuracy MODEL --precision={made[0].variant.precision}' names the node "
            "where the error begins, and 'nodes_to_exclude' of a recipe leaves it in float"
        )
    return f"{names}: the outputs are not those of the reference: {reason}{how}"


def unjudged_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Count the measured cases that lack a judgement, and say which one they lack and why.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.

    Returns:
        One line, or none if everything could be judged.
    """
    summaries = shown.summaries
    cases: set[tuple[str, str]] = set()
    by_reason: dict[tuple[str, str], list[str]] = {}
    for summary in summaries:
        for judgement in summary.judgements:
            if judgement.is_unjudged:
                cases.add(summary.key)
                key = (judgement.of, judgement.reason)
                by_reason.setdefault(key, []).append(shown.name_of(summary.case))
    if not cases:
        return []
    measured = sum(summary.status == "measured" for summary in summaries)
    reasons = [f"{of} of {named(names)}: {why}" for (of, why), names in by_reason.items()]
    counted = f"{len(cases)} of {measured} case{'s' if measured > 1 else ''} could not be judged"
    return [encodable(one_line(f"{counted}: {'; '.join(reasons)}"), encoding)]


def thread_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Say of each case where the most threads are slower than fewer.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.
    """
    members = ((entry.result, entry.summary) for entry in shown.entries)
    return [
        encodable(one_line(_thread_line(remark)), encoding) for remark in slower_threads(members)
    ]


def pause_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Say of each case why its throughput is far below one inference by its median.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.
    """
    return [
        encodable(one_line(_pause_line(shown.name_of(entry.summary.case), entry)), encoding)
        for entry in pauses(shown.summaries)
    ]


def _pause_line(name: str, held_up: Pauses) -> str:
    slowest = "" if held_up.p99 is None else f"p99 {with_interval(held_up.p99)}"
    seen = "; ".join(filter(None, (slowest, ", ".join(held_up.blurred_by))))
    why = f" ({seen})" if seen else ""
    return (
        f"{name}: some inferences take far longer than the others{why}: the mean, "
        f"{with_interval(held_up.mean)}, is ×{significant(held_up.factor, 2)} the median, and "
        "throughput counts them all"
    )


def _thread_line(remark: SlowerThreads) -> str:
    default = " (the default)" if remark.is_default else ""
    few = counted(remark.fewer, "thread")
    doubt = f" (not certain: {', '.join(remark.blurred_by)})" if remark.blurred_by else ""
    return (
        f"{remark.case_id}: {few} {'is' if remark.fewer == 1 else 'are'} faster than "
        f"{remark.more}{default} {factor_text(remark.factor, remark.low, remark.high)}: "
        f"{with_interval(remark.faster)} against {with_interval(remark.slower)}{doubt}"
    )
