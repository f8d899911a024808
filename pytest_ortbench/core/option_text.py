"""One option as the user gave it, and the amounts and paths that are read from it.

Readers raise :class:`~pytest_ortbench.core.errors.UsageError` with value, place and rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.units import parse_amount

_SHORTEST_WINDOW_S = 5.0
_LONGEST_S = 7 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One option that the user set.

    Attributes:
        texts: What was written, one entry a repetition; ``true`` for a flag.
        place: Where: ``--ort-dims``, or ``ort_dims in /path/pyproject.toml``.
        base: Folder that relative paths start at: the ini file's, or where pytest was called.
    """

    texts: tuple[str, ...]
    place: str
    base: Path

    @property
    def last(self) -> str:
        """The value of an option that has one only."""
        return self.texts[-1]


def exists(path: Path) -> bool:
    """Whether there is something at a path, however strange the path is."""
    try:
        return path.exists()
    except (OSError, ValueError):  # too long a name, or a NUL in it
        return False


def _amount(given: Given, unit: str, *, least: float, most: float, rule: str) -> float:
    value = parse_amount(given.last, unit, place=given.place)
    if not (least < value <= most and math.isfinite(value)):
        raise UsageError(f"{given.last!r} is out of range", place=given.place, hint=rule)
    return value


def seconds(given: Given) -> float:
    """Read seconds above 0."""
    return _amount(
        given, "s", least=0.0, most=_LONGEST_S, rule="Write seconds above 0, e.g. 5, or 500ms"
    )


def window(given: Given) -> float:
    """Read the seconds of a window of energy: 5 at least, below which no counter is believed."""
    value = seconds(given)
    if value < _SHORTEST_WINDOW_S:
        rule = "Write 5 or more: counters of energy move ten times a second at most"
        raise UsageError(f"{given.last!r} is too short", place=given.place, hint=rule)
    return value


def minutes(given: Given) -> float:
    """Read minutes above 0 as seconds; another unit may stand behind the number."""
    text = given.last if given.last.strip()[-1:].isalpha() else f"{given.last.strip()} min"
    asked = Given(texts=(text,), place=given.place, base=given.base)
    return _amount(
        asked, "s", least=0.0, most=_LONGEST_S, rule="Write minutes above 0, e.g. 10, or 90s"
    )


def percent(given: Given) -> float:
    """Read percent, at most 50, as a share."""
    text = given.last.strip()
    asked = Given(texts=(text.removesuffix("%") + "%",), place=given.place, base=given.base)
    return _amount(
        asked, "ratio", least=0.0, most=0.5, rule="Write percent above 0, at most 50, e.g. 1"
    )


def path_in(text: str, given: Given) -> Path:
    """Read one path; a relative one starts at the folder of the option."""
    if not text.strip() or "\0" in text:
        raise UsageError(f"{text!r} is not a path", place=given.place, hint="Write a path")
    return given.base / Path(text.strip()).expanduser()


def input_path(given: Given) -> Path:
    """Read the path of something that must be there."""
    path = path_in(given.last, given)
    if not exists(path):
        raise UsageError(
            f"there is nothing at {str(path)!r}",
            place=given.place,
            hint="Name an .npz, .npy or .pb file, or a folder of them",
        )
    return path


def output_file(given: Given) -> Path:
    """Read the path of a file to write."""
    path = path_in(given.last, given)
    if path.is_dir():
        raise UsageError(
            f"{str(path)!r} is a folder", place=given.place, hint="Name the file to write"
        )
    return path


def output_folder(given: Given) -> Path:
    """Read the path of a folder to write into."""
    path = path_in(given.last, given)
    if exists(path) and not path.is_dir():
        raise UsageError(
            f"{str(path)!r} is a file", place=given.place, hint="Name the folder to write into"
        )
    return path
