"""What the user wrote for one option, and the amounts and paths that are read from it.

Readers raise :class:`~pytest_ortbench.core.errors.UsageError` with value, place and rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.errors import UsageError, nearest
from pytest_ortbench.core.home_folder import in_home
from pytest_ortbench.core.units import parse_amount

_LONGEST_S = 7 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionText:
    """The texts that the user wrote for one option.

    Attributes:
        texts: What was written, one entry a repetition; ``true`` for a flag.
        place: Where: ``--ort-dims``, or ``ort_dims in /path/pyproject.toml``.
        is_typed: Whether it stands on the command line, not in the ini file.
        base: Folder that relative paths start at: the ini file's, or where pytest was called.
    """

    texts: tuple[str, ...]
    place: str
    is_typed: bool
    base: Path

    @property
    def last(self) -> str:
        """The value of an option that has one only."""
        return self.texts[-1]


def read_flag(written: OptionText) -> bool:
    """Read whether a flag is set."""
    return written.last == "true"


def read_plain_text(written: OptionText) -> str:
    """Read a text that is not empty."""
    if not written.last.strip():
        raise UsageError(
            "the value is empty", place=written.place, hint="Write a value, or leave the option out"
        )
    return written.last.strip()


def exists(path: Path) -> bool:
    """Whether there is something at a path, however strange the path is."""
    try:
        return path.exists()
    except (OSError, ValueError):  # too long a name, or a NUL in it
        return False


def _amount(
    written: OptionText, unit: str, *, least: float, most: float, rule: str, text: str = ""
) -> float:
    value = parse_amount(text or written.last, unit, place=written.place)
    if not (least < value <= most and math.isfinite(value)):
        raise UsageError(f"{written.last!r} is out of range", place=written.place, hint=rule)
    return value


def read_seconds(written: OptionText) -> float:
    """Read seconds above 0."""
    rule = "Write seconds above 0 and at most 604800 (7 days), e.g. 5, or 500ms"
    return _amount(written, "s", least=0.0, most=_LONGEST_S, rule=rule)


def read_minutes(written: OptionText) -> float:
    """Read minutes above 0 as seconds; another unit may stand behind the number."""
    text = written.last if written.last.strip()[-1:].isalpha() else f"{written.last.strip()} min"
    rule = "Write minutes above 0 and at most 10080 (7 days), e.g. 10, or 90s"
    return _amount(written, "s", least=0.0, most=_LONGEST_S, rule=rule, text=text)


def read_percent(written: OptionText) -> float:
    """Read percent, at most 50, as a share."""
    text = written.last.strip().removesuffix("%") + "%"
    rule = "Write percent above 0 and at most 50, e.g. 1"
    return _amount(written, "ratio", least=0.0, most=0.5, rule=rule, text=text)


def read_memory(written: OptionText) -> int:
    """Read bytes of memory; less than an interpreter with ONNX Runtime takes is none."""
    rule = "Write at least 100 MB, e.g. 512MB: the process that measures needs about as much itself"
    return int(_amount(written, "bytes", least=100e6 - 1, most=float(1 << 62), rule=rule))


def read_path(text: str, written: OptionText) -> Path:
    """Read one path; a relative one starts at the folder of the option."""
    if not text.strip() or "\0" in text:
        raise UsageError(
            f"{text!r} contains a null character, which no path can have"
            if text.strip()
            else "the path is empty",
            place=written.place,
            hint="Write the path of a file or folder",
        )
    return written.base / in_home(text.strip())


def read_one_path(written: OptionText) -> Path:
    """Read a path, whether something is there or not."""
    return read_path(written.last, written)


def read_input_path(written: OptionText) -> Path:
    """Read the path of something that must be there."""
    path = read_path(written.last, written)
    if not exists(path):
        raise UsageError(
            f"{str(path)!r} does not exist",
            place=written.place,
            hint="Correct the path. It can be a file of arrays (.npz, .npy), a folder of "
            "arrays, photos or WAV files, or a text file",
        )
    return path


def read_label_file(written: OptionText) -> Path:
    """Read the path of a file of labels."""
    path = read_path(written.last, written)
    if path.is_dir():
        raise UsageError(
            f"{str(path)!r} is a folder, not a file",
            place=written.place,
            hint="Name a CSV file that has a file name and its label on each line, e.g. cat.jpg,3. "
            "For inputs from a text file, name a file with one label per line",
        )
    if not path.is_file():
        raise UsageError(
            f"the file {str(path)!r} does not exist",
            place=written.place,
            hint=_one_beside(path),
        )
    return path


def _one_beside(path: Path) -> str:
    """The file in the same folder that may have been meant, as the next step."""
    try:
        names = [file.name for file in path.parent.iterdir() if file.is_file()]
    except OSError:
        return "Correct the path"
    close = nearest(path.name, names)
    return f"Did you mean {str(path.parent / close)!r}?" if close else "Correct the path"


def read_output_file(written: OptionText) -> Path:
    """Read the path of a file to write."""
    path = read_path(written.last, written)
    if path.is_dir():
        raise UsageError(
            f"{str(path)!r} is a folder", place=written.place, hint="Name the file to write"
        )
    return path


def read_output_folder(written: OptionText) -> Path:
    """Read the path of a folder to write into."""
    path = read_path(written.last, written)
    if exists(path) and not path.is_dir():
        raise UsageError(
            f"{str(path)!r} is a file", place=written.place, hint="Name the folder to write into"
        )
    return path


def read_folder_text(written: OptionText) -> str:
    """Read the path of a folder to write into, as absolute text that a document can hold."""
    return str(read_output_folder(written).absolute())
