"""Verdicts of a gate, as lines, as a Markdown table and as JUnit properties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from pytest_ortbench.core.case import Key
from pytest_ortbench.core.gate import UNREACHED, GateResult
from pytest_ortbench.core.metrics import SIDE_METRICS
from pytest_ortbench.core.run import Run
from pytest_ortbench.gate.numbers.acceptance import acceptance_text
from pytest_ortbench.gate.numbers.sentences import (
    alike_text,
    answers_text,
    brief_failures,
    failing_words,
    interval_text,
    model_note,
    sizes_note,
    verdict_line,
    worse_metrics,
)
from pytest_ortbench.gate.numbers.undecided import Undecided, undecided
from pytest_ortbench.report.escape import cut, encodable, lines, markdown, markdown_row, one_line
from pytest_ortbench.report.legend import named


def gate_naming(runtimes: Collection[str]) -> Callable[[GateResult], str]:
    """Return what names the case of a verdict: as a table of cases does, by its whole id.

    Args:
        runtimes: Labels of the runtimes that there are.
    """
    several = len(runtimes) > 1
    return lambda result: (
        result.case_id + (f"+{result.runtime}" if several else "") + result.role_note
    )


def runtimes_of(run: Run) -> set[str]:
    """Return the labels of the runtimes of a run's cases and verdicts."""
    runtimes = {result.case.runtime.label for result in run.cases}
    return runtimes | {result.runtime for result in run.gate}


def gate_lines(run: Run, *, told: Collection[Key] = (), encoding: str = "utf-8") -> list[str]:
    """Return one line a case, its reasons below; nothing without a gate.

    Args:
        run: Any run.
        told: Cases whose failures the reader has seen already: of them stands the verdict.
        encoding: Of the stream that the lines go to.
    """
    if not run.gate:
        return []
    name = gate_naming(runtimes_of(run))
    parts = [""]
    for result in run.gate:
        parts += lines(f"gate {name(result)} against {result.against}: {verdict_line(result)}")
        failures = () if (result.case_id, result.runtime) in told else result.failures
        told_besides = (*accepted_texts(result), sizes_note(result), model_note(result))
        texts = (*failures, *result.warnings, *told_besides)
        for text in filter(None, texts):
            parts += lines(f"  {text}")
    parts += count_lines(run.gate, runtimes_of(run))
    return [encodable(line, encoding) for line in parts]


def accepted_texts(result: GateResult) -> list[str]:
    """Return what of a verdict was accepted and why, a line each."""
    return [acceptance_text(finding) for finding in result.accepted]


def count_lines(results: Sequence[GateResult], runtimes: Collection[str]) -> list[str]:
    """Count the verdicts, and say what could not be judged of how many cases and why.

    Args:
        results: The verdicts.
        runtimes: Labels of the runtimes that cases are told apart by.

    Returns:
        Lines without line ends; none where every verdict is plain.
    """
    open_ones = {id(result): undecided(result) for result in results}
    counts = Counter(_class_of(result, bool(open_ones[id(result)])) for result in results)
    if not counts["accepted"] and not any(open_ones.values()):
        return []
    shown = ", ".join(f"{counts[word]} {word}" for word in _CLASSES if counts[word])
    return [f"gate: {shown}", *_undecided_lines(results, open_ones, gate_naming(runtimes))]


#: What a verdict may count as, in the order of the line.
_CLASSES = ("failed", "accepted", "not judged", "not judged in full", "passed")


def _class_of(result: GateResult, is_open: bool) -> str:
    if result.cause == UNREACHED:
        return "not judged"
    if result.failures:
        return "failed"
    if result.accepted:
        return "accepted"
    return "not judged in full" if is_open else "passed"


def _undecided_lines(
    results: Sequence[GateResult],
    open_ones: Mapping[int, tuple[Undecided, ...]],
    name: Callable[[GateResult], str],
) -> list[str]:
    """Say of how many cases something could not be judged: what, of which, and why."""
    names: dict[tuple[str, str], list[str]] = {}
    keys = set()
    for result in results:
        for part in open_ones[id(result)]:
            keys.add((result.case_id, result.runtime))
            names.setdefault((part.about, part.reason), []).append(name(result))
    if not keys:
        return []
    cases = len({(result.case_id, result.runtime) for result in results})
    reasons = [f"{about} of {named(of)}: {why}" for (about, why), of in names.items()]
    counted = f"{len(keys)} of {cases} case{'s' if cases > 1 else ''}"
    return [one_line(f"gate: {counted} could not be judged in full: {'; '.join(reasons)}")]


def gate_table_head() -> list[str]:
    """Return the headings of a Markdown table of verdicts, and the rule below them."""
    return [markdown_row(HEADINGS), "| --- " * len(HEADINGS) + "|"]


def gate_row_markdown(row: GateRow) -> str:
    """Return a verdict as a row of a Markdown table; one that fails is bold.

    What fails it is told in whole sentences beside the table, and what it warns of.
    """
    case, baseline, verdict, *numbers = map(markdown, row.cells)
    shown = f"**{verdict}**" if row.fails else verdict
    why = "; ".join((*(cut(text, _LONGEST_REASON) for text in row.briefs), *row.remarks))
    return markdown_row([case, baseline, shown, *numbers, markdown(why)])


#: A reason in a cell of a table.
_LONGEST_REASON = 120


#: Columns of a table of verdicts.
HEADINGS = ("case", "against", "verdict", "answers", "ratio", "launches", "why")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """One verdict as a row.

    Attributes:
        cells: What stands under all headings but the last.
        reasons: What stands under the last one.
        remarks: The same without what fails it and what it warns of.
        briefs: What fails it, in few words each.
        fails: Whether the case fails.
        is_accepted: Whether something is wrong with it that was accepted.
        is_open: Whether something of it could not be judged.
        is_resized: Whether it is not fed the default sizes of both its models.
        is_faster: Whether the contender takes less time.
    """

    cells: tuple[str, ...]
    reasons: tuple[str, ...]
    remarks: tuple[str, ...]
    briefs: tuple[str, ...]
    fails: bool
    is_accepted: bool
    is_open: bool
    is_faster: bool
    is_resized: bool

    @property
    def is_news(self) -> bool:
        """Whether a reviewer wants to see it at once: it says more than "same"."""
        return any((self.fails, self.is_accepted, self.is_open, self.is_faster, self.is_resized))


def gate_rows(run: Run) -> tuple[GateRow, ...]:
    """Return the verdicts of a run's gate, a row each."""
    name = gate_naming(runtimes_of(run))
    return tuple(_row(result, name(result)) for result in run.gate)


#: Findings whose texts hold the reason of a verdict.
_SAYING_WHY = ("latency", "comparison", "status", "removed")


def _row(result: GateResult, case: str) -> GateRow:
    contrast = result.contrasts[0] if result.contrasts else None
    is_accepted = bool(result.accepted)
    only_accepted = is_accepted and not result.failures
    worse = worse_metrics(result)
    words = ", ".join(failing_words(result))
    verdict = ", worse: ".join(filter(None, (words, ", ".join(worse))))
    remarks = (
        *accepted_texts(result),
        alike_text(result),
        _reason(result),
        sizes_note(result),
        model_note(result),
    )
    return GateRow(
        cells=(
            case,
            result.against,
            f"{verdict}, accepted" if only_accepted else verdict,
            answers_text(result),
            "" if contrast is None else interval_text(contrast),
            "" if contrast is None else str(contrast.launches),
        ),
        reasons=tuple(filter(None, (*result.failures, *result.warnings, *remarks))),
        remarks=tuple(filter(None, remarks)),
        briefs=tuple(brief_failures(result)) if result.failures else (),
        fails=bool(result.failures),
        is_accepted=is_accepted,
        is_open=bool(undecided(result)),
        is_faster=result.latency_verdict == "faster",
        is_resized=bool(result.default_sizes),
    )


def _reason(result: GateResult) -> str:
    """Why the latency has no verdict, where no finding says so already."""
    texts = result.failures or result.warnings
    is_said = any(finding.about in _SAYING_WHY for finding in result.findings)
    # Older documents have failures and no findings.
    return "" if is_said or (texts and not result.findings) else result.reason


def gate_properties(result: GateResult, name: str = "gate") -> list[tuple[str, str]]:
    """Return names, which begin with ``name``, and values for JUnit XML."""
    properties = [(f"{name}_verdict", result.verdict), (f"{name}_baseline", result.baseline)]
    if result.contrasts:
        contrast = result.contrasts[0]
        properties += [
            (f"{name}_ratio", f"{1 + contrast.effect:.6g}"),
            (f"{name}_margin", f"{contrast.margin:.6g}"),
            (f"{name}_launches", str(contrast.launches)),
        ]
        if contrast.low is not None:
            properties.append((f"{name}_ratio_low", f"{1 + contrast.low:.6g}"))
        if contrast.high is not None:
            properties.append((f"{name}_ratio_high", f"{1 + contrast.high:.6g}"))
    if result.reason:
        properties.append((f"{name}_reason", result.reason))
    if result.identical:
        properties.append((f"{name}_identical", "true"))
    if result.latency:
        properties.append((f"{name}_latency", result.latency))
    for number in result.metrics:
        if number.metric in SIDE_METRICS:
            properties.append((f"{name}_{number.metric}_verdict", number.verdict))
            if number.contender is not None:
                properties.append((f"{name}_{number.metric}", f"{number.contender:.6g}"))
    properties += [
        (f"{name}_unjudged", one_line(f"{part.about}: {part.reason}")) for part in undecided(result)
    ]
    properties += [(f"{name}_accepted", one_line(text)) for text in accepted_texts(result)]
    if result.model_relation:
        properties.append((f"{name}_model_relation", result.model_relation))
    return properties
