"""Sections of a Markdown text that must not grow beyond a size: what has no room is counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Room for the line that says what was left out.
_NOTE = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPart:
    """A part of a text, which can be shortened by rows.

    Attributes:
        title: What a closed section is called; empty for one that stands open. Text of ours only:
            it is not escaped.
        head: Lines that any of its rows needs: the heading of a table.
        rows: Lines that can be left out one by one, the last ones first.
        most: The share of the room that is left which it may take.
    """

    rows: tuple[str, ...]
    title: str = ""
    head: tuple[str, ...] = ()
    most: float = 1.0

    def fitted(self, room: int) -> str:
        """Return the section with as many rows as there is room for; empty where that is none."""
        start, end = "", "\n"
        if self.title:
            start, end = f"<details><summary>{self.title}</summary>\n\n", "\n\n</details>\n"
        lines = [*self.head]
        left = int(room * self.most) - size(start) - size(end) - _NOTE
        left -= sum(size(line) + 1 for line in lines)
        kept = 0
        for row in self.rows:
            left -= size(row) + 1
            if left < 0:
                break
            lines.append(row)
            kept += 1
        if self.rows and not kept:
            return ""
        if kept < len(self.rows):
            more = len(self.rows) - kept
            lines += ["", f"… and {more} more lines; the run document has everything."]
        return start + "\n".join(lines) + end


def size(text: str) -> int:
    """Return the bytes of a text in UTF-8, which are no fewer than its characters."""
    return len(text.encode("utf-8", "surrogatepass"))


def fitted(start: str, sections: Iterable[SummaryPart], end: str, *, room: int) -> str:
    """Join what has room.

    Args:
        start: What always stands first.
        sections: The most important first.
        end: What always stands last.
        room: Bytes that the whole text may have.
    """
    parts = [start]
    left = room - size(start) - size(end) - _NOTE
    left_out: list[str] = []
    for section in sections:
        text = section.fitted(left)
        if text:
            parts.append(text)
            left -= size(text) + 1
        else:
            left_out.append(section.title)
    note = _left_out(left_out)
    return "\n".join([*parts, *([note] if note else []), end])


def _left_out(titles: Sequence[str]) -> str:
    if not titles:
        return ""
    named = ", ".join(title for title in titles if title)[: _NOTE // 2]
    return f"Left out for lack of space: {named or 'details'}; the run document has everything.\n"
