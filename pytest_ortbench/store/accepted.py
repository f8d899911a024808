"""The project's file of acceptances: read with every fault named, and written entry by entry.

People edit the file, so what they wrote stays: their comments, their order, their line ends. It is
read only from where the project or the command line says, never from a run document.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import tomlkit
from tomlkit.items import AoT, Comment, Table, Whitespace

from pytest_ortbench.core.acceptance import FILE_NAME, AcceptedEntry, metric_name
from pytest_ortbench.core.errors import (
    OrtbenchError,
    UsageError,
    did_you_mean,
    why_unreadable,
    why_unwritable,
)
from pytest_ortbench.core.units import parse_amount
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.gate.numbers.acceptance import Acceptances
from pytest_ortbench.schema.toml_text import read_toml, utf8_text

#: The one table of the file, an entry each.
_TABLE = "accepted"

_KEYS = ("case", "metric", "worse_by", "model", "until", "reason")
#: Parts of the id of a case that are no keys: how an entry names one, after its case.
_PARTS = {"provider": "{}/*/{}/*", "precision": "{}/{}/*"}
_LEAST_DIGEST = 8
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*accepted[ \t]*\]\][ \t]*(#.*)?$", re.MULTILINE)
_MOST_BYTES = 1 << 20
_ANOTHER = "name another file, e.g. --file=accepted.toml"

_HEAD = """\
# What the gate of pytest-ortbench accepts, and why: an entry each, written by 'ortbench accept'.
# An entry may be edited or deleted by hand. What it means: ortbench accept --help.
"""


def today() -> date:
    """Return the day, by the clock of this machine: the only place that asks it."""
    return date.today()


def load_acceptances(named: Path | None, root: Path) -> Acceptances:
    """Read what a project accepts.

    Args:
        named: A file that somebody named, which has to be there.
        root: pytest's root directory, whose file counts otherwise.

    Raises:
        UsageError: if the file has a fault.
    """
    path = root / FILE_NAME if named is None else named
    entries = read_accepted(path, must_exist=named is not None)
    return Acceptances(entries=entries, today=today(), path=str(path))


def read_accepted(path: Path, *, must_exist: bool = False) -> tuple[AcceptedEntry, ...]:
    """Return the entries of a file; none where there is no file.

    Args:
        path: The file.
        must_exist: Whether somebody named it, so that it has to be there.

    Raises:
        UsageError: for a file that can't be read, with the first of its faults.
    """
    text = _text(path)
    if text is None:
        if must_exist:
            raise UsageError(
                "the file does not exist",
                place=str(path),
                hint=f"Correct the path, or leave it out to read {FILE_NAME} of the project",
            )
        return ()
    return _entries(text, path)


def accept(path: Path, entries: Sequence[AcceptedEntry]) -> list[AcceptedEntry]:
    """Write entries into a file; each replaces the one of the same case and metric.

    Args:
        path: The file, made if need be.
        entries: What is accepted.

    Returns:
        The entries that were replaced.

    Raises:
        UsageError: if the file is there and can't be read.
        OrtbenchError: if it can't be written.
    """
    text = _text(path)
    before = () if text is None else _entries(text, path)
    kept = [entry for entry in before if not any(_same(entry, new) for new in entries)]
    replaced = [entry for entry in before if any(_same(entry, new) for new in entries)]
    text = _HEAD if text is None else text
    ends = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    try:
        text = _with(text, entries)
        after = _entries(text, path)
    except ValueError as error:
        raise _unsafe(path) from error
    if {replace(entry, line=0) for entry in after} != {
        replace(entry, line=0) for entry in (*kept, *entries)
    }:
        raise _unsafe(path)
    _write(path, text.replace("\n", ends))
    return replaced


def _same(entry: AcceptedEntry, other: AcceptedEntry) -> bool:
    return (entry.case, entry.metric) == (other.case, other.metric)


def _unsafe(path: Path) -> OrtbenchError:
    """The file is never written so that it would not read back as what is meant."""
    return OrtbenchError(
        "no entry can be added to this file without changing others",
        place=str(path),
        hint="Write each of its entries below a line [[accepted]] of its own, not as one array "
        "accepted = [ … ]. Then run this again",
    )


# -- reading ---------------------------------------------------------------------------------------


def _text(path: Path) -> str | None:
    """The file as text; ``None`` where there is none."""
    try:
        if path.is_file() and path.stat().st_size > _MOST_BYTES:
            raise UsageError(
                "the file is larger than 1 MiB, the most that a list of accepted changes may have",
                place=str(path),
                hint="Delete entries that no longer hold. If it is no such list, name another file",
            )
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        what, hint = why_unreadable(error)
        raise UsageError(f"the path {what}", place=str(path), hint=hint) from error
    except ValueError as error:
        raise UsageError(
            "the path has a NUL character, which no file name may have",
            place=_shown(path),
            hint="Correct the path",
        ) from error
    return utf8_text(data, place=str(path))


def _shown(path: Path) -> str:
    return str(path).replace("\0", "\\0")


def _entries(text: str, path: Path) -> tuple[AcceptedEntry, ...]:
    hint = "Write each entry as lines KEY = VALUE below a line [[accepted]], with texts in quotes"
    document = read_toml(text.replace("\r\n", "\n"), place=str(path), hint=hint)
    for key in document:
        if key != _TABLE:
            raise UsageError(
                f"the key {key!r} is not known",
                place=str(path),
                hint="Write [[accepted]] in a line above it"
                if key in _KEYS
                else did_you_mean(key, [_TABLE], "An entry begins with [[accepted]]"),
            )
    tables = document.get(_TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        hint = "Write [[accepted]] in double brackets above each entry"
        raise UsageError("'accepted' is not a list of tables", place=str(path), hint=hint)
    lines = _lines(text, len(tables))
    entries: list[AcceptedEntry] = []
    for number, (table, line) in enumerate(zip(tables, lines, strict=True), start=1):
        place = f"{path}, line {line}" if line else f"{path}, entry {number}"
        entry = replace(_entry(table, place), line=line)
        for other in entries:
            if _same(entry, other):
                where = f"in line {other.line}" if other.line else "above"
                raise UsageError(
                    f"{entry.text!r} has an entry already, {where}",
                    place=place,
                    hint="Delete one of the two",
                )
        entries.append(entry)
    return tuple(entries)


def _lines(text: str, count: int) -> list[int]:
    """The line of each entry; 0 where they can't be told from the text."""
    text = text.replace("\r\n", "\n")
    headers = [text.count("\n", 0, match.start()) + 1 for match in _HEADER.finditer(text)]
    return headers if len(headers) == count else [0] * count


def _entry(table: dict[str, object], place: str) -> AcceptedEntry:
    for key in table:
        if key not in _KEYS:
            pattern = _PARTS.get(key, "")
            case = str(table.get("case", "*")).split("/")[0]
            raise UsageError(
                f"{key!r} is not a key of an entry",
                place=place,
                hint="It is a part of the case: write e.g. "
                f'case = "{pattern.format(case, table[key])}"'
                if pattern
                else did_you_mean(key, _KEYS),
            )
    metric = _word(table, "metric", place)
    return AcceptedEntry(
        case=_word(
            table,
            "case",
            place,
            needed=f'Write the id of a case, e.g. case = "{_EXAMPLES["case"]}", or a pattern for '
            'several, e.g. case = "mobilenet_v2/*"',
        ),
        metric=metric_name(metric, place=place) if metric else "",
        reason=_word(
            table,
            "reason",
            place,
            needed=f'Write why the change is accepted, e.g. reason = "{_EXAMPLES["reason"]}"',
        ),
        until=_day(table, place),
        worse_by=_share(table, place),
        model=_digest(table, place),
    )


#: A day of an example.
_A_DAY = "2027-01-31"
#: What may stand under the keys that are text.
_EXAMPLES = {
    "case": "mobilenet_v2/fp32/cpu/b1",
    "metric": "latency",
    "reason": "needed for accuracy",
    "model": "3f2a9c01",
}


def _word(table: dict[str, object], key: str, place: str, needed: str = "") -> str:
    value = table.get(key)
    if value is None:
        if needed:
            raise UsageError(f"the entry has no {key!r}", place=place, hint=needed)
        return ""
    if not isinstance(value, str):
        # Eight digits of a SHA-256 may all be decimal.
        is_digest = key == "model" and type(value) is int and value >= 10 ** (_LEAST_DIGEST - 1)
        raise UsageError(
            f"{key!r} is {value!r}, which is not text",
            place=place,
            hint=f"Write one [[accepted]] entry for each {key}"
            if isinstance(value, list)
            else f'Write it in quotes, e.g. {key} = "{value if is_digest else _EXAMPLES[key]}"',
        )
    if not value.strip():
        hint = needed or f"Write a value, or leave {key!r} out"
        raise UsageError(f"{key!r} is empty", place=place, hint=hint)
    return value.strip()


def _day(table: dict[str, object], place: str) -> date | None:
    value = table.get("until")
    if value is None:
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str):
        return parse_day(value, place=f"{place}, 'until'")
    rule = "must be a date without a time" if isinstance(value, datetime) else "must be a date"
    day = value.date() if isinstance(value, datetime) else _A_DAY
    raise UsageError(
        f"'until' is {value!s}, but {rule}",
        place=place,
        hint=f"Write year, month and day, e.g. until = {day}",
    )


def parse_day(written: str, *, place: str) -> date:
    """Read a day, ISO 8601.

    Raises:
        UsageError: if it is written in another way, or there is no such day.
    """
    hint = f"Write year, month and day, e.g. {_A_DAY}"
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", written.strip(), re.ASCII):
        raise UsageError(f"{written!r} is not a date", place=place, hint=hint)
    try:
        return date.fromisoformat(written.strip())
    except ValueError as error:
        raise UsageError(
            f"{written!r} is not a day of the calendar", place=place, hint=hint
        ) from error


def _share(table: dict[str, object], place: str) -> float | None:
    value = table.get("worse_by")
    if value is None:
        return None
    if not isinstance(value, str):
        raise UsageError(
            f"'worse_by' is {value!r}, not a percentage in quotes",
            place=place,
            hint="Write it in quotes and with a percent sign, e.g. "
            f'worse_by = "{_percent(str(value))}"',
        )
    return parse_share(value, place=f"{place}, 'worse_by'", example='worse_by = "{}"')


def _percent(written: str) -> str:
    """A percentage as it is written: of the number that was written without a sign, if it may be.

    Below 1 it may be meant as a share or as a percentage.
    """
    return f"{written}%" if re.fullmatch(r"[1-9]\d{0,3}(\.\d+)?", written, re.ASCII) else "8%"


def parse_share(written: str, *, place: str, example: str = "{}") -> float:
    """Read how much worse something may be: ``8%``.

    Args:
        written: The share.
        place: Where it was written, for messages.
        example: How it can be written there, with braces for the percentage.

    Raises:
        UsageError: if it is no finite share of 0 or more.
    """
    hint = (
        "Write how much worse than the baseline the case may be, e.g. "
        f"{example.format(_percent(written.strip()))}"
    )
    if not written.strip().endswith("%"):
        raise UsageError(f"{written!r} is not a percentage", place=place, hint=hint)
    # Rounded, so that 82 % is the number that 82 percent are everywhere else.
    share = round(parse_amount(written, "ratio", place=place), 12)
    if not 0 <= share < float("inf"):
        raise UsageError(f"{written!r} is below 0", place=place, hint=hint)
    return share


def _digest(table: dict[str, object], place: str) -> str:
    digest = _word(table, "model", place)
    if digest and not re.fullmatch(f"[0-9a-f]{{{_LEAST_DIGEST},64}}", digest):
        raise UsageError(
            f"'model' is {digest!r}, not the start of a SHA-256",
            place=place,
            hint=f"Write the first {_LEAST_DIGEST} or more hexadecimal digits of the model's "
            "SHA-256 in lower case, or leave 'model' out",
        )
    return digest


# -- writing ---------------------------------------------------------------------------------------


def _with(text: str, entries: Sequence[AcceptedEntry]) -> str:
    """The text with each entry in place of the one that it replaces, else at its end.

    Raises:
        ValueError: if the entries are no tables of their own.
    """
    document = tomlkit.parse(text if not text or text.endswith("\n") else f"{text}\n")
    tables = document.get(_TABLE)
    if tables is None:
        tables = tomlkit.aot()
        document.append(_TABLE, tables)
        tables = document[_TABLE]
    if not isinstance(tables, AoT):
        raise ValueError(f"{_TABLE!r} is not an array of tables")
    for entry in entries:
        place = next(
            (number for number, old in enumerate(tables) if _is_about(old, entry)), len(tables)
        )
        written = tomlkit.table()
        for key, value in _values(entry).items():
            written.add(key, value)
        if place == len(tables):
            tables.append(written)
            continue
        # Blank lines and comments above the next entry belong to this table's body.
        for item in _behind_last_key(tables[place]):
            written.add(item)
        header = tables[place].trivia
        written.trivia.comment_ws, written.trivia.comment = header.comment_ws, header.comment
        tables[place] = written
    return document.as_string()


def _behind_last_key(table: Table) -> list[Whitespace | Comment]:
    """The blank lines and comments behind the last key of a table."""
    items: list[Whitespace | Comment] = []
    for key, item in table.value.body:
        if key is not None:
            items = []
        elif isinstance(item, (Whitespace, Comment)):
            items.append(item)
    return items


def _is_about(table: Mapping[str, object], entry: AcceptedEntry) -> bool:
    """Whether a table of the file is about the same case and metric as an entry."""
    case, metric = table.get("case"), table.get("metric", "")
    return isinstance(metric, str) and (case, metric and metric_name(metric, place="")) == (
        entry.case,
        entry.metric,
    )


def _values(entry: AcceptedEntry) -> dict[str, str | date]:
    """An entry as keys and values of its table."""
    values: dict[str, str | date] = {"case": entry.case}
    if entry.metric:
        values["metric"] = entry.metric
    if entry.worse_by is not None:
        values["worse_by"] = f"{100 * entry.worse_by:.12g}%"
    if entry.model:
        values["model"] = entry.model
    if entry.until is not None:
        values["until"] = entry.until
    values["reason"] = entry.reason
    return values


def _write(path: Path, text: str) -> None:
    try:
        if path.exists() and not path.stat().st_mode & stat.S_IWUSR:
            raise OrtbenchError(
                "the file can't be written, since it is read-only",
                place=str(path),
                hint=f"Make this file writable. To leave it as it is, {_ANOTHER}",
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
    except OSError as error:
        hint = f"Remove the cause that the system names, or {_ANOTHER}"
        if isinstance(error, PermissionError):
            hint = f"Give your user the right to write to {path.parent}, or {_ANOTHER}"
        raise OrtbenchError(
            f"the file {why_unwritable(error, path)}", place=str(path), hint=hint
        ) from error
