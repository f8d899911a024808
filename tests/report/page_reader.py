"""Reads a report page without a browser: its table, its text, and what could run or connect."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from unittest import mock

from matplotlib.figure import Figure

from pytest_ortbench.core.run import Run
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.html import page, render_html
from tests.report import sample_runs

_VOID = {"meta", "link", "img", "input", "br", "hr"}


@dataclass
class Reader(HTMLParser):
    """Collects the parts of a page that tests look at.

    Attributes:
        rows: Cells of the table of cases, as (text, value to sort by).
        headings: Keys of its columns.
        text: All visible text, styles and scripts apart.
        answers: Sentences of the first block.
        tags: Every start tag with its attributes.
        open_tags: Tags that were not closed (should be empty at the end).
    """

    rows: list[list[tuple[str, str]]] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    text: str = ""
    answers: list[str] = field(default_factory=list)
    _answering: bool = False
    _of_cases: bool = False
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    open_tags: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append((tag, values))
        if tag not in _VOID:
            self.open_tags.append(tag)
        if tag == "th" and "data-key" in values:
            self.headings.append(values["data-key"] or "")
        if tag == "table":
            self._of_cases = values.get("id") == "table"
        if tag == "ul":
            self._answering = values.get("class") == "said"
        if tag == "li" and self._answering:
            self.answers.append("")
        if tag == "tr" and self._in_cases():
            self.rows.append([])
        if tag in ("td", "th") and self._in_cases():
            self.rows[-1].append(("", values.get("data-v") or ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open_tags, f"</{tag}> closes nothing"
        assert self.open_tags.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data: str) -> None:
        if self.open_tags and self.open_tags[-1] in ("style", "script"):
            return
        self.text += data
        if self._answering and "li" in self.open_tags:
            self.answers[-1] += data
        if self._in_cases() and {"td", "th"} & set(self.open_tags):
            text, value = self.rows[-1][-1]
            self.rows[-1][-1] = (text + data, value)

    def _in_cases(self) -> bool:
        return self._of_cases and "tbody" in self.open_tags

    def cell(self, row: int, key: str) -> tuple[str, str]:
        """Text and value of one cell of the table of cases."""
        text, value = self.rows[row][self.headings.index(key)]
        return text.strip(), value


@cache
def html_of(name: str) -> str:
    """The page of a sample run, rendered once for all tests."""
    return render_html(
        shown_run({"ten": sample_runs.ten_cases, "hostile": sample_runs.hostile}[name]())
    )


def html_without_figures(run: Run) -> str:
    """The page of a run with one empty figure, since drawing figures takes most of the time."""
    with mock.patch.object(page, "figures", return_value=[("latency", Figure())]):
        return render_html(shown_run(run))


def read_page(html: str) -> Reader:
    """Parse a page; fails on tags that do not nest."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open_tags == []
    return reader
