"""GitLab's report of code quality: what is wrong, beside the change of a merge request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from pytest_ortbench.core.complaint import RUN, TEST, Complaint
from pytest_ortbench.report.escape import one_line

#: Characters of a description.
_LONGEST = 1000
#: What has no file is shown at the root of the repository.
_NOWHERE = "."


def render_code_quality(complaints: Sequence[Complaint]) -> str:
    """Write a report, an entry for each complaint; an empty one tells GitLab that all is well.

    The same complaint has the same fingerprint in every run, whatever its numbers are, so that
    GitLab tells what is new from what the target branch has, too.
    """
    entries: dict[str, dict[str, object]] = {}
    for complaint in complaints:
        fingerprint = _fingerprint(complaint)
        entries.setdefault(
            fingerprint,
            {
                "description": _description(complaint),
                "check_name": f"ortbench-{complaint.kind}",
                "fingerprint": fingerprint,
                "severity": _severity(complaint),
                "location": {
                    "path": complaint.path or _NOWHERE,
                    "lines": {"begin": max(1, complaint.line)},
                },
            },
        )
    return json.dumps(list(entries.values()), indent=2, ensure_ascii=False) + "\n"


def _description(complaint: Complaint) -> str:
    name = complaint.case or complaint.test
    return one_line(f"{name}: {complaint.text}" if name else complaint.text)[:_LONGEST]


def _severity(complaint: Complaint) -> str:
    if not complaint.fails:
        return "minor"
    return "critical" if complaint.kind in (TEST, RUN) else "major"


def _fingerprint(complaint: Complaint) -> str:
    # Without a word of its own the text is all that tells one from another.
    about = complaint.about or (complaint.test if complaint.case else complaint.text)
    facts = (complaint.kind, complaint.case, about, str(complaint.fails))
    return hashlib.sha256("\0".join(facts).encode("utf-8", "surrogatepass")).hexdigest()
