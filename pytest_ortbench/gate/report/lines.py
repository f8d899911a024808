"""Verdicts of a gate, as lines, as a Markdown table and as JUnit properties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.core.metrics import SIDE_METRICS
from pytest_ortbench.core.run import Run
from pytest_ortbench.gate.numbers.acceptance import acceptance_text
from pytest_ortbench.gate.numbers.sentences import interval_text, model_note, verdict_line
from pytest_ortbench.report.escape import encodable, lines, markdown, one_line


def gate_naming(run: Run) -> Callable[[str, str], str]:
    """Return what names a case by its id, and by its runtime where there are several."""
    runtimes = {result.case.runtime.label for result in run.cases}
    runtimes |= {result.runtime for result in run.gate}
    several = len(runtimes) > 1
    return lambda case_id, runtime: f"{case_id}+{runtime}" if several else case_id


def gate_lines(run: Run, *, encoding: str = "utf-8") -> list[str]:
    """One line a case, its reasons below; nothing without a gate.

    Args:
        run: Any run.
        encoding: Of the stream that the lines go to.
    """
    if not run.gate:
        return []
    name = gate_naming(run)
    found = [""]
    for result in run.gate:
        case = name(result.case_id, result.runtime)
        found += lines(f"gate {case} against {result.baseline}: {verdict_line(result)}")
        texts = (*result.failures, *result.warnings, *accepted_texts(result), model_note(result))
        for text in filter(None, texts):
            found += lines(f"  {text}")
    found += count_lines(run.gate)
    return [encodable(line, encoding) for line in found]


def accepted_texts(result: GateResult) -> list[str]:
    """Return what of a verdict was accepted and why, a line each."""
    return [acceptance_text(finding) for finding in result.accepted]


def count_lines(results: Sequence[GateResult]) -> list[str]:
    """Count the accepted verdicts apart from the others; no line where none is accepted."""
    failed = sum(bool(result.failures) for result in results)
    accepted = sum(bool(result.accepted) and not result.failures for result in results)
    counts = {
        "failed": failed,
        "accepted": accepted,
        "passed": len(results) - failed - accepted,
    }
    shown = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return [f"gate: {shown}"] if accepted else []


def gate_markdown(run: Run) -> str:
    """A table of the verdicts; empty without a gate."""
    if not run.gate:
        return ""
    head = ["", "### Gate", "", f"| {' | '.join(HEADINGS)} |", "| --- " * len(HEADINGS) + "|"]
    rows = []
    for row in gate_rows(run):
        case, baseline, verdict, *numbers = map(markdown, row.cells)
        shown = f"**{verdict}**" if row.fails else verdict
        cells = [case, baseline, shown, *numbers, markdown("; ".join(row.reasons))]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([*head, *rows, "", *count_lines(run.gate), ""])


#: Columns of a table of verdicts.
HEADINGS = ("case", "against", "verdict", "ratio", "launches", "why")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """One verdict as a row.

    Attributes:
        cells: What stands under all headings but the last.
        reasons: What stands under the last one.
        fails: Whether the case fails.
        is_accepted: Whether something is wrong with it that was accepted.
    """

    cells: tuple[str, ...]
    reasons: tuple[str, ...]
    fails: bool
    is_accepted: bool


def gate_rows(run: Run) -> tuple[GateRow, ...]:
    """Return the verdicts of a run's gate, a row each."""
    name = gate_naming(run)
    return tuple(_row(result, name(result.case_id, result.runtime)) for result in run.gate)


def _row(result: GateResult, case: str) -> GateRow:
    contrast = result.contrasts[0] if result.contrasts else None
    is_accepted = bool(result.accepted)
    only_accepted = is_accepted and not result.failures
    verdict = "removed" if result.removed else result.verdict
    if result.identical:
        verdict += " (identical files)"
    reasons = (*result.failures, *result.warnings, *accepted_texts(result))
    return GateRow(
        cells=(
            case,
            result.baseline,
            f"{verdict}, accepted" if only_accepted else verdict,
            "" if contrast is None else interval_text(contrast),
            "" if contrast is None else str(contrast.launches),
        ),
        reasons=tuple(filter(None, (*(reasons or (result.reason,)), model_note(result)))),
        fails=bool(result.failures),
        is_accepted=is_accepted,
    )


def gate_properties(result: GateResult, name: str = "gate") -> list[tuple[str, str]]:
    """Names, that begin with ``name``, and values for JUnit XML."""
    found = [(f"{name}_verdict", result.verdict), (f"{name}_baseline", result.baseline)]
    if result.contrasts:
        contrast = result.contrasts[0]
        found += [
            (f"{name}_ratio", f"{1 + contrast.effect:.6g}"),
            (f"{name}_margin", f"{contrast.margin:.6g}"),
            (f"{name}_launches", str(contrast.launches)),
        ]
        if contrast.low is not None:
            found.append((f"{name}_ratio_low", f"{1 + contrast.low:.6g}"))
        if contrast.high is not None:
            found.append((f"{name}_ratio_high", f"{1 + contrast.high:.6g}"))
    if result.reason:
        found.append((f"{name}_reason", result.reason))
    if result.identical:
        found.append((f"{name}_identical", "true"))
    if result.latency:
        found.append((f"{name}_latency", result.latency))
    for number in result.metrics:
        if number.metric in SIDE_METRICS:
            found.append((f"{name}_{number.metric}_verdict", number.verdict))
            if number.contender is not None:
                found.append((f"{name}_{number.metric}", f"{number.contender:.6g}"))
    found += [(f"{name}_accepted", one_line(text)) for text in accepted_texts(result)]
    if result.model_relation:
        found.append((f"{name}_model_relation", result.model_relation))
    return found
