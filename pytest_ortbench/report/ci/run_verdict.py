"""What a run comes to as a whole: the first line of a comment on a pull request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_ortbench.core.complaint import GATE, LIMIT, OUTPUTS, PLACEMENT, RUN, TEST, Complaint
from pytest_ortbench.core.gate import UNREACHED, GateResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.units import counted
from pytest_ortbench.gate.numbers.undecided import undecided
from pytest_ortbench.gate.report.lines import gate_naming, runtimes_of

Outcome = Literal["failed", "nothing", "interrupted", "undecided", "passed", "partly", "measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerdict:
    """What a run comes to.

    Attributes:
        outcome: ``failed``, ``nothing`` (was measured), ``interrupted``, ``undecided`` (the gate
            could not judge everything), ``passed`` (with a gate), ``partly`` (cases without a
            number) or ``measured``.
        headline: The same in one sentence, with counts.
    """

    outcome: Outcome
    headline: str


def verdict_of(run: Run, complaints: Sequence[Complaint]) -> RunVerdict:
    """Return what a run comes to.

    Args:
        run: A run that is over; one that was interrupted has no end.
        complaints: What is wrong with it.
    """
    measured = sum(result.status == "measured" for result in run.cases)
    planned = max(run.expected, len(run.cases))
    interrupted = run.finished_at is None
    # What an interruption left without a verdict is no finding.
    failing = [
        complaint
        for complaint in complaints
        if complaint.fails and not (interrupted and complaint.is_unreached)
    ]
    after = f"interrupted after {len(run.cases)} of {counted(planned, 'case')}"
    if failing:
        end = f", {after}" if interrupted else ""
        return RunVerdict(outcome="failed", headline=f"ONNX models failed: {_counts(failing)}{end}")
    if interrupted:
        return RunVerdict(outcome="interrupted", headline=f"ONNX models: {after}")
    compared = [result for result in run.gate if result.compares]
    open_ones = {(result.case_id, result.runtime) for result in compared if undecided(result)}
    cases = len({(result.case_id, result.runtime) for result in compared})
    if open_ones:
        of = f"{len(open_ones)} of {counted(cases, 'case')}"
        return RunVerdict(outcome="undecided", headline=f"ONNX models not judged in full: {of}")
    if compared:
        sides = ", ".join(dict.fromkeys(result.against for result in compared))
        accepted = sum(bool(result.accepted) for result in run.gate)
        end = f"; accepted: {counted(accepted, 'regression')}" if accepted else ""
        judged = {(result.case_id, result.runtime) for result in compared}
        new = sum(result.case.key not in judged for result in run.cases)
        end += f"; new, without a baseline: {counted(new, 'case')}" if new else ""
        are = "case is" if cases == 1 else "cases are"
        return RunVerdict(
            outcome="passed",
            headline=f"ONNX models passed: {cases} {are} no worse than {sides}{end}",
        )
    if not measured:
        return RunVerdict(outcome="nothing", headline="ONNX models: nothing was measured")
    if measured < len(run.cases):
        of = f"{measured} of {counted(len(run.cases), 'case')}"
        return RunVerdict(outcome="partly", headline=f"ONNX models measured: {of}")
    return RunVerdict(
        outcome="measured", headline=f"ONNX models measured: {counted(measured, 'case')}"
    )


def gate_complaints(
    run: Run, *, strict: bool = False, path_of: Callable[[tuple[str, str]], str] = lambda _: ""
) -> list[Complaint]:
    """Return what the gate of a run holds against its cases, and what it warns of.

    Args:
        run: Any run.
        strict: Whether what it warns of fails the run.
        path_of: The file that a case is shown at, by its key.
    """
    name = gate_naming(runtimes_of(run))
    return [
        Complaint(
            kind=GATE,
            text=text,
            about=_about(result, text),
            case=name(result),
            path=path_of((result.case_id, result.runtime)),
            fails=fails,
            is_unreached=result.cause == UNREACHED,
        )
        for result in run.gate
        for texts, fails in ((result.failures, True), (result.warnings, strict))
        for text in texts
    ]


def _about(result: GateResult, text: str) -> str:
    """What of the case a finding is about; what was not judged has none."""
    abouts = [finding.about for finding in result.findings if finding.text == text]
    return abouts[0] if abouts else result.verdict


def _counts(failing: Sequence[Complaint]) -> str:
    """How many cases, tests and reasons fail the run, by kind."""
    cases: dict[str, set[str]] = {}
    for complaint in failing:
        key = complaint.case or complaint.test or complaint.text
        cases.setdefault(complaint.kind, set()).add(key)
    words = {
        GATE: "{} at the gate",
        LIMIT: "{} beyond a limit",
        OUTPUTS: "{} with other outputs than expected",
        PLACEMENT: "{} on another provider",
    }
    parts = [
        text.format(counted(len(cases[kind]), "case"))
        for kind, text in words.items()
        if kind in cases
    ]
    known = {key for kind in words for key in cases.get(kind, ())}
    tests = set(cases.get(TEST, ())) - known
    if tests:
        parts.append(f"tests of {counted(len(tests), 'case')}")
    if RUN in cases:
        parts.append(counted(len(cases[RUN]), "other reason"))
    return ", ".join(parts) or "tests"
