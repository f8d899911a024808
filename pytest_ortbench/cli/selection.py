"""Which cases of a run are shown, in which order, with which columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from pytest_ortbench.analysis.rows import COLUMNS, Cell
from pytest_ortbench.core.errors import UsageError, did_you_mean, first_of_several, nearest
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.cells import ALL_COLUMNS
from pytest_ortbench.report.entries import Entry, ShownRun, shown_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a case must be like to be shown.

    Attributes:
        column: Column that is looked at; ``case_id`` for a bare text.
        pattern: What stands there, case ignored: ``*`` and ``?`` stand for any text.
        wanted: Whether it must stand there or must not.
    """

    column: str
    pattern: str
    wanted: bool = True

    def holds(self, cells: dict[str, Cell]) -> bool:
        """Whether a row fulfils the condition; an empty cell matches the empty text only."""
        value = cells[self.column]
        text = "" if value is None else str(value)
        return fnmatchcase(text.lower(), self.pattern.lower()) is self.wanted


def parse_condition(text: str) -> Condition:
    """Read ``provider=cuda``, ``status!=measured``, or a part of a case id.

    Raises:
        UsageError: if there is no such column.
    """
    name, equals, pattern = text.partition("=")
    if not equals:
        return Condition(column="case_id", pattern=f"*{text}*")
    wanted = not name.endswith("!")
    column = column_of(name.removesuffix("!").strip(), place="--filter")
    return Condition(column=column, pattern=pattern.strip(), wanted=wanted)


#: Columns by words that people write for them, and that are near others in letters.
_MEANT = {"gpu": "provider", "ep": "provider", "backend": "provider", "name": "model"}
#: The command that shows every column.
_WHOLE = "ortbench export RUN"


def column_of(name: str, *, place: str) -> str:
    """Return the column of a row that ``name`` means.

    Args:
        name: A column of a row, a metric's name, or the key of a column of the table.
        place: The option that it stands in.

    Raises:
        UsageError: if it is none of them.
    """
    if name in COLUMNS:
        return name
    if name in METRICS:
        return METRICS[name].column
    if name in ALL_COLUMNS and ALL_COLUMNS[name].row:
        return ALL_COLUMNS[name].row
    known = [*COLUMNS, *METRICS, *(key for key, column in ALL_COLUMNS.items() if column.row)]
    raise UsageError(f"{name!r} is not a column", place=place, hint=_advice_on_column(name, known))


def _advice_on_column(name: str, known: Iterable[str]) -> str:
    """The nearest column, and the command that lists all: there are too many for one line."""
    if name in _MEANT:
        return f"Did you mean {_MEANT[name]!r}?"
    words = sorted(set(known))
    if first_of_several(name, words) or nearest(name, words):
        return did_you_mean(name, words)
    return f"The names of all columns are in the first line of '{_WHOLE}'"


def table_columns(text: str) -> list[str]:
    """Return the keys of the table's columns that a comma-separated list means.

    Raises:
        UsageError: if the table has no such column.
    """
    keys = {
        name: column.key
        for column in ALL_COLUMNS.values()
        for name in (column.row, column.metric, column.key)
        if name
    }
    chosen = []
    for name in (part.strip() for part in text.split(",")):
        if name and name not in keys:
            raise UsageError(
                f"the table has no column {name!r}",
                place="--columns",
                hint=f"To see {name}, write all columns to a file: '{_WHOLE} --output=rows.csv'"
                if name in COLUMNS
                else did_you_mean(name, {column.key for column in ALL_COLUMNS.values()}),
            )
        if name:
            chosen.append(keys[name])
    return chosen


def select(run: Run, conditions: Sequence[Condition], sort: str = "") -> ShownRun:
    """Return what is shown of the cases of a run that fulfil every condition, sorted if asked.

    Args:
        run: The run.
        conditions: What each case must be like.
        sort: A column to sort by, ``-`` in front for the largest first; empty cells come last.

    Raises:
        UsageError: if there is no such column.
    """
    shown = shown_run(run)
    kept = [
        (result, entry)
        for result, entry in zip(run.cases, shown.entries, strict=True)
        if all(condition.holds(entry.row) for condition in conditions)
    ]
    if sort:
        column = column_of(sort.removeprefix("-"), place="--sort")
        kept = _sorted(kept, column, descending=sort.startswith("-"))
    elif not conditions:
        return shown
    chosen = replace(run, cases=tuple(result for result, _ in kept))
    return shown_run(chosen, [entry.summary for _, entry in kept])


def _sorted(
    pairs: list[tuple[CaseResult, Entry]], column: str, *, descending: bool
) -> list[tuple[CaseResult, Entry]]:
    known = [pair for pair in pairs if pair[1].row[column] is not None]
    empty = [pair for pair in pairs if pair[1].row[column] is None]
    known.sort(key=lambda pair: _order(pair[1].row[column]), reverse=descending)
    return known + empty


def _order(cell: Cell) -> tuple[int, float, str]:
    """Numbers before texts, each among its own."""
    if isinstance(cell, str) or cell is None:
        return (1, 0.0, cell or "")
    return (0, cell, "")
