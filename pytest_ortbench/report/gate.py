"""Verdicts of a gate, as lines, as a Markdown table and as JUnit properties."""

from __future__ import annotations

from pytest_ortbench.analysis.gate.sentences import interval_text, verdict_line
from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.escape import lines, markdown


def gate_lines(run: Run) -> list[str]:
    """One line a case, its reasons below; nothing without a gate."""
    if not run.gate:
        return []
    found = [""]
    for result in run.gate:
        found += lines(f"gate {result.case_id} against {result.baseline}: {verdict_line(result)}")
        for text in (*result.failures, *result.warnings):
            found += lines(f"  {text}")
    return found


def gate_markdown(run: Run) -> str:
    """A table of the verdicts; empty without a gate."""
    if not run.gate:
        return ""
    head = ["", "### Gate", "", "| case | against | verdict | ratio | launches | why |"]
    head.append("| --- | --- | --- | --- | --- | --- |")
    return "\n".join([*head, *(_row(result) for result in run.gate), ""])


def _row(result: GateResult) -> str:
    contrast = result.contrasts[0] if result.contrasts else None
    cells = [
        result.case_id,
        result.baseline,
        f"**{result.verdict}**" if result.failures else result.verdict,
        "" if contrast is None else interval_text(contrast),
        "" if contrast is None else str(contrast.launches),
        "; ".join((*result.failures, *result.warnings)) or result.reason,
    ]
    return "| " + " | ".join(markdown(cell) for cell in cells) + " |"


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
    return found
