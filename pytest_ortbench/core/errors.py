"""The one tree of errors.

::

    OrtbenchError                 something a user can act on
    ├── UsageError                an option, marker, limit or configuration is wrong (exit status 2)
    │   └── NoModelError          a specification of models stands for none that is there
    ├── ModelError                a model file can't be read, fetched or built
    ├── DocumentError             a run document can't be read or written
    └── WorkerError               the measured process failed; carries a Failure

Every message shows the value, the place, the rule and the next step. Only the outermost caller
(the pytest plugin, the console tool) prints them.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ortbench.core.failure import Failure


#: The next step where something happened that can't.
REPORT_IT = (
    "This is a defect of pytest-ortbench. Please open an issue in its repository, with this message"
)

#: The next step where it may help to do the same once more.
RUN_AGAIN_OR_REPORT_IT = (
    "Run again. If this happens twice, please open an issue in the repository of pytest-ortbench, "
    "with this message"
)

#: A longer message shows its two ends: what was written may be of any length.
_LONGEST = 1000
#: Known words beyond the first number are not all named: so many of them are.
_MOST_NAMED, _FEW_NAMED = 24, 8


class OrtbenchError(Exception):
    """Something that the user can act on.

    Args:
        message: What is wrong: the value and the rule that it breaks.
        place: Where the value stands (``--ort-dims``, a marker, a file).
        hint: The next step.
    """

    def __init__(self, message: str, *, place: str = "", hint: str = "") -> None:
        self.message = message
        self.place = place
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        from pytest_ortbench.core.secrets import masked_text  # only where something is wrong

        text = f"{self.place}: {self.message}" if self.place else self.message
        text = masked_text(f"{text}. {self.hint}" if self.hint else text)
        if len(text) <= _LONGEST:
            return text
        return f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"


class UsageError(OrtbenchError):
    """An option, marker, limit or configuration value is wrong."""


class NoModelError(UsageError):
    """A specification of models stands for none that is there.

    Args:
        message: As of every error.
        spec: The specification.
        place: As of every error.
        hint: As of every error.
    """

    def __init__(self, message: str, *, spec: str, place: str = "", hint: str = "") -> None:
        self.spec = spec
        super().__init__(message, place=place, hint=hint)


class UnknownSizeError(UsageError):
    """No model of a plan has a size of this name.

    Args:
        message: As of every error.
        name: The name.
        place: As of every error.
        hint: As of every error.
    """

    def __init__(self, message: str, *, name: str, place: str = "", hint: str = "") -> None:
        self.name = name
        super().__init__(message, place=place, hint=hint)


class ModelError(OrtbenchError):
    """A model file can't be found, read, fetched or built."""


class DocumentError(OrtbenchError):
    """A run document can't be read or written."""


class ForeignDocumentError(DocumentError):
    """A file where a run document is expected was written by something else."""


class CarriedFailure(OrtbenchError):
    """A case can't be measured.

    Args:
        failure: How and in which phase it failed.
    """

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message, hint=failure.hint)


class WorkerError(CarriedFailure):
    """The measured process failed."""


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, its class where it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def class_and_line(error: BaseException) -> str:
    """Return the class of an error and the first line of what it says."""
    name = type(error).__name__
    return f"{name}: {first_line(error)}" if str(error).strip() else name


#: What a system says where too many files are open, and the next step there.
TOO_MANY_OPEN = frozenset({errno.EMFILE, errno.ENFILE})
RAISE_OPEN_FILES = "Raise the limit of open files, e.g. with 'ulimit -n 4096', and run again"
#: What a file system says that has no room.
_FULL = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})


def lacks_room(error: OSError) -> bool:
    """Return whether a file system has no room for what was to be written."""
    return error.errno in _FULL


def says(owner: str, text: str, longest: int = 400) -> str:
    """Return what somebody else's program said, as its words: ``pnnx says: 'no such layer'``.

    Args:
        owner: The program.
        text: What it said, of which the first line is quoted.
        longest: Characters of it that are quoted.
    """
    lines = text.strip().splitlines()
    if not lines:
        return f"{owner} gives no reason"
    return f"{owner} says: {in_quotes(lines[0].strip().rstrip('.')[:longest])}"


def in_quotes(text: str) -> str:
    """Return a text in quotes that it does not contain."""
    mark = '"' if "'" in text else "'"
    return f"{mark}{text}{mark}"


def why_no_python(error: OSError | SyntaxError | ValueError) -> tuple[str, str]:
    """Return why a file is no Python, as it follows its name, and the next step.

    Args:
        error: What reading it, or compiling its content, raised.
    """
    if isinstance(error, OSError):
        return why_unreadable(error)
    if isinstance(error, SyntaxError) and error.lineno:
        said = says("Python", error.msg)
        return f"is not valid Python in line {error.lineno} ({said})", "Correct the line"
    return f"is not valid Python ({says('Python', str(error))})", "Correct the file"


def why_no_json(error: ValueError | RecursionError) -> str:
    """Return why a file is no JSON, as it follows its name.

    Args:
        error: What reading its content raised.
    """
    import json  # only where something is wrong

    if isinstance(error, json.JSONDecodeError):
        said = says("Python", error.msg)
        return f"is not valid JSON in line {error.lineno}, column {error.colno} ({said})"
    return f"is not valid JSON ({says('Python', str(error))})"


def cache_advice(error: OSError, variable: str = "ORTBENCH_CACHE") -> str:
    """Return the next step where the folder of a cache does not take what is kept there.

    Args:
        error: What the file system said.
        variable: Of the environment, which says where the cache is.
    """
    other = f"name another folder in the environment variable {variable}"
    return (
        f"Free space there, or {other}" if lacks_room(error) else f"{other[0].upper()}{other[1:]}"
    )


def why_unreadable(error: OSError) -> tuple[str, str]:
    """Return what keeps a named file from being read, as follows its name, and the next step.

    Args:
        error: What the file system said.
    """
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "does not exist", "Correct the path"
    if isinstance(error, IsADirectoryError):
        return "is a folder, not a file", "Name a file. If the path is right, move the folder away"
    said = f"can't be read. {says('The system', error.strerror or str(error))}"
    if isinstance(error, PermissionError):
        return said, "Give your user the right to read it"
    return said, "Correct the path. If it is right, remove the cause that the system names"


def why_unwritable(error: OSError, path: Path) -> str:
    """Return what keeps a named file from being written, as follows its name.

    Args:
        error: What the file system said.
        path: The file.
    """
    parts = (path, *path.parents) if isinstance(error, NotADirectoryError) else path.parents
    part = next((part for part in parts if os.path.isfile(part)), None)  # noqa: PTH113 - no raise
    if part is not None:
        return f"can't be written, since {str(part)!r} is a file, not a folder"
    return f"can't be written. {says('The system', error.strerror or str(error))}"


def supply_step(error: ImportError | OSError, supply: str, *packages: str) -> str:
    """Return the next step where a package can't be imported.

    Args:
        error: What Python said.
        supply: The step where something is not installed.
        packages: What is installed, and does not load, where nothing is missing.
    """
    if isinstance(error, ModuleNotFoundError) or not packages:
        return supply
    if re.search(r"version `GLIBC(XX)?_", str(error)):
        return (
            "It is installed, but this system is too old for it. Use a newer system, or an older "
            f"version of {' and '.join(packages)}"
        )
    outdated = _not_fitting(error, packages)
    if outdated:
        return (
            f"It is installed, but does not fit {outdated}. Run: pip install --upgrade "
            f"{' '.join((*packages, outdated))}"
        )
    return (
        f"It is installed, but does not load. Run: pip install --force-reinstall --no-deps "
        f"{' '.join(packages)}"
    )


def _not_fitting(error: ImportError | OSError, packages: Sequence[str]) -> str:
    """Return the package that lacks a name which another one imports; empty if it is none."""
    module = (getattr(error, "name", None) or "").partition(".")[0]
    if not module or module in sys.stdlib_module_names:
        return ""
    from importlib.metadata import packages_distributions  # takes long: only in an error

    owners = packages_distributions().get(module, [])
    own = {package.lower().replace("_", "-") for package in packages}
    if not owners or own.intersection(owner.lower().replace("_", "-") for owner in owners):
        return ""
    return owners[0]


def did_you_mean(value: str, known: Iterable[str], more: str = "") -> str:
    """Return ``Did you mean 'x'?`` for the nearest known word, else which words can be chosen.

    Of many those are named that are least unlike what was written.

    Args:
        value: What was written.
        known: What could have been.
        more: A further sentence of the hint.
    """
    words = sorted(set(known))
    first = first_of_several(value, words)
    if first:
        return f"Write only one, e.g. {first}"
    near = nearest(value, words)
    if near:
        return f"Did you mean {near!r}? {more}".rstrip()
    listed = _choice(words)
    if len(words) > _MOST_NAMED:
        import difflib  # no worker pays for it at its start

        least_unlike = difflib.get_close_matches(value, words, n=_FEW_NAMED, cutoff=0.0)
        listed = f"{_choice(least_unlike)} and {len(words) - _FEW_NAMED} more"
    return f"{listed}. {more}" if more else listed


def _choice(words: Sequence[str]) -> str:
    if len(words) == 1:
        return f"The only choice is {words[0]!r}"
    return f"Choose one of: {', '.join(words)}" if words else "There is none to choose from"


def near_and_known(value: str, known: Iterable[str]) -> str:
    """Return the nearest known word, if one is near, and the list of all, in their order."""
    words = list(dict.fromkeys(known))
    first = first_of_several(value, words)
    if first:
        return f"Write only one, e.g. {first}"
    near = nearest(value, words)
    return (
        f"Did you mean {near!r}? If not, choose one of: {', '.join(words)}"
        if near
        else _choice(words)
    )


def first_of_several(value: str, words: Sequence[str]) -> str:
    """Return the first of several known words that are written as one; empty for any other text."""
    written = value.replace(",", " ").replace(";", " ").split()
    return written[0] if len(written) > 1 and set(written) <= {*words} else ""


def nearest(value: str, words: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the nearest word, empty if none is near: 0 takes any, 1 only the same."""
    import difflib  # likewise

    lowered = {word.lower(): word for word in words}
    near = difflib.get_close_matches(value.lower(), lowered, n=1, cutoff=cutoff)
    return lowered[near[0]] if near else ""
