"""What of a gate's findings the project's file of acceptances covers.

The verdict stays as it was judged: an acceptance stands beside the finding that it is about, and
takes its sentence out of the failures.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from pytest_ortbench.core.acceptance import FILE_NAME, AcceptedEntry, accept_command
from pytest_ortbench.core.gate import (
    ACCEPTED,
    EXCEEDED,
    EXPIRED,
    OTHER_FILE,
    Acceptance,
    GateFinding,
    GateResult,
)
from pytest_ortbench.core.units import digits_apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptances:
    """The entries that hold for a run.

    Attributes:
        entries: In the order of the file.
        today: The day of the run.
        path: The file, for messages.
    """

    entries: tuple[AcceptedEntry, ...] = ()
    today: date
    path: str = ""

    def applied(
        self, result: GateResult, *, strict: bool, case_ids: Collection[str] = ()
    ) -> GateResult:
        """Return a verdict with the acceptances of its findings.

        Args:
            result: As it was judged.
            strict: Whether warnings fail, too; only then do they need an acceptance.
            case_ids: Those of the whole run.
        """
        about = [
            entry for entry in self.entries if entry.fits(result.case_id, result.runtime, case_ids)
        ]
        if not about:
            return result
        findings = tuple(
            self._judged(finding, about, result.model_digest)
            if finding.fails or strict
            else finding
            for finding in result.findings
        )
        # A sentence that belongs to no finding fails whatever was accepted.
        covered = {finding.text: finding for finding in findings if finding.acceptance}
        return replace(
            result,
            findings=findings,
            failures=_left(result.failures, covered),
            warnings=_left(result.warnings, covered),
        )

    def _judged(
        self, finding: GateFinding, entries: Iterable[AcceptedEntry], model_digest: str
    ) -> GateFinding:
        """The finding with the entry that covers it, else with the one that comes nearest."""
        acceptances = [
            self._acceptance(finding, entry, model_digest)
            for entry in entries
            if entry.is_about(finding.about)
        ]
        if not acceptances:
            return finding
        return replace(
            finding,
            acceptance=min(acceptances, key=lambda acceptance: _ORDER.index(acceptance.state)),
        )

    def _acceptance(
        self, finding: GateFinding, entry: AcceptedEntry, model_digest: str
    ) -> Acceptance:
        return Acceptance(
            state=self._state(finding, entry, model_digest),
            case=entry.case,
            metric=entry.metric,
            reason=entry.reason,
            until="" if entry.until is None else entry.until.isoformat(),
            worse_by=entry.worse_by,
        )

    def _state(self, finding: GateFinding, entry: AcceptedEntry, model_digest: str) -> str:
        if entry.until is not None and entry.until < self.today:
            return EXPIRED
        if entry.model and not model_digest.startswith(entry.model):
            return OTHER_FILE
        if entry.worse_by is None:
            return ACCEPTED
        within = finding.worse_by is not None and finding.worse_by <= entry.worse_by
        return ACCEPTED if within else EXCEEDED

    def unused(
        self, results: Iterable[GateResult], case_ids: Collection[str]
    ) -> list[AcceptedEntry]:
        """Return the entries that are about nothing that was found.

        Args:
            results: Every verdict of the run.
            case_ids: Those of the whole run.
        """
        judged = list(results)
        return [
            entry
            for entry in self.entries
            if not any(
                entry.fits(result.case_id, result.runtime, case_ids)
                and any(entry.is_about(finding.about) for finding in result.findings)
                for result in judged
            )
        ]

    def remarks(self, results: Iterable[GateResult], case_ids: Collection[str]) -> list[str]:
        """Say which entries are about nothing that was found, in one sentence."""
        idle = self.unused(results, case_ids)
        if not idle:
            return []
        named = ", ".join(entry.text for entry in idle[:_LISTED])
        more = f" and {len(idle) - _LISTED} more" if len(idle) > _LISTED else ""
        return [
            f"{FILE_NAME} accepts what this run did not find: {named}{more}. Remove an entry once "
            "the baseline contains the change"
        ]


#: Entries that are named in one sentence.
_LISTED = 5

#: Of several entries about one finding the first of these counts.
_ORDER = (ACCEPTED, EXCEEDED, OTHER_FILE, EXPIRED)


def _left(texts: Sequence[str], covered: dict[str, GateFinding]) -> tuple[str, ...]:
    """The sentences that still count; each says what an entry of no use to it says."""
    left = []
    for text in texts:
        finding = covered.get(text)
        if finding is None:
            left.append(text)
        elif not finding.is_accepted:
            left.append(f"{text}. {why_not(finding)}")
    return tuple(left)


def mends(results: Sequence[GateResult], *, strict: bool) -> list[str]:
    """Return the command that accepts everything that is wrong with a case, if anything can.

    Args:
        results: The verdicts on one case.
        strict: Whether warnings fail, too.
    """
    wrong = {
        finding.about: None
        for result in results
        for finding in result.findings
        if not finding.is_accepted and (finding.fails or strict)
    }
    if not wrong:
        return []
    metric = next(iter(wrong)) if len(wrong) == 1 else ""
    return [f"If it is intended: {accept_command(results[0].case_id, metric)}"]


def why_not(finding: GateFinding) -> str:
    """Say why an acceptance does not cover a finding."""
    acceptance = finding.acceptance
    assert acceptance is not None
    reason = f"({acceptance.reason})"
    if acceptance.state == EXPIRED:
        return f"Its acceptance expired on {acceptance.until} {reason}"
    if acceptance.state == OTHER_FILE:
        return f"It was accepted for another model file {reason}"
    allowed, now = _percent(acceptance.worse_by or 0.0), ""
    if finding.worse_by is not None:
        digits = digits_apart(finding.worse_by, acceptance.worse_by or 0.0, _percent, 3)
        allowed = _percent(acceptance.worse_by or 0.0, digits)
        now = f", and is {_percent(finding.worse_by, digits)} worse"
    return f"It was accepted up to {allowed} worse {reason}{now}"


def acceptance_text(finding: GateFinding) -> str:
    """Say what was accepted, why and until when."""
    acceptance = finding.acceptance
    assert acceptance is not None
    limits = []
    if acceptance.worse_by is not None:
        limits.append(f"up to {_percent(acceptance.worse_by)} worse")
    if acceptance.until:
        limits.append(f"until {acceptance.until}")
    limited = f" {', '.join(limits)}" if limits else ""
    return f"{finding.about} accepted{limited}: {acceptance.reason}"


def _percent(share: float, digits: int = 3) -> str:
    """``22 %``, as people write it into the file."""
    percent = 100 * share
    return f"{percent:.{digits - 3}f} %" if percent >= 1000 else f"{percent:.{digits}g} %"
