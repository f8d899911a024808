"""One thing that fails a run, or that it warns of: what reports to CI services are made of."""

from __future__ import annotations

from dataclasses import dataclass

#: What fails a run, by kind.
GATE, LIMIT, OUTPUTS, PLACEMENT, TEST, RUN = (
    "gate",
    "limit",
    "outputs",
    "placement",
    "test",
    "run",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One thing that is wrong.

    Attributes:
        kind: ``gate``, ``limit``, ``outputs`` (not those expected), ``placement``, ``test`` (one of
            ours that failed for another reason) or ``run``.
        text: What is wrong; may have several lines.
        about: What of the case: a metric, or another word that stays the same from run to run.
        case: Name of the case; empty for what is about no case.
        test: Id of the test that told it; empty for none.
        path: File that it is shown at, relative to the repository, with slashes; empty for none.
        line: Line of that file, from 1; 0 for the file as a whole.
        fails: Whether it fails the run; if not, it is a warning.
        is_unreached: Whether it says only that no test of a case reached its end.
    """

    kind: str
    text: str
    about: str = ""
    case: str = ""
    test: str = ""
    path: str = ""
    line: int = 0
    fails: bool = True
    is_unreached: bool = False
