"""What reaches the terminal, and how the tool ends.

Text that is shown may hold names of models and messages of native libraries, which nobody here
wrote; so all of it goes through :func:`say`, which lets no control character through.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from enum import IntEnum
from typing import TextIO

from pytest_ortbench.core.secrets import masked_text
from pytest_ortbench.report.escape import encodable, lines


class ExitCode(IntEnum):
    """How the tool ends."""

    FINE = 0
    LIMIT_FAILED = 1
    WRONG_CALL = 2
    NOTHING = 3
    INTERRUPTED = 130


class ReaderGone(Exception):
    """Whoever read our output has had enough (``ortbench show | head``)."""


#: Columns of a table in a file.
_COLUMNS = 100

#: Colours and bold, the only escape sequences that are let through, and only where asked.
_STYLES = re.compile(r"(\x1b\[[0-9;]*m)")


def say(text: str, *, styled: bool = False, to: TextIO | None = None) -> None:
    """Write ``text`` and a line end, with control characters spelt out.

    Args:
        text: One or several lines.
        styled: Keep colours, which the caller put in.
        to: Where to; standard output if not given.

    Raises:
        ReaderGone: if nobody reads any more.
    """
    stream = to or sys.stdout
    write(inert(masked_text(text), styled=styled) + "\n", to=stream)


def warn(text: str) -> None:
    """Write a line to standard error."""
    say(text, to=sys.stderr)


def write(text: str, *, to: TextIO | None = None) -> None:
    """Write text that is inert already, in an encoding that may lack some of its characters.

    Raises:
        ReaderGone: if nobody reads any more.
    """
    stream = to or sys.stdout
    try:
        stream.write(encodable(text, stream.encoding or "utf-8"))
        stream.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        # Windows' way to say so.
        if sys.platform == "win32" and error.errno == errno.EINVAL:
            raise ReaderGone from error
        raise


def inert(text: str, *, styled: bool = False) -> str:
    """Return ``text`` with control and invisible characters spelt out; its lines stay lines."""
    pieces = _STYLES.split(text) if styled else [text]
    # With one group in the pattern, every second piece is a style.
    return "".join(
        piece if index % 2 else "\n".join("\n".join(lines(part)) for part in piece.split("\n"))
        for index, piece in enumerate(pieces)
    )


def step(text: str) -> None:
    """Say what is being done, where somebody watches."""
    if sys.stderr.isatty():
        warn(f"asking {text} …")


def silence() -> None:
    """Point the closed standard output at nothing, so that Python's own flush at exit is quiet."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())


def columns() -> int | None:
    """Return the columns that sentences are wrapped at: of the terminal, or what ``COLUMNS`` says.

    ``None`` where the output is no terminal and nobody said: there a sentence stays one line, which
    ``grep`` finds.
    """
    if sys.stdout.isatty():
        return shutil.get_terminal_size((_COLUMNS, 24)).columns
    setting = os.environ.get("COLUMNS", "")
    return int(setting) if setting.isdecimal() and int(setting) > 0 else None


def width() -> int:
    """Return the columns of a table: as :func:`columns`; else 100, so that files look the same."""
    return columns() or _COLUMNS


def tell(sentences: Iterable[str]) -> None:
    """Write sentences, each from a line of its own on, wrapped where :func:`columns` says so."""
    room = columns()
    for sentence in sentences:
        wrapped = room and textwrap.wrap(
            inert(sentence), room, break_long_words=False, break_on_hyphens=False
        )
        say("\n".join(wrapped or [sentence]))


def colour() -> bool:
    """Whether to colour: a terminal, and the user has not said no (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def encoding() -> str:
    """Return the encoding of standard output."""
    return sys.stdout.encoding or "utf-8"


def table(rows: list[list[str]], *, header: list[str] | None = None, indent: int = 0) -> str:
    """Return ``rows`` in columns that line up, the last one as it is.

    Args:
        rows: Cells; every row as long as the others.
        header: Names of the columns.
        indent: Blanks in front of every line.
    """
    every = ([header] if header else []) + [[inert(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    lines = []
    for row in every:
        cells = [cell.ljust(size) for cell, size in zip(row, widths, strict=True)]
        lines.append((" " * indent + "  ".join(cells)).rstrip())
    if header:
        lines.insert(1, " " * indent + "  ".join("-" * size for size in widths))
    return "\n".join(lines)
