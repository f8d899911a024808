"""An option as one row: how it is written, what reads it, and where its value goes.

A row belongs to a dataclass field, which has its name, its type and its default. Help, ini keys,
marker keywords, the plan's request and the reference page are made from the rows. Nothing is
imported here that pytest itself has not imported: every start of pytest pays for it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import Field, field
from typing import Any, Literal, NamedTuple, TypeVar

from pytest_ortbench.core.placing import Place

Kind = Literal["list", "lines", "int", "float", "str", "path", "flag"]
Written = Literal["", "file", "folder", "folder of others"]
IniType = Literal["args", "linelist", "int", "float", "string", "bool"]

_INI_TYPES: dict[Kind, IniType] = {
    "list": "args",
    "lines": "linelist",
    "int": "int",
    "float": "float",
    "str": "string",
    "path": "string",
    "flag": "bool",
}
#: Key of a row in the metadata of its field.
_ROW = "option"

Value = TypeVar("Value")


class Keyword(NamedTuple):
    """A keyword of the ``ortbench`` marker.

    Attributes:
        help: What it takes, for people.
        takes: ``texts`` for a text or a list of them, ``models`` for a specification of models, a
            text or a path, or a list of them, ``numbers`` for a positive whole number or a list of
            them, ``choice`` for one of some texts, ``sizes`` for a mapping from a name to such
            numbers, ``data`` for what the option itself takes: a text or a path, or a mapping of
            settings.
        may_be_empty: Whether an empty list is a value.
        least: The smallest number.
        choices: The texts of a choice.
        example: A value as Python has it, for messages; empty where ``takes`` gives one.
    """

    help: str
    takes: Literal["texts", "models", "numbers", "choice", "sizes", "data"]
    may_be_empty: bool = False
    least: int = 1
    choices: tuple[str, ...] = ()
    example: str = ""


class OptionRow(NamedTuple):
    """One option.

    Attributes:
        field: Field that holds its value.
        default: Its value where nobody set it.
        flag: As typed; empty for a key of the ini file only.
        kind: How it is written; ``list`` is repeatable and split at commas, and so is ``lines``,
            whose items may hold blanks.
        metavar: What stands behind ``=`` in the help.
        help: One line: meaning and default.
        reader: Dotted name (``module:function``) of what makes a value of an ``OptionText``; it is
            imported when a value is read.
        rule: Dotted name of what refuses a value that does not go with others. It takes ``value``
            and ``place`` of this option, and whether it ``is_typed``, as far as it names them, and
            other options by the names of their fields. Empty for none.
        to: Field of the plan that takes the value, ``request.io`` or ``sampling.loads``, or of each
            case, which a pass puts it into, ``case.stages``; empty for what the run itself reads.
        keyword: What the marker takes instead, ``None`` where it takes nothing.
        asks_for: Pass that the option asks for, empty for none.
        writes: What its value names, for the run to write to: ``folder of others`` is for a library
            that tells nothing in time. Empty for none.
        names_models: Whether its value names models, which a run without others measures.
        place: Where the option of a pass stands among all.
    """

    field: str
    default: Any
    flag: str
    kind: Kind
    metavar: str
    help: str
    reader: str
    rule: str
    to: str
    keyword: Keyword | None
    asks_for: str
    writes: Written
    names_models: bool
    place: Place

    @property
    def ini(self) -> str:
        """Key in the ini file: ``ort_batch_sizes``."""
        return self.flag[2:].replace("-", "_") if self.flag else f"ort_{self.field}"

    @property
    def ini_type(self) -> IniType:
        """Type of the ini key, as pytest names it."""
        return _INI_TYPES[self.kind]


def option(
    default: Value,
    *,
    help: str,
    reader: str,
    kind: Kind = "str",
    flag: str = "",
    metavar: str = "",
    rule: str = "",
    to: str = "",
    keyword: Keyword | None = None,
    asks_for: str = "",
    writes: Written = "",
    names_models: bool = False,
    place: Place | None = None,
) -> Value:
    """Return the dataclass field of an option, for :func:`option_rows` to find."""
    row = OptionRow(
        field="",
        default=default,
        flag=flag,
        kind=kind,
        metavar=metavar,
        help=help,
        reader=reader,
        rule=rule,
        to=to,
        keyword=keyword,
        asks_for=asks_for,
        writes=writes,
        names_models=names_models,
        place=place or Place(),
    )
    if isinstance(default, dict):
        return field(default_factory=lambda: copy(default), metadata={_ROW: row})
    return field(default=default, metadata={_ROW: row})


def switch(
    *,
    help: str,
    flag: str = "",
    rule: str = "",
    to: str = "",
    asks_for: str = "",
    place: Place | None = None,
) -> bool:
    """Return the dataclass field of an option that is off unless it stands there, without value."""
    return option(
        False,
        kind="flag",
        help=help,
        reader="pytest_ortbench.core.option_text:read_flag",
        flag=flag,
        rule=rule,
        to=to,
        asks_for=asks_for,
        place=place,
    )


def option_rows(kind: type) -> tuple[OptionRow, ...]:
    """Return the rows of a class that is a dataclass or will be one, those of its bases first."""
    rows = {
        name: entry.metadata[_ROW]._replace(field=name)
        for base in reversed(kind.__mro__)
        for name, entry in vars(base).get("__dataclass_fields__", vars(base)).items()
        if isinstance(entry, Field) and _ROW in entry.metadata
    }
    return tuple(rows.values())
