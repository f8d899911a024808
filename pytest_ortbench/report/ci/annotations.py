"""Annotations of GitHub Actions: lines of a log that it shows beside a change."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.core.complaint import Complaint
from pytest_ortbench.core.units import counted
from pytest_ortbench.report.escape import one_line

#: GitHub shows so many errors of a step, and as many warnings.
MOST = 10
#: Characters of one; GitHub shows the first lines only.
_LONGEST = 1000


def annotation_lines(complaints: Sequence[Complaint]) -> list[str]:
    """Return a workflow command for each complaint, errors first; the last one counts the rest."""
    errors = [complaint for complaint in complaints if complaint.fails]
    warnings = [complaint for complaint in complaints if not complaint.fails]
    return [*_lines("error", errors), *_lines("warning", warnings)]


def _lines(command: str, complaints: Sequence[Complaint]) -> list[str]:
    shown = complaints if len(complaints) <= MOST else complaints[: MOST - 1]
    lines = [_line(command, complaint) for complaint in shown]
    rest = len(complaints) - len(shown)
    if rest:
        lines.append(
            f"::{command} title=ortbench::{counted(rest, 'further ' + command)} in the log"
        )
    return lines


def _line(command: str, complaint: Complaint) -> str:
    properties = {
        "file": complaint.path,
        "line": str(complaint.line) if complaint.path and complaint.line else "",
        "title": f"ortbench {complaint.kind}: {complaint.case or complaint.test}".rstrip(": "),
    }
    told = ",".join(f"{name}={_property(text)}" for name, text in properties.items() if text)
    return f"::{command} {told}::{_data(complaint.text)}"


def _data(text: str) -> str:
    """Return a message; its lines stay lines, in the one line of a command."""
    shown = "\n".join(one_line(line) for line in text[:_LONGEST].splitlines())
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")
