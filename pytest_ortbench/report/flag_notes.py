"""What the flags of a run mean: a sentence for each that appears."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.core.flag_kind import FlagKind
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.escape import one_line

#: A flag of a later version that this one has no words for.
_UNKNOWN = "see the documentation of the version that wrote this document"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagNote:
    """A flag that appears in the run, on how many cases.

    Attributes:
        kind: What it means.
        cases: How many have it.
        detail: What was seen, where that is the same in all of them; empty where it differs, and
            of flags that bar a case, whose details are told by themselves.
    """

    kind: FlagKind
    cases: int
    detail: str = ""

    @property
    def sentence(self) -> str:
        """How many cases, what it means, what was seen, what to do."""
        cases = "1 case" if self.cases == 1 else f"{self.cases} cases"
        seen = f" ({self.detail})" if self.detail else ""
        return one_line(f"{cases}: {self.kind.meaning}{seen}. {self.kind.advice}")


def flag_notes(shown: Sequence[Entry]) -> tuple[FlagNote, ...]:
    """Return the flags that appear, the gravest first."""
    counts = Counter(name for entry in shown for name in set(entry.flags))
    details: dict[str, set[str]] = {}
    for flag in (flag for entry in shown for flag in entry.result.flags):
        details.setdefault(flag.name, set()).add(flag.detail)
    known = [
        FlagNote(
            kind=kind,
            cases=counts[name],
            detail="" if kind.severity == "bars" else _only(details.get(name, set())),
        )
        for name, kind in FLAGS.items()
        if counts[name]
    ]
    unknown = [
        FlagNote(
            kind=FlagKind(name=name, severity="notes", meaning="not known here", advice=_UNKNOWN),
            cases=count,
        )
        for name, count in counts.items()
        if name not in FLAGS
    ]
    order = ("bars", "blurs", "notes")
    return tuple(sorted((*known, *unknown), key=lambda note: order.index(note.kind.severity)))


def flag_lines(entries: Sequence[Entry]) -> list[str]:
    """Name all flags of rows, those with the same ones together: ``CPU-SHARE SPREAD: a, b``.

    Args:
        entries: Rows of a run.
    """
    cases: dict[str, list[str]] = {}
    for entry in entries:
        cases.setdefault(" ".join(entry.flags), []).append(entry.result.case.case_id)
    return [one_line(f"{flags}: {', '.join(names)}") for flags, names in cases.items()]


def _only(texts: set[str]) -> str:
    return next(iter(texts)) if len(texts) == 1 else ""
