"""The table in the terminal, as wide as it is allowed to be."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.report import legend
from pytest_ortbench.report.case_tables import CaseTable, case_tables, preferring
from pytest_ortbench.report.cells import ALL_COLUMNS, NOTHING, leading_columns, texts
from pytest_ortbench.report.column import Column
from pytest_ortbench.report.entries import Entry, ModelGroup, ShownRun, by_model
from pytest_ortbench.report.escape import encodable, one_line
from pytest_ortbench.report.flag_notes import flag_lines, flag_notes
from pytest_ortbench.report.shards import shard_lines

if TYPE_CHECKING:
    from rich.text import Text

INDENT = 2
GAP = 2
#: A case label beyond this is folded before a column moves to a further line for it.
LABEL_LIMIT = 34
#: Flags beyond this are counted before a column is left out for them.
STATUS_LIMIT = 20
#: The least that a label may be folded to, and a status shortened.
LABEL_LEAST, STATUS_LEAST = 12, 10
#: Reasons of skipped combinations that are spelt out before the rest is counted.
SKIPS = 8

_SEVERITY_STYLES = {"bars": "red", "blurs": "yellow", "notes": "cyan"}


def render_table(
    shown: ShownRun,
    *,
    width: int,
    color: bool,
    encoding: str = "utf-8",
    columns: Sequence[str] = (),
    skips: bool = True,
    wanted: Collection[str] = (),
) -> str:
    """Render all cases of a run, model by model, and the legend that they need.

    Args:
        shown: Any run, also one without a case.
        width: Characters that a line may have. Rows fold where there is no room; only details are
            left out.
        color: Whether to emit ANSI colours.
        encoding: Of the stream that the text goes to; what it can't write gets a stand-in.
        columns: Keys of :data:`pytest_ortbench.report.cells.ALL_COLUMNS` to show instead of
            choosing by width; ``case`` is always shown.
        wanted: Metrics that the run is about: their columns are there, and the last to move.
        skips: Whether to say what was left out; a run that has just said it need not say it again.

    Returns:
        Lines, each ended by a line end; none is longer than ``width``, unless that is below 40.

    Raises:
        UsageError: if a column is not known.
    """
    page = _Lines(max(width, 40), encoding)
    asked = _named(columns)
    tables = [
        _Table(
            page,
            table.groups,
            asked or preferring(table.columns, wanted),
            asked=bool(asked),
        )
        for table in (_together(shown) if asked else case_tables(shown.entries))
    ]
    for index, table in enumerate(tables):
        table.render(after=index > 0)
    dropped = dict.fromkeys(column.key for table in tables for column in table.dropped)
    counted = [entry for table in tables for entry in table.with_counted_flags()]
    _Legend(page, shown, skips=skips).render(dropped, counted)
    return page.written(max(table.total for table in tables), color=color)


def _together(shown: ShownRun) -> tuple[CaseTable, ...]:
    """Return all cases in one table, for columns that somebody named."""
    entries = shown.entries
    return (CaseTable(name="", columns=(), entries=entries, groups=by_model(entries)),)


def _named(keys: Sequence[str]) -> tuple[Column, ...]:
    for key in keys:
        if key not in ALL_COLUMNS:
            hint = did_you_mean(key, ALL_COLUMNS)
            raise UsageError(f"{key!r} is not a column", place="--columns", hint=hint)
    return tuple(ALL_COLUMNS[key] for key in dict.fromkeys(("case", *keys))) if keys else ()


class _Lines:
    """What is written so far, and how wide it may become."""

    def __init__(self, width: int, encoding: str) -> None:
        self.width = width
        self.encoding = encoding
        self.mark = encodable("…", encoding)
        self.lines: list[Text] = []

    def plain(self, text: str) -> str:
        return encodable(one_line(text), self.encoding)

    def wrapped(self, word: str, text: str, style: str, indent: int) -> None:
        """Add a paragraph whose first word is coloured and whose further lines hang."""
        from rich.cells import cell_len  # heavy, and a table is rendered once
        from rich.text import Text

        room = max(20, self.width - indent - len(word))
        # Wide characters take two cells each; for such text half the room is surely enough.
        room = room if cell_len(text) == len(text) else room // 2
        for index, part in enumerate(textwrap.wrap(text, room, break_on_hyphens=False) or [""]):
            line = Text(" " * indent)
            line.append(word if not index else " " * len(word), style)
            line.append(part)
            self.lines.append(line)

    def written(self, least: int, *, color: bool) -> str:
        from rich.console import Console

        stream = io.StringIO()
        console = Console(
            file=stream,
            width=max(self.width, least),
            force_terminal=color,
            color_system="standard" if color else None,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            _environ={},  # the caller has decided; NO_COLOR and COLUMNS are its business
        )
        for line in self.lines:
            line.rstrip()
            console.print(line, soft_wrap=True)
        return stream.getvalue()


class _Table:
    """One table: which cases, in which columns, how wide."""

    def __init__(
        self,
        page: _Lines,
        groups: Sequence[ModelGroup],
        candidates: Sequence[Column],
        *,
        asked: bool,
    ) -> None:
        self.page = page
        self.width = page.width
        self.groups = groups
        self.shown = [entry for group in groups for entry in group.entries]
        self.cells = {
            id(entry): {key: page.plain(text) for key, text in cells.items()}
            for group in groups
            for entry, cells in zip(group.entries, texts(group, candidates, groups), strict=True)
        }
        self.headings = {column.key: page.plain(column.heading) for column in candidates}
        self.candidates = tuple(candidates)
        self.columns = list(candidates)
        self.leading = leading_columns(candidates)
        #: Columns of the further lines of a row, which stand beside its label.
        self.folded: list[list[Column]] = []
        #: Columns without room that say the same in every row: said once, above all.
        self.alike: list[Column] = []
        self.widths = self._natural_widths()
        self._fit(asked=asked)
        self.dropped = [
            column
            for column in candidates
            if self.has_numbers and column not in (*self._laid_out(), *self.alike)
        ]

    @property
    def has_numbers(self) -> bool:
        """Whether any of its cases was measured."""
        return any(entry.measured for entry in self.shown)

    @property
    def total(self) -> int:
        """Characters of its widest row."""
        widths = [self.widths[column.key] for column in self.columns]
        return INDENT + sum(widths) + GAP * (len(widths) - 1)

    def _natural_widths(self) -> dict[str, int]:
        from rich.cells import cell_len  # heavy, and the table is rendered once

        measured = [self.cells[id(entry)] for entry in self.shown if entry.measured]
        return {
            column.key: max(
                cell_len(self.headings[column.key]),
                *(cell_len(cells[column.key]) for cells in measured),
                0,
            )
            for column in self.columns
        }

    def _fit(self, *, asked: bool) -> None:
        """Fold labels, move columns to further lines or leave details out, until a line fits.

        Args:
            asked: Whether somebody named the columns: then they keep their order, and all stay.
        """
        self._shorten("status", STATUS_LIMIT)
        self._shorten("case", LABEL_LIMIT)
        below: list[Column] = []
        while self.total > self.width:
            movable = (
                self.columns[1:] if asked else [column for column in self.columns if column.rank]
            )
            if not movable:
                break
            moved = movable[-1] if asked else max(movable, key=lambda column: column.rank)
            self.columns.remove(moved)
            if asked:
                below.append(moved)
            elif not moved.is_detail:
                values = self._values(moved)
                if values == {""} or values == {self.page.plain(NOTHING)}:
                    continue
                (self.alike if len(values) == 1 else below).append(moved)
        self._shorten("status", STATUS_LEAST)
        self._shorten("case", LABEL_LEAST)
        self._fold(below[::-1] if asked else self._in_order(below))

    def _fold(self, columns: Sequence[Column]) -> None:
        """Lay columns out in as few further lines as have room beside the label."""
        room = self.width - INDENT - self.widths["case"] - GAP
        used = 0
        for column in columns:
            width = self.widths[column.key]
            if not self.folded or used + GAP + width > room:
                self.folded.append([])
                used = -GAP
            used += GAP + width
            self.folded[-1].append(column)

    def _in_order(self, columns: Sequence[Column]) -> list[Column]:
        return [column for column in self.candidates if column in columns]

    def _values(self, column: Column) -> set[str]:
        """What the cells of a column say."""
        return {self.cells[id(entry)][column.key] for entry in self.shown if entry.measured}

    def _said_of_all(self) -> str:
        """``placed 100 %, accuracy exact``."""
        first = next(self.cells[id(entry)] for entry in self.shown if entry.measured)
        return ", ".join(
            f"{self.headings[column.key]} {first[column.key]}"
            for column in self._in_order(self.alike)
        )

    def _shorten(self, key: str, least: int) -> None:
        excess = self.total - self.width
        if excess > 0 and self.widths.get(key, 0) > least:
            self.widths[key] = max(least, self.widths[key] - excess)

    def with_counted_flags(self) -> list[Entry]:
        """Return the rows whose flags have no room, so that some of them are only counted."""
        width = self.widths.get("status")
        if width is None or all(column.key != "status" for column in self._laid_out()):
            return []
        texts = ((entry, self.cells[id(entry)]["status"]) for entry in self.shown if entry.measured)
        return [entry for entry, text in texts if _packed(text, width) != text]

    def _laid_out(self) -> list[Column]:
        return [*self.columns, *(column for band in self.folded for column in band)]

    def render(self, *, after: bool) -> None:
        """Add the lines of the table, ``after`` another one."""
        from rich.text import Text

        if after:
            self.page.lines.append(Text())
        if self.has_numbers:
            self._row(self.headings, dict.fromkeys(self.headings, "bold"))
            if self.alike:
                self.page.wrapped("", f"all rows: {self._said_of_all()}", "", INDENT)
        for group in self.groups:
            self._group(group)

    def _group(self, group: ModelGroup) -> None:
        from rich.cells import cell_len
        from rich.text import Text

        title = self.page.plain(group.model.name)
        about = self.page.plain(legend.model_line(group))
        line = Text()
        # A path differs from others at its end.
        line.append(_shortened(title, self.width, self.page.mark, middle=True), "bold cyan")
        beside = line.cell_len + GAP + cell_len(about) <= self.width
        if about and beside:
            line.append(" " * GAP + about, "dim")
        self.page.lines.append(line)
        if about and not beside:
            # Never shortened: a number without its sizes says little.
            self.page.wrapped("", about, "", INDENT)
        for entry in group.entries:
            if entry.measured:
                self._row(self.cells[id(entry)], self._styles(entry))
        for failure in legend.failure_groups(group.entries):
            names = legend.named([self.page.plain(entry.label) for entry in failure.entries])
            self.page.wrapped(f"{failure.status}  ", names, "red", INDENT)
            self.page.wrapped("", self.page.plain(failure.sentence), "", INDENT + 4)

    def _row(self, cells: dict[str, str], styles: dict[str, str]) -> None:
        """Add a row: its label, as many lines as that takes, and beside it the columns' lines."""
        from rich.text import Text

        label, *first = self.columns
        names = _folded(cells[label.key], self.widths[label.key])
        lines: list[Sequence[Column]] = [first, *self.folded]
        for index in range(max(len(names), len(lines))):
            line = Text(" " * INDENT)
            part = Text(names[index] if index < len(names) else "", styles.get(label.key, ""))
            part.align("left", self.widths[label.key])
            line.append_text(part)
            for column in lines[index] if index < len(lines) else ():
                line.append(" " * GAP)
                line.append_text(self._cell(column, cells[column.key], styles))
            self.page.lines.append(line)

    def _styles(self, entry: Entry) -> dict[str, str]:
        return {"status": _status_style(entry), **dict.fromkeys(self.leading, "bold")}

    def _cell(self, column: Column, text: str, styles: dict[str, str]) -> Text:
        from rich.text import Text

        width = self.widths[column.key]
        if column.key == "status":
            text = _packed(text, width)
        part = Text(_shortened(text, width, self.page.mark), styles.get(column.key, ""))
        part.align("right" if column.right else "left", width)
        return part


class _Legend:
    """What a reader needs beside the tables."""

    def __init__(self, page: _Lines, shown: ShownRun, *, skips: bool) -> None:
        self.page = page
        self.run = shown.run
        self.shown = shown.entries
        self.skips = legend.skip_lines(shown.run) if skips else ()
        flags = [note.kind.name for note in flag_notes(shown.entries)]
        self.width = max(map(len, ("runtimes", *flags))) + GAP

    def render(self, dropped: Iterable[str], counted: Sequence[Entry]) -> None:
        """Add its lines.

        Args:
            dropped: Keys of columns without room.
            counted: Rows of which not all flags had room.
        """
        from rich.text import Text

        self.page.lines.append(Text())
        if not self.shown:
            self._entry("cases", ["none was measured"])
        self._entry("numbers", legend.includes(self.shown))
        self._entry("flags", flag_lines(counted))
        for note in flag_notes(self.shown):
            word = self.page.plain(note.kind.name).ljust(self.width)
            style = _SEVERITY_STYLES[note.kind.severity]
            self.page.wrapped(word, self.page.plain(note.sentence), style, 0)
        self._entry(
            "runtimes",
            [
                legend.runtime_line(label, info, self.run.machine.host)
                for label, info in self.run.runtimes.items()
            ],
        )
        self._entry("engines", legend.engine_lines(self.shown))
        self._entry("chains", legend.chain_lines(self.shown))
        self._entry("sizes", legend.fixed_lines(self.shown))
        self._entry("machine", [legend.machine_line(self.run)])
        self._entry("shards", shard_lines(self.run))
        more = len(self.skips) - SKIPS
        rest = [f"and {more} more reasons"] if more > 0 else []
        self._entry("left out", [*self.skips[:SKIPS], *rest])
        keys = ", ".join(dropped)
        if keys:
            self._entry("columns", [f"no room for {keys}; 'ortbench show --columns=…' shows them"])

    def _entry(self, word: str, sentences: Sequence[str]) -> None:
        for index, sentence in enumerate(sentences):
            label = ("" if index else word).ljust(self.width)
            self.page.wrapped(label, self.page.plain(sentence), "bold", 0)


def _folded(text: str, width: int) -> list[str]:
    """Fold a label to lines of at most ``width`` cells, behind its slashes where that is enough."""
    from rich.cells import cell_len, chop_cells

    lines = [""]
    parts = text.split("/")
    for index, name in enumerate(parts):
        part = name if index == len(parts) - 1 else f"{name}/"
        if cell_len(lines[-1] + part) <= width:
            lines[-1] += part
            continue
        lines += chop_cells(part, width)
    return [line for line in lines if line] or [""]


def _status_style(entry: Entry) -> str:
    severities = {FLAGS[name].severity for name in entry.flags if name in FLAGS}
    for severity, style in _SEVERITY_STYLES.items():
        if severity in severities:
            return style
    return "cyan" if entry.flags else "green"


def _packed(flags: str, width: int) -> str:
    """Name as many flags as fit and count the rest: ``CPU-SHARE SPREAD +1``."""
    names = flags.split(" ")
    for shown in range(len(names), 0, -1):
        rest = len(names) - shown
        text = " ".join(names[:shown]) + (f" +{rest}" if rest else "")
        if len(text) <= width:
            return text
    return flags


def _shortened(text: str, width: int, mark: str, *, middle: bool = False) -> str:
    """Cut ``text`` to ``width`` cells; ``middle`` keeps its end, where labels differ."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    if not middle:
        return set_cell_size(text, width - 1).rstrip() + mark
    tail = text[-(width // 2) :]
    while cell_len(tail) > width // 2:
        tail = tail[1:]
    return set_cell_size(text, width - 1 - cell_len(tail)) + mark + tail
