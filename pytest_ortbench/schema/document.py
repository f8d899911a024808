"""The run document: core types to JSON and back, strictly, with errors that name the place.

Only engine, store and console tool import this module, and late; so msgspec stands at the top.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice
from typing import TypeVar, cast

import msgspec

from pytest_ortbench.core.errors import (
    REPORT_IT,
    DocumentError,
    ForeignDocumentError,
    first_line,
    says,
)
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import SCHEMA_VERSION, Run
from pytest_ortbench.core.secrets import masked
from pytest_ortbench.core.units import counted
from pytest_ortbench.schema.json_schema import json_schema
from pytest_ortbench.schema.layout import (
    Plain,
    find_nonfinite,
    lay_out,
    one_line_json,
    to_utf8,
)
from pytest_ortbench.schema.meaning import CHANGED, MOST_FAULTS, Fault, faults_of, refuse_nonsense
from pytest_ortbench.schema.migrations import (
    MIGRATIONS,
    Migrations,
    PlainObject,
    had_baseline,
)
from pytest_ortbench.schema.wrong_types import wrong_types

__all__ = [
    "RunHead",
    "decode_head",
    "decode_lines",
    "decode_result",
    "decode_run",
    "encode_header",
    "encode_result",
    "encode_run",
    "faults_in",
    "json_schema",
]

_T = TypeVar("_T", Run, CaseResult)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CANT_WRITE = "the result can't be written"
_HOOK = (
    "If your hook pytest_ortbench_machine_info returned this value, return text in its place. "
    "Otherwise please open an issue in the repository of pytest-ortbench, with this message"
)
_EXPECTED = "Name a run.json or journal.jsonl that ortbench wrote"
_JOURNAL_HINT = (
    "If the file was copied, copy it again. If not, name journal.jsonl in the same folder, which "
    "contains the cases that were finished"
)
#: What is done with a journal without a whole case.
_NO_CASE = "If the file was copied, copy it again. If not, run the cases again"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadVerdict:
    """What a listing needs of a gate's verdict."""

    baseline: str = ""
    failures: tuple[str, ...] = ()
    has_baseline: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """What a listing needs of a run document, read without building its cases.

    Attributes:
        schema_version: The version that it was written with.
        run_id: As in the document.
        started_at: UTC, ISO 8601.
        finished_at: UTC; ``None`` if it was not finished.
        expected: Number of cases in the plan.
        plan: Fingerprint of the plan.
        cases: The cases, unread.
        gate: Verdicts of a gate that the run was held to.
    """

    schema_version: int
    run_id: str
    started_at: str
    finished_at: str | None = None
    expected: int = 0
    plan: str = ""
    cases: tuple[msgspec.Raw, ...] = ()
    gate: tuple[HeadVerdict, ...] = ()


def encode_run(run: Run) -> bytes:
    """Return the run document, UTF-8, indented, with a final newline.

    Raises:
        DocumentError: if the run holds NaN, infinity, a value of a wrong type or one that can't be;
            nothing that :func:`decode_run` would refuse is ever returned.
    """
    return to_utf8(lay_out(_plain(run, f"run {run.run_id}")) + "\n")


def encode_header(run: Run) -> bytes:
    """Return the first line of a journal: the run without its cases, with a final newline.

    Raises:
        DocumentError: as :func:`encode_run`.
    """
    plain = _plain(run, f"run {run.run_id}")
    plain["cases"] = []
    return to_utf8(one_line_json(plain) + "\n")


def encode_result(result: CaseResult) -> bytes:
    """Return the journal line of one case, with a final newline.

    Raises:
        DocumentError: as :func:`encode_run`.
    """
    return to_utf8(one_line_json(_plain(result, f"case {result.case.case_id}")) + "\n")


def decode_run(data: bytes, place: str, *, migrations: Migrations = MIGRATIONS) -> Run:
    """Read a run document of this or any older schema version.

    Args:
        data: The whole file.
        place: Where it lies, for messages.
        migrations: The way from older versions.

    Raises:
        DocumentError: if it is empty, cut off, not JSON, no run document, from a newer version, or
            says what can't be.
    """
    run = _decode_present(data, migrations)
    if run is None:
        document = _parse_object(data, place)
        version = migrations.check(_version_of(document, place), place)
        run = _convert(migrations.apply(document, version), Run, place)
    refuse_nonsense(run, place)
    return run


def faults_in(data: bytes, place: str) -> list[Fault]:
    """Return everything that is wrong with the values of a run document, in its order.

    Wrong types hide what else may be wrong: without any, values that can't be are returned.

    Args:
        data: The whole file, of any readable version.
        place: Where it lies, for messages.

    Raises:
        DocumentError: if it is no run document at all, see :func:`decode_run`.
    """
    document = _parse_object(data, place)
    version = MIGRATIONS.check(_version_of(document, place), place)
    document = MIGRATIONS.apply(document, version)
    faults = list(islice(wrong_types(document, Run), MOST_FAULTS))
    return faults or list(islice(faults_of(_convert(document, Run, place)), MOST_FAULTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """The one field that says how to read the others."""

    schema_version: int


def _decode_present(data: bytes, migrations: Migrations) -> Run | None:
    """Read a document of the present version straight into its types, in half the time.

    Returns:
        ``None`` where the long way must migrate, or find words for what is wrong.
    """
    try:
        version = msgspec.json.decode(data, type=_Version).schema_version
        if version != migrations.target or version != SCHEMA_VERSION:
            return None
        return msgspec.json.decode(data, type=Run)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def decode_head(data: bytes, place: str) -> RunHead:
    """Read what a listing needs of a run document of any readable version.

    Raises:
        DocumentError: as :func:`decode_run`, except for what is wrong inside of the cases.
    """
    try:
        head = msgspec.json.decode(data.removeprefix(_BYTE_ORDER_MARK), type=RunHead)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The long way tells best what is wrong.
        decode_run(data, place)
        raise
    version = MIGRATIONS.check(head.schema_version, place)
    gate = tuple(
        replace(verdict, has_baseline=verdict.has_baseline and had_baseline(verdict.baseline))
        if version == 1
        else verdict
        for verdict in head.gate
    )
    return replace(head, gate=gate)


def decode_result(data: bytes, place: str) -> CaseResult:
    """Read the journal line of one case, written with the present schema version.

    Raises:
        DocumentError: as :func:`decode_run`.
    """
    result = _convert(_parse_object(data, place), CaseResult, place)
    refuse_nonsense(result, place)
    return result


def decode_lines(
    lines: Sequence[bytes], place: str, *, migrations: Migrations = MIGRATIONS
) -> tuple[Run, tuple[str, ...]]:
    """Read a journal: lines of runs without cases (the last one counts) and lines of cases.

    A case that was written twice counts once, as it was written last.

    Args:
        lines: The lines without their newlines.
        place: Where the journal lies, for messages.
        migrations: The way from older versions.

    Returns:
        The run so far, and a note for each line that can't be read (a killed run tears its last).

    Raises:
        DocumentError: if there is no readable header, or a whole line is no case.
    """
    if not any(line.strip() for line in lines):
        raise DocumentError(
            "the journal is empty",
            place=place,
            hint=_NO_CASE,
        )
    header = _parse_object(lines[0], f"{place}, line 1", what="the line", cut=_NO_CASE)
    version = migrations.check(_version_of(header, place), place)
    cases: list[Plain] = []
    notes: list[str] = []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        try:
            entry = _parse_object(line, f"{place}, line {number}", what="the line")
        except DocumentError as error:
            notes.append(f"{error.place} was left out: {error.message}")
            continue
        if "run_id" in entry:
            header = entry
        else:
            cases.append(entry)
    run = _convert(migrations.apply({**header, "cases": cases}, version), Run, place)
    latest = {result.case.key: result for result in run.cases}
    run = replace(run, cases=tuple(latest.values()))
    refuse_nonsense(run, place)
    return run, tuple(notes)


def _plain(value: Run | CaseResult, place: str) -> PlainObject:
    """``value`` as plain JSON values, without secrets, checked to be readable again."""
    value = masked(value)
    try:
        plain = cast(PlainObject, msgspec.to_builtins(value))
    except (TypeError, OverflowError) as error:
        bad = next(_foreign_values(value), says("msgspec", first_line(error)))
        raise DocumentError(f"{_CANT_WRITE}: {bad}", place=place, hint=_HOOK) from error
    bad = next(find_nonfinite(plain), "")
    if bad:
        raise DocumentError(f"{_CANT_WRITE}: {bad}, which JSON lacks", place=place, hint=REPORT_IT)
    try:
        msgspec.convert(plain, type(value), strict=True)
    except msgspec.ValidationError as error:
        wrong = next(wrong_types(plain, type(value)), None)
        what = wrong or says("msgspec", first_line(error))
        raise DocumentError(f"{_CANT_WRITE}: {what}", place=place, hint=_HOOK) from error
    fault = next(faults_of(value), None)
    if fault is not None:
        raise DocumentError(f"{_CANT_WRITE}: {fault}", place=place, hint=REPORT_IT)
    return plain


def _foreign_values(value: object, path: str = "$") -> Iterator[str]:
    """Yield ``path is …`` for every value of a class that JSON has nothing for."""
    if is_dataclass(value):
        for field in fields(value):
            yield from _foreign_values(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _foreign_values(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _foreign_values(item, f"{path}[{index}]")
    elif not isinstance(value, str | int | float | None):
        yield f"{path} is of the Python class {type(value).__name__!r}, which JSON lacks"


def _parse_object(
    data: bytes, place: str, *, what: str = "the file", cut: str = _JOURNAL_HINT
) -> PlainObject:
    """Parse one JSON object, with a message for each way in which a file can be none.

    Args:
        data: The text.
        place: Where it lies.
        what: What it is, for messages.
        cut: The next step where its end is missing.
    """
    text = data.removeprefix(_BYTE_ORDER_MARK)
    if not text.strip():
        raise DocumentError(f"{what} is empty", place=place, hint=cut)
    try:
        value = msgspec.json.decode(text)
    except RecursionError as error:
        raise DocumentError(
            f"{what} has brackets [ or {{ that are nested too deeply for a run document",
            place=place,
            hint=_EXPECTED,
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if "truncated" in str(error):
            raise DocumentError(
                f"{what} is cut off after {counted(len(data), 'byte')}", place=place, hint=cut
            ) from error
        kind = _kind_of_error(data)
        hint = _EXPECTED if kind is ForeignDocumentError else CHANGED
        fault = _fault_of_encoding(text)
        if fault:
            raise kind(fault, place=place, hint=hint) from error
        reason = says("msgspec", str(error).removeprefix("JSON is malformed: "))
        raise kind(f"{what} can't be read as JSON ({reason})", place=place, hint=hint) from error
    if not isinstance(value, dict):
        raise ForeignDocumentError(
            f"the file is not a run document, since its top level is {_json_name(value)}, not an "
            "object",
            place=place,
            hint=_EXPECTED,
        )
    return cast(PlainObject, value)


def _fault_of_encoding(text: bytes) -> str:
    """Return what keeps bytes from being UTF-8, empty where nothing does.

    Releases of msgspec raise different errors for it.
    """
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"byte {error.start} ({text[error.start]:#04x}) is not UTF-8"
    return ""


def _kind_of_error(data: bytes) -> type[DocumentError]:
    """The error of what can't be parsed: damaged if our field stands in it, else another tool's."""
    return DocumentError if b'"schema_version"' in data else ForeignDocumentError


def _version_of(document: PlainObject, place: str) -> Plain:
    """The schema version that a document claims, or a message on what it is instead."""
    missing = [name for name in ("schema_version", "run_id") if name not in document]
    if not missing:
        return document["schema_version"]
    if "benchmarks" in document and "machine_info" in document:
        raise ForeignDocumentError(
            "the file was written by pytest-benchmark, so it is not a run document",
            place=place,
            hint=f"{_EXPECTED}. To look at this file, run: pytest-benchmark compare "
            f"{shlex.quote(place)}",
        )
    raise ForeignDocumentError(
        f"the file is not a run document, since its key {missing[0]!r} is missing",
        place=place,
        hint=_EXPECTED,
    )


def _convert(plain: PlainObject, kind: type[_T], place: str) -> _T:
    try:
        return msgspec.convert(plain, kind, strict=True)
    except msgspec.ValidationError as error:
        what = next(wrong_types(plain, kind), None) or says("msgspec", first_line(error))
        raise DocumentError(
            f"the file is not a valid run document: {what}", place=place, hint=CHANGED
        ) from error


def _json_name(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
