"""Runtimes that the project has configured: ``[tool.ortbench.runtimes.NAME]``.

They stand in ``pyproject.toml``, or in ``ortbench.toml`` as ``[runtimes.NAME]``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.launch.remote_shell import for_remote_shell, joins_arguments
from pytest_ortbench.runtimes.project_file import project_table
from pytest_ortbench.runtimes.specs import (
    AUTO,
    CURRENT,
    RequirementList,
    parse_requirements,
    split_requirements,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_KEYS = ("command", "python", "requirements", "environment", "shares_files", "through_shell")
#: Programs that start a Python which sees other files.
_ELSEWHERE = ("ssh", "docker", "podman", "nerdctl", "kubectl", "wsl")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredRuntime:
    """One table of the configuration.

    Attributes:
        name: What ``--ort-runtimes`` calls it.
        place: Where it stands, for messages.
        command: What is started, each argument one string; no shell ever reads it. With ``python``
            or ``requirements`` it only stands in front of that interpreter.
        python: Path of the interpreter, ``current`` for the one that runs pytest; with
            ``requirements`` the version (``3.11``) or path that the environment is made with.
        requirements: Packages that make an environment.
        environment: Variables that differ from the host's.
        shares_files: Whether it sees the host's files; otherwise they are sent.
        through_shell: Whether the command gives its arguments to a shell, as ``ssh`` does.
    """

    name: str
    place: str
    command: tuple[str, ...] = ()
    python: str = ""
    requirements: RequirementList | None = None
    environment: dict[str, str] = field(default_factory=dict)
    shares_files: bool = True
    through_shell: bool = False

    def command_with(self, interpreter: str) -> tuple[str, ...]:
        """Return the whole command.

        Args:
            interpreter: The interpreter of the environment that was made, empty without one.
        """
        python = sys.executable if self.python == CURRENT else self.python
        end = interpreter or python
        words = (*self.command, end) if end else self.command
        return for_remote_shell(words) if self.through_shell else words


def configured_runtimes(root: Path) -> dict[str, ConfiguredRuntime]:
    """Read the configuration that applies in ``root``: that of the nearest folder that has one.

    Raises:
        UsageError: for a file that can't be read, and a table that breaks a rule.
    """
    table = project_table(root, "runtimes")
    if table is None:
        return {}
    return {name: _read(name, entry, table.place(name)) for name, entry in table.entries.items()}


def _read(name: str, table: object, place: str) -> ConfiguredRuntime:
    if name in (CURRENT, AUTO):
        raise UsageError(
            f"{name!r} can't be the name of a runtime, since {name!r} has a fixed meaning in "
            "--ort-runtimes",
            place=place,
            hint=f"Write another name, e.g. my-{name}",
        )
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} can't be the name of a runtime",
            place=place,
            hint="Write only letters, digits, '.', '_' and '-', with a letter or digit first, e.g. "
            f"{re.sub('[^A-Za-z0-9._-]+', '-', name).strip('-._') or 'old'}",
        )
    if not isinstance(table, Mapping):
        raise UsageError(
            f"the entry is {table!r}, not a table",
            place=place,
            hint=f"Write the entry as a table, e.g. {_as_table(table)}",
        )
    for key in table:
        if key not in _KEYS:
            raise UsageError(
                f"the key {key!r} is not known", place=place, hint=did_you_mean(key, _KEYS)
            )
    command = _strings(table, "command", place)
    program = PurePath(command[0]).stem.lower() if command else ""
    runtime = ConfiguredRuntime(
        name=name,
        place=place,
        command=command,
        python=_string(table, "python", place),
        requirements=_requirements(table, place),
        environment=_environment(table, place),
        shares_files=_flag(table, "shares_files", place, default=program not in _ELSEWHERE),
        through_shell=_flag(table, "through_shell", place, default=joins_arguments(program)),
    )
    if not (runtime.command or runtime.python or runtime.requirements):
        raise UsageError(
            "the runtime has neither packages to install nor a command to start",
            place=place,
            hint='To measure with the Python of pytest, write python = "current"'
            if runtime.environment
            else 'To install packages, write e.g. requirements = ["onnxruntime==1.20.1"]. To use '
            'a Python that has ONNX Runtime, write e.g. command = ["/opt/ort/bin/python"]',
        )
    return runtime


def _as_table(entry: object) -> str:
    """Return an entry as a table; a text is a Python if it is a path, else packages."""
    if isinstance(entry, list) and entry and all(isinstance(each, str) for each in entry):
        return f"{{ requirements = {_toml_list(entry)} }}"
    if not isinstance(entry, str) or not entry:
        return '{ command = ["/opt/ort/bin/python"] }'
    key = "command" if "/" in entry or "\\" in entry else "requirements"
    return f'{{ {key} = ["{entry}"] }}'


def _toml_list(texts: Iterable[str]) -> str:
    return f"[{', '.join(json.dumps(text) for text in texts)}]"


_EXAMPLES = {
    "command": 'Write e.g. command = ["numactl", "--cpunodebind=0", "/opt/ort/bin/python"]',
    "requirements": 'Write e.g. requirements = ["onnxruntime==1.20.1"]',
}


def _strings(table: Mapping[str, object], key: str, place: str) -> tuple[str, ...]:
    value = table.get(key, ())
    if isinstance(value, str):
        words = ", ".join(f'"{word}"' for word in value.split())
        raise UsageError(
            f"{key} is one string, not a list of strings",
            place=place,
            hint=f"Write {key} = [{words}]",
        )
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise UsageError(
            f"{key} is {value!r}, not a list of strings",
            place=place,
            hint=_EXAMPLES[key],
        )
    if key in table and (not value or not value[0]):
        raise UsageError(f"{key} is empty", place=place, hint=_EXAMPLES[key])
    return tuple(value)


def _requirements(table: Mapping[str, object], place: str) -> RequirementList | None:
    value = table.get("requirements")
    if value is None:
        return None
    pieces = split_requirements(value) if isinstance(value, str) else None
    if pieces is None:
        pieces = list(_strings(table, "requirements", place))
    return parse_requirements(pieces, place=f"{place} requirements")


def _environment(table: Mapping[str, object], place: str) -> dict[str, str]:
    value = table.get("environment", {})
    if not isinstance(value, Mapping):
        raise UsageError(
            f"environment is {value!r}, not a table",
            place=place,
            hint='Write e.g. environment = { OMP_NUM_THREADS = "1" }',
        )
    for key, text in value.items():
        if not isinstance(text, str):
            # As TOML writes truth values.
            written = str(text).lower() if isinstance(text, bool) else str(text)
            raise UsageError(
                f"environment.{key} is {written}, not a text",
                place=place,
                hint=f'Write it in quotes: environment.{key} = "{written}"',
            )
    return {str(key): str(text) for key, text in value.items()}


def _string(table: Mapping[str, object], key: str, place: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str) or (key in table and not value):
        is_number = isinstance(value, float)
        # TOML reads 3.10 as the number 3.1, and no Python 3.1 runs.
        example = ("3.10" if value == 3.1 else str(value)) if is_number else "3.12"
        raise UsageError(
            f"{key} is a number, but must be a version in quotes"
            if is_number
            else f"{key} is {value!r}, but must be a version or a path, in quotes",
            place=place,
            hint=f'Write {"" if is_number else "e.g. "}{key} = "{example}"',
        )
    return value


def _flag(table: Mapping[str, object], key: str, place: str, *, default: bool) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise UsageError(
            f"{key} is {value!r}, not true or false",
            place=place,
            hint=f"Write {key} = true or {key} = false",
        )
    return value
