"""Which cases stand in one table: those that time the same unit, with the columns of that unit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.passes.registry import owner_of
from pytest_ortbench.report.cells import ALL_COLUMNS, COLUMNS
from pytest_ortbench.report.column import Column
from pytest_ortbench.report.entries import Entry, ModelGroup, by_model

#: What compares ONNX Runtime with engines and frameworks, and the column behind which it stands.
_BESIDE_ENGINES = {"rss": ("process",), "first": ("compile", "ready")}
_STANDARD = {column.key: column for column in COLUMNS}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTable:
    """Cases that time the same unit.

    Attributes:
        name: What the unit is called where there are many; empty for inferences.
        columns: What people see of them.
        entries: The cases.
        groups: The same by model.
    """

    name: str
    columns: tuple[Column, ...]
    entries: tuple[Entry, ...]
    groups: tuple[ModelGroup, ...]


def case_tables(shown: Sequence[Entry]) -> tuple[CaseTable, ...]:
    """Return the tables of a run: inferences first; an empty one for a run without a case."""
    by_owner: dict[str, list[Entry]] = {}
    for entry in shown:
        owner = owner_of(entry.result.case)
        by_owner.setdefault("" if owner is None else owner.name, []).append(entry)
    if not shown:
        return (CaseTable(name="", columns=COLUMNS, entries=(), groups=()),)
    return tuple(_table(by_owner[name]) for name in sorted(by_owner))


def preferring(columns: Sequence[Column], wanted: Collection[str]) -> tuple[Column, ...]:
    """Return columns so that some keep their place where there is little room, missing ones added.

    Args:
        columns: Those of a table.
        wanted: Metrics that somebody asked for.
    """
    if not wanted:
        return tuple(columns)
    shown = {column.metric for column in columns}
    more = [
        column
        for column in ALL_COLUMNS.values()
        if column.metric in wanted and column.metric not in shown
    ]
    *others, status = columns
    return (
        *(_preferred(column) if column.metric in wanted else _behind(column) for column in others),
        *(replace(column, rank=1, is_detail=False) for column in more),
        status,
    )


def _preferred(column: Column) -> Column:
    return replace(column, rank=min(column.rank, 1) if column.rank else 0, is_detail=False)


def _behind(column: Column) -> Column:
    return replace(column, rank=column.rank + 1) if column.rank else column


def _table(entries: Sequence[Entry]) -> CaseTable:
    owner = owner_of(entries[0].result.case)
    if owner is None or owner.unit is None:
        return CaseTable(
            name="", columns=_columns(entries), entries=tuple(entries), groups=by_model(entries)
        )
    columns = owner.load(owner.unit.columns)(entries, _STANDARD)
    return CaseTable(
        name=owner.unit.name,
        columns=tuple(columns),
        entries=tuple(entries),
        groups=by_model(entries, apart=owner.unit.knobs),
    )


def _columns(entries: Sequence[Entry]) -> tuple[Column, ...]:
    """The standard columns, and where not all rows are ONNX Runtime's, those that compare it."""
    if all(entry.result.case.provider.is_execution_provider for entry in entries):
        return COLUMNS
    return tuple(
        shown
        for column in COLUMNS
        for shown in (column, *(ALL_COLUMNS[key] for key in _BESIDE_ENGINES.get(column.key, ())))
    )
